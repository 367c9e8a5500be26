"""External programs, in any language, that read JSON and print JSON."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from lodl._threads import PerThread
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems._functions import FunctionWithContext
from lodl.problems._problem import Problem, check_sense

__all__ = ["CommandProblem"]

_SHOWN = 500  # characters of a program's output in a message
_CLOSING = 1.0  # seconds a program may take to exit, or to close its pipes after a kill


class CommandProblem(Problem):
    r"""A program that reads a prediction and prints a decision, an objective, or both in turn.

    The program reads one JSON object from its standard input, which has a `context` if the instance
    has one, and prints another:

        {"prediction": [...], "context": ...}            ->  {"decision": anything}
        {"decision": ..., "label": [...], "context": ...}  ->  {"objective": number}

    The second call is not made if `objective` is given. With `one_call=True`, for a program that
    shows no decision, the program prints the objective, under the label, of what it would decide:

        {"prediction": [...], "label": [...], "context": ...}  ->  {"objective": number}

    Arrays are lists, nested row by row. The program is started for each call. If it starts slowly,
    let it answer line by line until its input ends, flush each line, and set `persistent=True`.
    Then it runs once per process and thread, is restarted if it dies, and ends with the process. A
    program that reads ahead or does not flush never answers: pass a `timeout` while you try it.
    A call fails if the program ends with another exit code than 0, takes longer than `timeout`, or
    prints something else; the message has the end of its standard error.

    Args:
        command: The program and its arguments, not passed through a shell.
        sense: "min" or "max".
        objective: `objective(z, y, context) -> float`, or without `context`. By default the program
            computes the objective.
        one_call: Whether the program decides and scores at once.
        persistent: Whether it answers many calls, each a line.
        timeout: Seconds that an answer may take. Unlimited by default.

    Example:
        >>> import sys
        >>> program = '''
        ... import json, sys
        ... for line in sys.stdin:
        ...     values = json.loads(line)["prediction"]
        ...     print(json.dumps({"decision": values.index(max(values))}), flush=True)
        ... '''
        >>> command = [sys.executable, "-c", program]
        >>> problem = CommandProblem(command, "max", objective=lambda z, y: y[z], persistent=True)
        >>> problem.solve(np.array([3.0, 5.0, 4.0]))
        1
    """

    def __init__(
        self,
        command: Sequence[str],
        sense: Sense,
        *,
        objective: Callable[..., float] | None = None,
        one_call: bool = False,
        persistent: bool = False,
        timeout: float | None = None,
    ) -> None:
        if isinstance(command, str) or not command:
            raise InvalidInputError(f"`command` must be a list of arguments, got {command!r}.")
        check_sense(sense, "CommandProblem")
        if one_call and objective is not None:
            raise InvalidInputError("With `one_call=True` there is no decision to score.")
        self.sense, self._one_call = sense, one_call
        self._objective = objective and FunctionWithContext("objective", objective, 2)
        self._programs = PerThread(partial(_Program, list(map(str, command)), persistent, timeout))

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        if self._one_call:
            return np.array(y_hat)  # in place of the decision that the program makes on it
        return self._call("decision", context, prediction=y_hat)

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        if self._objective is not None:
            return float(self._objective(z, y, context=context))
        name = "prediction" if self._one_call else "decision"
        value = self._call("objective", context, label=y, **{name: z})
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ProblemError(f"The program's `objective` must be a number, got {value!r}.")
        return float(value)

    def _call(self, wanted: str, context: InstanceContext, **call: Any) -> Any:
        """Return the entry `wanted` of the program's answer."""
        if context is not None:
            call["context"] = context
        program = self._programs.get()
        printed = program.answer(json.dumps(call, default=_plain).encode() + b"\n")
        shown = printed.decode(errors="backslashreplace")[:_SHOWN]
        try:
            answer = json.loads(printed.decode())
        except ValueError as error:
            raise program.failure(f"must print JSON in UTF-8, got {shown!r}") from error
        if not isinstance(answer, Mapping) or wanted not in answer:
            raise ProblemError(f'{program.name} must print {{"{wanted}": ...}}, got {shown!r}.')
        return answer[wanted]


class _Program:
    """A program that is started for each call, or stays for many and is restarted if it died."""

    def __init__(self, command: list[str], persistent: bool, timeout: float | None) -> None:
        self._command, self._persistent, self._timeout = command, persistent, timeout
        self.name = f"The program `{command[0]}`"
        self._run: _Run | None = None
        self._stderr = b""

    def answer(self, call: bytes) -> bytes:
        """Return the line that a persistent program prints, or all that another one prints."""
        run = self._running()
        try:
            run.calls.put(call)
            printed = run.answers.get(timeout=self._timeout)
            if printed and self._persistent:
                return printed
            if self._persistent:  # it closed its output, but may run on
                with suppress(subprocess.TimeoutExpired):
                    run.process.wait(_CLOSING)
            else:
                run.process.wait(self._timeout)
        except (queue.Empty, subprocess.TimeoutExpired) as error:
            self._stop()
            limit = f"{self._timeout:g} {'second' if self._timeout == 1 else 'seconds'}"
            raise self.failure(f"took longer than its timeout of {limit}") from error
        except BaseException:  # the oracle gave up: a late answer would answer the next call
            self._stop()
            raise
        self._stop()
        if self._persistent or run.process.returncode != 0:
            raise self.failure(f"ended with exit code {run.process.returncode}")
        return printed

    def failure(self, what: str) -> ProblemError:
        """Return an error that ends with the end of the program's standard error."""
        stderr = self._stderr if self._run is None else self._run.stderr()
        text = stderr.decode(errors="replace").strip()
        wrote = f" It wrote: {text[-_SHOWN:]}" if text else ""
        return ProblemError(f"{self.name} {what}.{wrote}")

    def _running(self) -> _Run:
        if self._run is None or self._run.process.poll() is not None:
            self._stop()
            try:
                self._run = _Run(self._command, self._persistent)
            except OSError as error:
                raise ProblemError(f"{self.name} cannot be started: {error}") from error
            self._end = weakref.finalize(self, self._run.end)  # with this thread, and at exit
        return self._run

    def _stop(self) -> None:
        if self._run is not None:
            self._stderr = self._run.stderr()
            self._end()
            self._run = None


class _Run:
    """A running program, and a thread, which waits for its pipe on every system."""

    def __init__(self, command: list[str], persistent: bool) -> None:
        self._owner, pipe = os.getpid(), subprocess.PIPE
        self._errors = tempfile.TemporaryFile(prefix="lodl-")  # noqa: SIM115 - closed by `end`
        try:
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True
            )
        except OSError:
            self._errors.close()
            raise
        self.calls: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._pass_on, args=(persistent,), daemon=True)
        self._thread.start()

    def stderr(self) -> bytes:
        """Return what the program has written to standard error so far."""
        self._errors.seek(0)
        return self._errors.read()

    def end(self) -> None:
        """End the program, everything that it started, and the thread."""
        if self._owner != os.getpid():  # a forked process leaves its parent's program alone
            return
        if os.name == "posix":
            with suppress(OSError):  # all have ended
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()
        self.calls.put(None)
        self._thread.join(_CLOSING)
        self._errors.close()

    def _pass_on(self, persistent: bool) -> None:
        stdin: Any = self.process.stdin
        stdout: Any = self.process.stdout
        for call in iter(self.calls.get, None):
            with suppress(OSError):  # it has ended, and prints no more
                stdin.write(call)
                stdin.flush() if persistent else stdin.close()
            self.answers.put(stdout.readline() if persistent else stdout.read())
        for pipe in (stdin, stdout):
            with suppress(OSError):  # unwritten input stays unwritten
                pipe.close()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    kinds, kind = "numbers, strings, lists, dicts and arrays", type(value).__name__
    raise InvalidInputError(f"A context for a program must be made of {kinds}, got a {kind}.")
