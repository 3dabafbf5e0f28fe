"""`python -m ottla`, the same as the `ottla` command."""

import gc


def main() -> None:
    """Start without the garbage collector: what start-up creates stays. Commands that go on running turn it on."""
    gc.disable()
    from ottla.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
