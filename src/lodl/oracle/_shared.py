"""An object that a worker unpickles once, however many tasks it is part of."""

import pickle
import threading
from functools import cached_property
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

import cloudpickle
import numpy as np
import numpy.typing as npt

T = TypeVar("T")
_Pickled = tuple[bytes, list[npt.NDArray[np.uint8]]]


class Shared(Generic[T]):
    """Holds an object for all the tasks of a run.

    A worker makes its own at the first task and keeps it for the others, so a solver that is set up
    at the first call, because it cannot be pickled, is set up once per worker and not once per
    task. Threads of a worker have one each: solvers are seldom safe to share. Arrays travel beside
    the pickled rest, so that joblib can map large ones into memory.
    """

    def __init__(self, thing: T) -> None:
        self._here: T | None = thing
        self._key = uuid4().hex

    @property
    def thing(self) -> T:
        """The object; in a worker, the one of this thread."""
        if self._here is not None:
            return self._here
        if getattr(_kept, "key", None) != self._key:
            content, buffers = self._pickled
            _kept.thing = pickle.loads(content, buffers=buffers)  # noqa: S301 - our parent's
            _kept.key = self._key
        return cast("T", _kept.thing)

    @cached_property
    def _pickled(self) -> _Pickled:
        buffers: list[pickle.PickleBuffer] = []
        content = cloudpickle.dumps(self._here, protocol=5, buffer_callback=buffers.append)
        return content, [np.frombuffer(buffer.raw(), dtype=np.uint8) for buffer in buffers]

    def __getstate__(self) -> dict[str, Any]:
        return {"_here": None, "_key": self._key, "_pickled": self._pickled}


_kept = threading.local()  # of a worker's thread: the object of one run, and its key
