"""A failed oracle call, told across processes."""

import pickle
import traceback
from dataclasses import dataclass
from typing import Any

from lodl.errors import OracleError, ShapeError
from lodl.oracle._panel import SampleStatus


@dataclass(frozen=True)
class Failure:
    """One failed oracle call.

    Attributes:
        status: What kind of failure.
        instance: Number of the instance.
        sample: Number of the sample, None for the call at the label itself.
        message: What happened, in a line.
        cause: The oracle's exception, if there was one.
    """

    status: SampleStatus
    instance: int
    sample: int | None
    message: str
    cause: Exception | None = None

    @classmethod
    def of(cls, cause: Exception, instance: int, sample: int | None) -> "Failure":
        """Returns the failure that an exception of the oracle stands for."""
        is_shape = isinstance(cause, ShapeError)
        status = SampleStatus.WRONG_SHAPE if is_shape else SampleStatus.RAISED
        return cls(status, instance, sample, f"{type(cause).__name__}: {cause}", cause)

    def __str__(self) -> str:
        place = "the label itself" if self.sample is None else f"sample {self.sample}"
        return f"instance {self.instance}, {place}: {self.message}"

    def error(self, note: str) -> OracleError:
        """Returns the error to raise, with its cause and a note on what became of the rest."""
        error = OracleError(f"The oracle failed at {str(self).rstrip('.?!')}. {note} {self._hint}")
        error.__cause__ = self.cause
        return error

    @property
    def _hint(self) -> str:
        if self.sample is None:
            return (
                "Does the problem need a `context`? Let `lodl.testing.check_problem` look at it, "
                "with the same arguments."
            )
        return (
            "Is the candidate outside what the solver accepts? Give the problem a `project`. To go "
            'on without failing samples, use on_failure="skip".'
        )

    def __getstate__(self) -> dict[str, Any]:
        cause = None if self.cause is None else _portable(self.cause)
        return self.__dict__ | {"cause": cause}


def _portable(cause: Exception) -> Exception:
    """Returns an exception that survives pickling and still tells its traceback."""
    text = "".join(traceback.format_exception(cause))
    try:
        copy = pickle.loads(pickle.dumps(cause))  # noqa: S301 - bytes made on this line
    except Exception:  # noqa: BLE001 - some exceptions cannot be pickled, or not be rebuilt
        return RuntimeError(f"In a worker:\n{text}")
    copy.add_note(f"In a worker:\n{text}")
    return copy  # type: ignore[no-any-return]
