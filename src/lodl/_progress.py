"""A progress bar on a terminal, silence elsewhere."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(
    total: int, *, unit: str, description: str, enabled: bool, delay: float = 0.0
) -> "tqdm[Any]":
    """Return a bar with the amount done, the rate and the time left; off without a terminal.

    It appears after `delay` seconds if the work is not done by then.
    """
    from tqdm import tqdm  # slow to import

    return tqdm(
        total=total,
        unit=f" {unit}",
        unit_scale=True,
        desc=description,
        dynamic_ncols=True,
        delay=delay,
        disable=None if enabled else True,  # None: tqdm looks for a terminal itself
    )
