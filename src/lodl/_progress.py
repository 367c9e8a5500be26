"""Progress for users: a bar on a terminal, times as text, and log messages on request."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(
    total: int, *, unit: str, description: str, enabled: bool, delay: float = 0.0
) -> "tqdm[Any]":
    """Return a bar that appears after `delay` seconds on a terminal or in a notebook."""
    return _bar_type()(
        total=total,
        unit=f" {unit}",
        unit_scale=True,
        desc=description,
        dynamic_ncols=True,
        miniters=1,  # the time alone decides when to draw, so that no thread has to watch the bar
        delay=delay,
        # None: tqdm looks for a terminal itself. The output of a notebook is none.
        disable=True if not enabled else False if "ipykernel" in sys.modules else None,
    )


@cache
def _bar_type() -> "type[tqdm[Any]]":
    """Return a tqdm class whose lock is not shared: a killed fork may never release it."""
    from tqdm import tqdm  # slow to import

    class Bar(tqdm):  # type: ignore[type-arg]  # generic in the stubs only
        monitor_interval = 0

    Bar.set_lock(RLock())
    return Bar


def duration(seconds: float) -> str:
    """Return a time in seconds, minutes or hours: "3.2 s"."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


@contextmanager
def shown_logs(are_shown: bool = True) -> Iterator[None]:
    """Show messages of level INFO on standard error, unless logging is already configured."""
    logger, handler = logging.getLogger("lodl"), logging.StreamHandler()
    level = logger.level
    if are_shown:
        handler.setFormatter(logging.Formatter("%(message)s"))
        if not logger.hasHandlers():
            logger.addHandler(handler)
        logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
