"""python -m mpress: the command line, for an interpreter whose scripts are not on PATH."""

from mpress.cli import main

main()
