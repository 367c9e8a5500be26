"""The command `lodl`."""

import sys

from lodl.errors import LodlError
from lodl.validation import require


def main() -> None:
    """Runs the command line; an error of ours is one readable line and exit code 1."""
    try:
        require("typer", "cli")
        require("rich", "cli")
        from lodl.cli._app import app

        app()
    except LodlError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)
