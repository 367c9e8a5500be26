"""The command `lodl`."""

import re
import signal
import sys
from typing import Any, NoReturn

from lodl._arrays import printable, require
from lodl.errors import InvalidInputError, LodlError

_CTRL_C, _TERMINATED = 130, 143  # exit codes of a shell's command that a signal has ended
_OPTIONS = {  # of arguments of the library
    "X": "features",
    "Y": "labels",
    "y": "labels",
    "random_state": "seed",
}
_STOPPED = (
    "Stopped. Finished work is kept if it was written to a folder or a store; run the same command "
    "again to resume."
)


def main() -> None:
    """Run the command line; an error of ours or of a file is one line.

    The exit code is 2 for a value that is not what was expected, as for a wrong option, 130 after
    Ctrl-C, 143 after SIGTERM, and 1 for everything else that fails.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # otherwise it is ignored
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        require("typer", "cli")
        require("rich", "cli")
        from lodl.cli._app import app

        app()
    except KeyboardInterrupt:  # typer knows about those in a command
        _stopped()
        sys.exit(_CTRL_C)
    except SystemExit as end:
        if end.code in (_CTRL_C, _TERMINATED):
            _stopped()
        raise
    except InvalidInputError as error:
        _end(_with_options(str(error)), code=2)
    except LodlError as error:
        _end(str(error))
    except OSError as error:
        path = error.filename2 or error.filename
        _end(str(error) if path is None else f"{path} cannot be used: {error.strerror}.")


def _stopped() -> None:
    after_bar = "\n" if sys.stderr.isatty() else ""  # or after the ^C that a terminal shows
    sys.stderr.write(f"{after_bar}{_STOPPED}\n")


def _end(message: str, code: int = 1) -> NoReturn:
    shown = "\n".join(map(printable, message.split("\n")))
    sys.stderr.write(f"Error: {shown}\n")
    sys.exit(code)


def _with_options(message: str) -> str:
    """Return the message with the command's parameters as they are typed: `n_jobs` as --n-jobs."""
    from typer.main import get_command

    from lodl.cli._added import AddedCommand
    from lodl.cli._app import app

    command: Any = get_command(app)
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
        if isinstance(command, AddedCommand):
            command = command.load()
    typed = {
        one.name: one.opts[0] if one.opts[0].startswith("--") else one.name.upper()
        for one in command.params
    }
    return re.sub(
        r"`(\w+)`", lambda found: typed.get(_OPTIONS.get(found[1], found[1]), found[0]), message
    )
