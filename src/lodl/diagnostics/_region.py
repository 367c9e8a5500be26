"""Where candidates were sampled, and where predictions lie."""

from dataclasses import dataclass

import numpy as np

from lodl.diagnostics._oracle import Oracle
from lodl.losses import LearnedLoss
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed
from lodl.typing import Array

_N_DRAWS = 200  # an instance; they need no oracle call
_MOST = 0.99
_BY_NAME = {one.__name__: one for one in (AllPerturbed, OnePerturbed, TwoPerturbed)}


@dataclass(frozen=True)
class Region:
    """How errors of predictions compare with the errors that were sampled around the same labels.

    The size of an error is the root mean square of the coordinates that are wrong, in units of the
    sampler's scale.

    Attributes:
        scale: The sampler's scale, the largest if it has several.
        size_ratio: Size of a prediction's error over that of a typical sample; the median.
        share_outside: Share of predictions with an error, or one coordinate of it, that is larger
            than in 99 % of the samples.
        share_inside: Share of predictions with an error smaller than 99 % of the samples.
    """

    scale: float
    size_ratio: float
    share_outside: float
    share_inside: float


def sampler_of(loss: LearnedLoss) -> Sampler | None:
    """Returns the sampler that a loss was learned with, None where its provenance cannot tell."""
    kind = _BY_NAME.get(str(loss.provenance.get("sampler")))
    scale = loss.provenance.get("scale")
    return kind(scale) if kind is not None and isinstance(scale, int | float) else None


def locate(y_hat: Array, y: Array, *, oracle: Oracle, sampler: Sampler, seed: int) -> Region:
    """Compares predictions with draws of the sampler, at the instances of the oracle.

    Args:
        y_hat: Predictions of all instances.
        y: Their labels: a scale of "auto" is their deviation.
        oracle: Which instances to look at, and what is a valid prediction.
        sampler: The sampler of all instances.
        seed: Of the draws.
    """
    scale = np.broadcast_to(sampler.resolve_scale(y), y.shape[1:])
    centres = sampler.centres(y)
    rng = np.random.default_rng(seed)
    found = []
    for i, label in zip(oracle.index, oracle.y, strict=True):
        noise = sampler.noise(rng, _N_DRAWS, label.shape)
        drawn = oracle.project((centres[i] + scale * noise)[:, np.newaxis])[:, 0]
        is_sampled = scale > 0  # the others are known
        sampled = (drawn - label)[:, is_sampled] / scale[is_sampled]
        error = (y_hat[i] - label)[np.newaxis, is_sampled] / scale[is_sampled]
        found.append(_compare(error, sampled))
    ratio, is_outside, is_inside = np.array(found).T
    known = ratio[np.isfinite(ratio)]
    return Region(
        scale=float(scale.max()),
        size_ratio=float(np.median(known)) if len(known) else np.nan,
        share_outside=float(is_outside.mean()),
        share_inside=float(is_inside.mean()),
    )


def _compare(error: Array, sampled: Array) -> tuple[float, bool, bool]:
    """Returns the ratio of sizes, and whether an error (1, D) is larger or smaller than samples."""
    size, sizes = _size(error)[0], _size(sampled)
    largest, largest_sampled = np.abs(error).max(), np.abs(sampled).max(axis=1)
    is_outside = size > np.quantile(sizes, _MOST) or largest > np.quantile(largest_sampled, _MOST)
    typical = np.median(sizes)
    ratio = size / typical if typical > 0 else np.nan
    return float(ratio), bool(is_outside), bool(size < np.quantile(sizes, 1 - _MOST))


def _size(errors: Array) -> Array:
    """Returns the root mean square of the coordinates that are wrong, shape (k,)."""
    n_wrong = np.maximum(np.count_nonzero(errors, axis=1), 1)
    return np.asarray(np.sqrt(np.square(errors).sum(axis=1) / n_wrong))
