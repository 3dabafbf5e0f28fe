"""`python -m ottla`, the same as the `ottla` command."""

import gc
import sys


def main() -> None:
    """Start without the garbage collector: what start-up creates stays. Commands that go on running turn it on."""
    gc.disable()
    from ottla.cli.quick import read_options

    options = read_options(sys.argv[1:])
    if options is None:
        from ottla.cli.main import main as run

        run()
        return
    from ottla.cli.serve import CommandFailed, report, serve

    try:
        serve(options)
    except CommandFailed as error:
        report(error, options)
        sys.exit(error.code)


if __name__ == "__main__":
    main()
