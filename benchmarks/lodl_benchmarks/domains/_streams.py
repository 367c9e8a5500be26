"""Independent random generators for the parts of a domain's data."""

import numpy as np

from lodl._arrays import check_count


def streams(purpose: str, seed: int, n_streams: int) -> list[np.random.Generator]:
    """Return independent random generators: draws from one do not change another."""
    seed = check_count("seed", seed, minimum=0)
    sequence = np.random.SeedSequence([seed, *purpose.encode()])
    return [np.random.default_rng(child) for child in sequence.spawn(n_streams)]
