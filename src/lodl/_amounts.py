"""Numbers in the objective's unit, as people write them."""

import math

_DIGITS = 3  # that matter


def amounts(*values: float) -> list[str]:
    """Return numbers that are read beside each other, all with the same decimals.

    The largest has three significant digits or all of those before its point; thousands are apart.

    Example:
        >>> from lodl._amounts import amounts
        >>> amounts(86.2041, 30.536), amounts(9783.21)
        (['86.2', '30.5'], ['9,783'])
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    before = math.floor(math.log10(max(sizes))) + 1 if sizes else _DIGITS
    if not -6 < before < 13:
        return [f"{value:.3g}" for value in values]
    decimals = max(_DIGITS - before, 0) if sizes else 0
    return [f"{value:z,.{decimals}f}" for value in values]
