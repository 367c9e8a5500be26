"""Memory of workers that train."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # as in malloc.h


def keep_freed_memory() -> None:
    """Has the C library keep what is freed, for the next step of training.

    It would give large arrays back to the system, and fresh pages for the activations of every step
    take half of the time. Only glibc has this knob.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 2**30)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
