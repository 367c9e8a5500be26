"""The command `lodl`."""

import sys
from typing import NoReturn

from lodl._validation import require
from lodl.errors import LodlError

_CTRL_C = 130  # the exit code of typer
_STOPPED = (
    "Stopped. What was finished is kept where there is a folder or a store for it; the same "
    "command resumes from there."
)


def main() -> None:
    """Run the command line; an error of ours or of a file is one line and exit code 1."""
    try:
        require("typer", "cli")
        require("rich", "cli")
        from lodl.cli._app import app

        app()
    except SystemExit as end:
        if end.code == _CTRL_C:
            sys.stderr.write(f"\n{_STOPPED}\n")
        raise
    except LodlError as error:
        _end(str(error))
    except OSError as error:
        path = error.filename2 or error.filename
        _end(str(error) if path is None else f"{path} cannot be used: {error.strerror}.")


def _end(message: str) -> NoReturn:
    sys.stderr.write(f"Error: {message}\n")
    sys.exit(1)
