"""The command `lodl`."""

import sys
from typing import NoReturn

from lodl.errors import LodlError
from lodl.validation import require


def main() -> None:
    """Runs the command line; an error of ours or of a file is one readable line, exit code 1."""
    try:
        require("typer", "cli")
        require("rich", "cli")
        from lodl.cli._app import app

        app()
    except LodlError as error:
        _end(str(error))
    except OSError as error:
        path = error.filename2 or error.filename
        _end(str(error) if path is None else f"{path} cannot be used: {error.strerror}.")


def _end(message: str) -> NoReturn:
    sys.stderr.write(f"Error: {message}\n")
    sys.exit(1)
