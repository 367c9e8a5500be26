"""`python -m lodl.cli`."""

from lodl.cli import main

main()
