"""`python -m iolab`, as the program `iolab`."""

import sys

# The current directory, which `-m` puts before all other places of code. What Python loads before this line it has
# searched for there already; with `-P`, or as the program, it does not.
if not sys.flags.safe_path:
    del sys.path[0]

from iolab.presentation.cli import main

if __name__ == "__main__":
    main()
