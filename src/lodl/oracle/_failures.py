"""Failed solver calls: what is tolerated (`Options`), their status, number and wording."""

import pickle
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, get_args

import numpy as np

from lodl._arrays import check_number
from lodl._typing import InstanceContext
from lodl.errors import InvalidInputError, LodlError, OracleError, ShapeError


class Status(IntEnum):
    """The outcome of a solver call."""

    PENDING = 0
    OK = 1
    RAISED = 2
    NON_FINITE = 3
    WRONG_SHAPE = 4
    NO_OPTIMUM = 5  # not called: the call at the instance's own label failed
    BAD_POINT = 6  # not called: the point is not finite
    DIED = 7  # the call ended its worker process
    TIMED_OUT = 8


# Plain numbers: NumPy compares arrays with members of an enum ten times more slowly.
PENDING, OK, NO_OPTIMUM = map(int, (Status.PENDING, Status.OK, Status.NO_OPTIMUM))

OnFailure = Literal["raise", "skip"]

_HINTS = {
    Status.DIED: "A solver that crashes, or runs out of memory, ends its process.",
    Status.TIMED_OUT: "Use a longer `timeout`, or give the solver a time limit of its own.",
    Status.BAD_POINT: "See the problem's `project`, or the sampler.",
    Status.NON_FINITE: "Is the point outside what the solver accepts? Give it a `project`.",
}
_SKIP = 'To go on without failing samples, use on_failure="skip".'
RETRY = 'To try them again, use on_failure="raise" or another store.'


class FailedCall(BaseException):
    """A call that failed without an exception of the solver."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Options:
    """The options of an oracle about calls that fail or take too long; see `Oracle`."""

    timeout: float | None
    on_failure: OnFailure
    max_failure_rate: float

    def __post_init__(self) -> None:
        if self.on_failure not in get_args(OnFailure):
            got = repr(self.on_failure)
            raise InvalidInputError(f'`on_failure` must be "raise" or "skip", got {got}.')
        check_number("max_failure_rate", self.max_failure_rate, at_least=0, at_most=1)
        if self.timeout is not None:
            object.__setattr__(self, "timeout", check_number("timeout", self.timeout, above=0))

    @property
    def stops(self) -> bool:
        """Whether the first call that fails ends the run."""
        return self.on_failure == "raise"

    @property
    def is_limited(self) -> bool:
        """Whether calls have a time limit."""
        return self.timeout is not None

    def seconds(self, n_calls: int = 1) -> float:
        """Return the time that some calls may take, infinite without a limit."""
        return np.inf if self.timeout is None else n_calls * self.timeout

    def late(self) -> FailedCall:
        """Return the failure of a call that exceeded its time limit."""
        unit = "second" if self.timeout == 1 else "seconds"
        return FailedCall(Status.TIMED_OUT, f"the call took longer than {self.timeout:g} {unit}")


class TaskError(Exception):
    """A task failed outside of its solver calls, with a message and `while_unpickling`."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Failure:
    """One failed call of a task."""

    status: Status
    row: int  # row of the task
    column: int  # 0 for the label, j for point j - 1
    message: str  # in a line
    cause: BaseException | None = None  # the solver's exception, if there was one

    @classmethod
    def of(cls, error: BaseException, row: int, column: int, context: InstanceContext) -> "Failure":
        if isinstance(error, FailedCall):
            return cls(error.status, row, column, str(error))
        status = Status.WRONG_SHAPE if isinstance(error, ShapeError) else Status.RAISED
        return cls(status, row, column, what_failed(error, context), error)

    def error(self, instance: str, point: str, note: str) -> LodlError:
        """Return the error to raise, with a closing note."""
        if isinstance(self.cause, InvalidInputError):  # an argument is wrong, not the solver
            self.cause.add_note(f"This was at instance {instance}, {point}.")
            return self.cause
        hint = _HINTS.get(self.status, "")
        if not hint and point == "the label itself":
            hint = "`lodl.testing.check_problem`, with the same arguments, says more."
        skip = _SKIP if point.startswith("sample") else ""
        place = listed([describe(instance, point, self.message)])
        parts = [f"The solver failed at {place}", note, hint, skip]
        error = OracleError(" ".join(part for part in parts if part))
        error.__cause__ = self.cause
        return error

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"cause": None if self.cause is None else _portable(self.cause)}


@dataclass(eq=False)
class Tally:
    """The solver calls of an oracle, and how many of them failed."""

    n_calls: int = 0  # calls made
    n_labels: int = 0  # outcomes at labels
    n_samples: int = 0  # outcomes at other points
    failed_labels: int = 0
    failed_samples: int = 0
    first_failures: dict[str, str] = field(default_factory=dict)  # by kind
    seconds: float = 0.0  # time spent in tasks, summed over workers

    @property
    def n_outcomes(self) -> int:
        return self.n_labels + self.n_samples

    def check_rate(self, options: Options, n_planned: int, note: str) -> None:
        """Raise if more of the calls, made and planned, have failed than the options allow."""
        rate = options.max_failure_rate
        n_failed = self.failed_labels + self.failed_samples
        if not options.stops and n_failed > rate * max(n_planned, self.n_outcomes):
            raise OracleError(
                f"{self}, more than max_failure_rate={rate:g} allows. "
                f"The first of each kind: {listed(self.first_failures.values())} {note}"
            )

    def __str__(self) -> str:
        labels = f"{self.failed_labels} of {self.n_labels} labels failed"
        samples = f"{self.failed_samples} of {self.n_samples} samples failed"
        parts = [f"{labels} (their instances have no regrets)"] if self.failed_labels else []
        return ", ".join([*parts, samples] if self.failed_samples else parts)


def describe(instance: str, point: str, message: str) -> str:
    """Return the text about a failed call."""
    return f"instance {instance}, {point}: {message}"


def listed(messages: Iterable[str]) -> str:
    """Return messages as a sentence, with one full stop."""
    text = "; ".join(message.rstrip(".") for message in messages)
    return text if text.endswith(("?", "!")) else f"{text}."


def as_text(error: BaseException) -> str:
    """Return an exception's type and message."""
    is_described = isinstance(error, TaskError)  # its message has both
    return str(error) if is_described else f"{type(error).__name__}: {error}".rstrip(": ")


def what_failed(error: BaseException, context: InstanceContext) -> str:
    """Return what a problem's function raised, with a question if it may lack a context."""
    text = f"{type(error).__name__}: {error}"
    is_about_none = isinstance(error, TypeError | AttributeError) and "None" in str(error)
    if context is None and is_about_none:
        text = f"{text.rstrip('.')}. No `context` was given: does the problem need one?"
    return text


def _portable(cause: BaseException) -> BaseException:
    """Return an exception that can be pickled and still shows its traceback."""
    text = "".join(traceback.format_exception(cause))
    try:
        copy = pickle.loads(pickle.dumps(cause))  # noqa: S301 - bytes made on this line
    except Exception:  # noqa: BLE001 - some exceptions cannot be pickled, or not be rebuilt
        return RuntimeError(f"In a worker:\n{text}")
    copy.add_note(f"In a worker:\n{text}")
    return copy  # type: ignore[no-any-return]
