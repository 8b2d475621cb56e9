"""`python -m docjax` is the `docjax` command."""

import sys

from docjax.cli import main

sys.exit(main())
