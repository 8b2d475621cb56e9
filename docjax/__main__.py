"""`python -m docjax` is the `docjax` command."""

import sys

from docjax.cli import main

if __name__ == "__main__":
    sys.exit(main())
