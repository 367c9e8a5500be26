"""A progress bar on a terminal, silence elsewhere."""

from typing import Any

from tqdm import tqdm


def progress_bar(
    total: int, *, unit: str, description: str, enabled: bool, delay: float = 0.0
) -> "tqdm[Any]":
    """Returns a bar with amount done, rate and time left; off when not on a terminal.

    It appears after `delay` seconds, if there is still something to wait for.
    """
    return tqdm(
        total=total,
        unit=f" {unit}",
        unit_scale=True,
        desc=description,
        dynamic_ncols=True,
        delay=delay,
        disable=None if enabled else True,  # None: tqdm looks for a terminal itself
    )
