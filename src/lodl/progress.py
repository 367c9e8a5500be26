"""A progress bar on a terminal, silence elsewhere."""

from typing import Any

from tqdm import tqdm


def progress_bar(total: int, *, unit: str, description: str, enabled: bool) -> "tqdm[Any]":
    """Returns a bar with amount done, rate and time left; off when not on a terminal."""
    return tqdm(
        total=total,
        unit=f" {unit}",
        unit_scale=True,
        desc=description,
        dynamic_ncols=True,
        disable=None if enabled else True,  # None: tqdm looks for a terminal itself
    )
