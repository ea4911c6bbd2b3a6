"""`python -m byteweld`: the command line."""

import sys

from byteweld.cli import main

if __name__ == "__main__":
    sys.exit(main())
