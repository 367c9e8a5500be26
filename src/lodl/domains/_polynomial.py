"""Labels that are polynomials of joint features, the generator of Elmachtoub and Grigas.

Elmachtoub and Grigas, Smart "predict, then optimize", 2022; here as in PyEPO (Tang and Khalil,
2024), whose random numbers are drawn in the same order, so that one seed gives the same data.
"""

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.errors import InvalidInputError


def polynomial_labels(
    rng: np.random.RandomState,
    shape: tuple[int, int, int],
    *,
    degree: int,
    noise: float,
    scale: float = 1.0,
) -> tuple[Array, Array]:
    """Draw features and labels.

        x ~ N(0, I_p),   B_jk ~ Bernoulli(1/2),   e_j ~ U[1 - noise, 1 + noise]
        y_j = scale * ((B_j x / sqrt(p) + 3)^degree + 1) / 3.5^degree * e_j

    A linear model cannot follow a degree above 1; no model can predict the noise.

    Args:
        rng: Legacy random generator, whose numbers never change.
        shape: Number of instances, of features p, and of entries of a label.
        degree: Degree of the polynomial, at least 1.
        noise: Half width of the multiplicative noise, in [0, 1].
        scale: Size of the labels.

    Returns:
        x of shape (n, p), and y of shape (n, n_outputs).
    """
    n, n_features, n_outputs = shape
    check_count("n_features", n_features)
    check_count("degree", degree)
    check_noise(noise)
    matrix = rng.binomial(1, 0.5, size=(n_outputs, n_features)).astype(np.float64)
    x = rng.normal(size=(n, n_features))
    y = scale * ((x @ matrix.T / np.sqrt(n_features) + 3) ** degree + 1) / 3.5**degree
    y *= rng.uniform(1 - noise, 1 + noise, size=y.shape)
    return x, y


def legacy_rng(seed: int) -> np.random.RandomState:
    """Return NumPy's legacy generator, which PyEPO uses."""
    return np.random.RandomState(check_count("seed", seed, minimum=0))


def check_noise(noise: float) -> None:
    """Check that a half width leaves the noise positive."""
    if not 0 <= noise <= 1:
        raise InvalidInputError(f"`noise` must be between 0 and 1, got {noise!r}.")
