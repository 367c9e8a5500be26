"""Programs of any language that read JSON and print JSON."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import IO, Any

import numpy as np

from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems._function_problem import function_with_context
from lodl.problems._per_thread import PerThread
from lodl.problems._problem import Problem, check_sense

__all__ = ["CommandProblem"]

_SHOWN = 500  # characters of a program's output in a message
_CLOSING = 1.0  # seconds a program may take to exit, or to close its pipes after a kill


class CommandProblem(Problem):
    r"""A program that reads a prediction and prints a decision, an objective, or both in turn.

    Use it for simulators and solvers in other languages. The program reads one JSON object from its
    standard input, of which `context` is there if the instance has one, and prints another:

        {"prediction": [...], "context": ...}            ->  {"decision": anything}
        {"decision": ..., "label": [...], "context": ...}  ->  {"objective": number}

    The second question does not come if `objective` is given. A program that shows no decision
    (`one_question=True`) is asked for the worth, under the label, of what it would decide:

        {"prediction": [...], "label": [...], "context": ...}  ->  {"objective": number}

    Arrays are lists, nested row by row. The program is started for each question; if it starts
    slowly, let it answer line by line until its input ends, flush each line, and set
    `persistent=True`. Then it runs once per process and thread, is restarted if it dies, and ends
    with the process. A program that reads ahead or does not flush never answers (mawk does
    both, unless told `-W interactive`): give a `timeout` while you try it.

    A call fails if the program ends with another exit code than 0, takes longer than `timeout`, or
    prints something else; the message has the end of what it wrote to standard error. The
    program runs in a new session (not on Windows), so that killing a wrapper script also ends the
    solver that it started.

    Args:
        command: The program and its arguments, not passed through a shell.
        sense: "min" or "max".
        objective: `objective(z, y, context) -> float`, or without `context`; None asks the program.
        one_question: Whether the program decides and scores at once.
        persistent: Whether it answers many questions, each a line.
        timeout: Seconds that an answer may take; None waits forever.

    Example:
        >>> import sys
        >>> program = '''
        ... import json, sys
        ... for line in sys.stdin:
        ...     asked = json.loads(line)
        ...     if "prediction" in asked:
        ...         values = asked["prediction"]
        ...         answer = {"decision": values.index(max(values))}
        ...     else:
        ...         answer = {"objective": asked["label"][asked["decision"]]}
        ...     print(json.dumps(answer), flush=True)
        ... '''
        >>> problem = CommandProblem([sys.executable, "-c", program], "max", persistent=True)
        >>> z = problem.solve(np.array([3.0, 5.0, 4.0]))
        >>> problem.objective(z, np.array([1.0, 2.0, 3.0]))
        2.0
    """

    def __init__(
        self,
        command: Sequence[str],
        sense: Sense,
        *,
        objective: Callable[..., float] | None = None,
        one_question: bool = False,
        persistent: bool = False,
        timeout: float | None = None,
    ) -> None:
        if isinstance(command, str) or not command:
            raise InvalidInputError(
                f'`command` must be a list of arguments, e.g. ["./solver", "--fast"], got '
                f"{command!r}."
            )
        check_sense(sense, "CommandProblem")
        if one_question and objective is not None:
            raise InvalidInputError("With `one_question=True` there is no decision to score.")
        self.sense = sense
        self._objective = objective and function_with_context("objective", objective, 2)
        self._one_question = one_question
        make = _Worker if persistent else _Program
        self._programs = PerThread(partial(make, [str(one) for one in command], timeout))

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        if self._one_question:
            return np.array(y_hat)  # it stands for the decision that the program takes on it
        return self._ask("decision", context, prediction=y_hat)

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        if self._objective is not None:
            known: float = self._objective(z, y, context=context)
            return known
        name = "prediction" if self._one_question else "decision"
        value = self._ask("objective", context, label=y, **{name: z})
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ProblemError(f"The program's `objective` must be a number, got {value!r}.")
        return float(value)

    def _ask(self, wanted: str, context: InstanceContext, **asked: Any) -> Any:
        if context is not None:
            asked["context"] = context
        program = self._programs.get()
        printed = program.answer(json.dumps(asked, default=_plain).encode() + b"\n")
        try:
            text = printed.decode()
            answer = json.loads(text)
        except UnicodeDecodeError as error:
            raise ProblemError(
                f"{program.name} must print JSON in UTF-8, got {printed[:_SHOWN]!r}."
                + program.complaint()
            ) from error
        except ValueError as error:
            raise ProblemError(
                f"{program.name} must print JSON, got {text[:_SHOWN]!r}.{program.complaint()}"
            ) from error
        if not isinstance(answer, Mapping) or wanted not in answer:
            raise ProblemError(
                f'{program.name} must print {{"{wanted}": ...}}, got {text[:_SHOWN]!r}.'
            )
        return answer[wanted]


class _Program:
    """A program that is started for each question."""

    def __init__(self, command: list[str], timeout: float | None) -> None:
        self._command, self._timeout = command, timeout
        self.name = f"The program `{command[0]}`"
        self._said = b""

    def answer(self, question: bytes) -> bytes:
        """Return what the program prints."""
        process = self._started(subprocess.PIPE)
        try:
            printed, self._said = process.communicate(question, timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            _end_group(process)
            self._said = error.stderr or b""
            raise self._too_slow() from error
        except BaseException:  # an interrupt, or the oracle's time limit
            _end_group(process)
            raise
        finally:
            _close_pipes(process)
        if process.returncode != 0:
            raise self._ended(process.returncode)
        return printed

    def complaint(self) -> str:
        """Return a sentence with the end of what the program wrote to standard error."""
        said = self._said.decode(errors="replace").strip()
        return f" It wrote: {said[-_SHOWN:]}" if said else ""

    def _started(self, stderr: int | IO[bytes]) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True
            )
        except OSError as error:
            raise ProblemError(f"{self.name} cannot be started: {error}") from error

    def _too_slow(self) -> ProblemError:
        unit = "second" if self._timeout == 1 else "seconds"
        return ProblemError(
            f"{self.name} took longer than its timeout of {self._timeout:g} {unit}."
            + self.complaint()
        )

    def _ended(self, code: int) -> ProblemError:
        return ProblemError(f"{self.name} ended with exit code {code}.{self.complaint()}")


class _Worker(_Program):
    """A program that answers line by line; started at the first question, and again if it died."""

    def __init__(self, command: list[str], timeout: float | None) -> None:
        super().__init__(command, timeout)
        self._talk: _Talk | None = None

    def answer(self, question: bytes) -> bytes:
        if self._talk is None or self._talk.process.poll() is not None:
            self._start()
        talk = self._talk
        assert talk is not None
        try:
            talk.questions.put(question)
            line = talk.answers.get(timeout=self._timeout)
        except queue.Empty as error:
            self._stop()
            raise self._too_slow() from error
        except BaseException:  # given up by the oracle: a late answer would answer the next call
            self._stop()
            raise
        if line:
            return line
        with suppress(subprocess.TimeoutExpired):  # it closed its output but runs on
            talk.process.wait(_CLOSING)
        self._stop()
        raise self._ended(talk.process.returncode)

    def complaint(self) -> str:
        if self._talk is not None:
            self._said = self._talk.complaint()
        return super().complaint()

    def _start(self) -> None:
        self._stop()
        self._said = b""
        with ExitStack() as stack:
            errors = stack.enter_context(tempfile.TemporaryFile(prefix="lodl-"))
            self._talk = talk = _Talk(self._started(errors), errors)
            stack.pop_all()  # from now on `talk.end` closes the file
        self._end = weakref.finalize(self, talk.end)  # when its thread ends, and at exit

    def _stop(self) -> None:
        if self._talk is not None:
            self._said = self._talk.complaint()
            self._end()
            self._talk = None


class _Talk:
    """A running program, and a thread that passes on questions and answers.

    Pipes can only be waited for with a time limit by another thread, on some systems.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", errors: IO[bytes]) -> None:
        self._owner = os.getpid()
        self.process, self._errors = process, errors
        self.questions: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def complaint(self) -> bytes:
        """Return what the program has written to standard error so far."""
        self._errors.seek(0)
        return self._errors.read()

    def end(self) -> None:
        """End the program and its thread."""
        if self._owner != os.getpid():  # a fork leaves its parent's program alone
            return
        _end_group(self.process)
        self.questions.put(None)
        self._thread.join(_CLOSING)
        self._errors.close()

    def _pass_on(self) -> None:
        written, printed = self.process.stdin, self.process.stdout
        assert written is not None
        assert printed is not None
        for question in iter(self.questions.get, None):
            with suppress(OSError):  # it has ended, and prints no more
                written.write(question)
                written.flush()
            self.answers.put(printed.readline())  # empty if it has ended
        _close_pipes(self.process)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program and all processes that it started, and wait for the program."""
    if os.name == "posix":
        with suppress(OSError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _close_pipes(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):  # what was not written stays unwritten
                pipe.close()


def _plain(thing: Any) -> Any:
    """Return an array, or a number of NumPy's, as JSON has it."""
    if isinstance(thing, np.ndarray | np.generic):
        return thing.tolist()
    raise InvalidInputError(
        f"A context for a program must be made of numbers, strings, lists, dicts and arrays, got "
        f"a {type(thing).__name__}."
    )
