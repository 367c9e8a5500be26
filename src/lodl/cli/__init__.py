"""The command `lodl`."""

import re
import signal
import sys
from typing import Any, NoReturn

from lodl._arrays import printable, require
from lodl.errors import InvalidInputError, LodlError

_CTRL_C, _TERMINATED = 130, 143  # exit codes of a command that a signal ended
_OPTIONS = {"X": "features", "Y": "labels", "y": "labels", "random_state": "seed"}  # by argument
_STOPPED = (
    "Stopped. Finished work is kept if it was written to a folder or a store; run the same command "
    "again to resume."
)


def main() -> None:
    """Run the command line. An error of `lodl` or of a file is one line.

    The exit code is 2 for an unsuitable value, 130 after Ctrl-C, 143 after SIGTERM, else 1.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # otherwise a parent process ignores it
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        require("typer", "cli")
        from lodl.cli._app import app

        app()
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer turns Ctrl-C into an exit inside a command, but not before and after it.
        code = end.code if isinstance(end, SystemExit) else _CTRL_C
        if code in (_CTRL_C, _TERMINATED):
            after_bar = "\n" if sys.stderr.isatty() else ""  # or after the ^C that a terminal shows
            sys.stderr.write(f"{after_bar}{_STOPPED}\n")
        sys.exit(code)
    except InvalidInputError as error:
        _end(_with_options(str(error)), code=2)
    except LodlError as error:
        _end(str(error))
    except ValueError as error:
        if "NaN" not in str(error):
            raise
        _end("The features have a gap, and the model takes none. Fill it first.", code=2)
    except OSError as error:
        path = error.filename2 or error.filename
        _end(str(error) if path is None else f"{path} cannot be used: {error.strerror}.")


def _end(message: str, code: int = 1) -> NoReturn:
    shown = "\n".join(map(printable, message.split("\n")))
    sys.stderr.write(f"Error: {shown}\n")
    sys.exit(code)


def _with_options(message: str) -> str:
    """Return a message with parameters as users type them: `n_jobs` becomes --n-jobs."""
    from typer.main import get_command

    from lodl.cli._app import AddedCommand, app

    command: Any = get_command(app)
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
        if isinstance(command, AddedCommand):
            command = command.load()
    typed = {}
    for parameter in command.params:
        is_option = parameter.opts[0].startswith("--")
        typed[parameter.name] = parameter.opts[0] if is_option else parameter.name.upper()
    typed |= {name: typed[option] for name, option in _OPTIONS.items() if option in typed}
    return re.sub(r"`(\w+)`", lambda match: typed.get(match[1], match[0]), message)
