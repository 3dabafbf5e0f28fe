"""`python -m ottla`, the same as the `ottla` command."""

from ottla.cli.main import main

if __name__ == "__main__":
    main()
