"""A failed oracle call, and what to say about it."""

import pickle
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lodl._typing import InstanceContext
from lodl.errors import InvalidInputError, LodlError, OracleError, ShapeError
from lodl.problems._what_failed import what_failed


class Status(IntEnum):
    """What became of an oracle call."""

    PENDING = 0
    OK = 1
    RAISED = 2
    NON_FINITE = 3
    WRONG_SHAPE = 4
    NO_OPTIMUM = 5  # not called: the oracle failed at the instance's own label
    BAD_CANDIDATE = 6  # not called: it is not finite
    DIED = 7  # the call ended its worker process
    TIMED_OUT = 8


PENDING, OK, NO_OPTIMUM = (int(one) for one in (Status.PENDING, Status.OK, Status.NO_OPTIMUM))
"""As plain numbers: NumPy compares arrays with members of an enum ten times more slowly."""

_HINTS = {
    Status.DIED: "A solver that crashes, or runs out of memory, ends its process.",
    Status.TIMED_OUT: "Use a longer `timeout`, or give the solver a time limit of its own.",
    Status.BAD_CANDIDATE: "See the problem's `project`, or the sampler.",
    Status.NON_FINITE: "Is the point outside what the solver accepts? Give it a `project`.",
}
_SKIP = 'To go on without failing samples, use on_failure="skip".'


class FailedCall(BaseException):
    """A call that failed without an exception of the oracle's own, with what became of it."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Failure:
    """One failed oracle call."""

    status: Status
    row: int  # of the task
    column: int  # 0 for the call at the label itself, else 1 + the number of the sample
    message: str  # what happened, in a line
    cause: BaseException | None = None  # the oracle's exception, if there was one

    @classmethod
    def of(cls, error: BaseException, row: int, column: int, context: InstanceContext) -> "Failure":
        """Return the failure that an exception stands for."""
        if isinstance(error, FailedCall):
            return cls(error.status, row, column, str(error))
        status = Status.WRONG_SHAPE if isinstance(error, ShapeError) else Status.RAISED
        return cls(status, row, column, what_failed(error, context), error)

    def error(self, instance: str, place: str, note: str) -> LodlError:
        """Return the error to raise, with its cause and a note on what became of the rest."""
        if isinstance(self.cause, InvalidInputError):  # an argument is wrong, not the solver
            self.cause.add_note(f"This was at instance {instance}, {place}.")
            return self.cause
        hint = _HINTS.get(self.status, "")
        if not hint and place == "the label itself":
            hint = "`lodl.testing.check_problem`, with the same arguments, says more."
        skip = _SKIP if place.startswith("sample") else ""
        where = listed([describe(instance, place, self.message)])
        parts = [f"The solver failed at {where}", note, hint, skip]
        error = OracleError(" ".join(part for part in parts if part))
        error.__cause__ = self.cause
        return error

    def __getstate__(self) -> dict[str, Any]:
        cause = None if self.cause is None else _portable(self.cause)
        return self.__dict__ | {"cause": cause}


def describe(instance: str, place: str, message: str) -> str:
    """Return the text about a failed call, given the names of the instance and of the point."""
    return f"instance {instance}, {place}: {message}"


def listed(messages: Iterable[str]) -> str:
    """Return messages as a sentence, with one full stop."""
    text = "; ".join(message.rstrip(".") for message in messages)
    return text if text.endswith(("?", "!")) else f"{text}."


def _portable(cause: BaseException) -> BaseException:
    """Return an exception that survives pickling and still shows its traceback."""
    text = "".join(traceback.format_exception(cause))
    try:
        copy = pickle.loads(pickle.dumps(cause))  # noqa: S301 - bytes made on this line
    except Exception:  # noqa: BLE001 - some exceptions cannot be pickled, or not be rebuilt
        return RuntimeError(f"In a worker:\n{text}")
    copy.add_note(f"In a worker:\n{text}")
    return copy  # type: ignore[no-any-return]
