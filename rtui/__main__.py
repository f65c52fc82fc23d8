"""``python -m rtui`` is the ``rtui`` command."""

from rtui.cli.main import main

if __name__ == "__main__":
    main()
