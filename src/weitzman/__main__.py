"""``python -m weitzman`` is the command ``weitzman``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
