"""Where candidates were sampled, and where predictions lie."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.evaluation._answers import Oracle
from lodl.losses import LearnedLoss
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed

_N_DRAWS = 200  # an instance; they need no oracle call
_MOST = 0.99
_TRACE = 0.1  # of the size of an error
_BY_NAME = {one.__name__: one for one in (AllPerturbed, OnePerturbed, TwoPerturbed)}


@dataclass(frozen=True)
class Region:
    """How errors of predictions compare with the errors that were sampled around the same labels.

    The size of an error is the root mean square of the coordinates that are wrong, in units of the
    sampler's scale.

    Attributes:
        scale: The sampler's scale, the largest if it has several.
        size_ratio: Size of a prediction's error over that of a typical sample; the median.
        n_at_once: The most coordinates that one sample has noise on.
        share_wider: Share of predictions with more than a tenth of the error outside their
            `n_at_once` worst coordinates: errors of so many together were not sampled.
        share_outside: Share of predictions with an error that is wider than samples, or is larger,
            as a whole or in one coordinate, than in 99 % of them.
        share_inside: Share of predictions with an error smaller than 99 % of the samples, and no
            wider.
    """

    scale: float
    size_ratio: float
    n_at_once: int
    share_wider: float
    share_outside: float
    share_inside: float


def sampler_of(loss: LearnedLoss) -> Sampler | None:
    """Returns the sampler that a loss was learned with, None where its provenance cannot tell."""
    kind = _BY_NAME.get(str(loss.provenance.get("sampler")))
    scale = "auto" if loss.provenance.get("scale_is_auto") else loss.provenance.get("scale")
    return kind(scale) if kind is not None and isinstance(scale, int | float | str) else None


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
    is_sampled = scale > 0  # the other coordinates are known
    centres = sampler.centres(y)
    rng = np.random.default_rng(seed)
    found = []
    for i, label in zip(oracle.index, oracle.y, strict=True):
        noise = sampler.noise(rng, _N_DRAWS, label.shape)
        # Before the projection: what it takes back is a limit of the problem, not of the sampler.
        n_noisy = np.count_nonzero(noise[:, is_sampled], axis=1).max()
        drawn = oracle.project((centres[i] + scale * noise)[:, np.newaxis])[:, 0]
        sampled = (drawn - label)[:, is_sampled] / scale[is_sampled]
        error = (y_hat[i] - label)[np.newaxis, is_sampled] / scale[is_sampled]
        found.append((*_compare(error, sampled), _is_wider(error[0], n_noisy), n_noisy))
    ratio, is_larger, is_smaller, is_wider, n_at_once = np.array(found).T
    known = ratio[np.isfinite(ratio)]
    return Region(
        scale=float(scale.max()),
        size_ratio=float(np.median(known)) if len(known) else np.nan,
        n_at_once=int(n_at_once.max()),
        share_wider=float(is_wider.mean()),
        share_outside=float(np.maximum(is_larger, is_wider).mean()),
        share_inside=float((is_smaller * (1 - is_wider)).mean()),
    )


def _compare(error: Array, sampled: Array) -> tuple[float, bool, bool]:
    """Returns the ratio of sizes, and whether an error (1, D) is larger or smaller than samples."""
    sampled = sampled[sampled.any(axis=1)]  # the valid range took the others back to the label
    if not len(sampled):
        return np.nan, bool(error.any()), False
    size, sizes = _size(error)[0], _size(sampled)
    largest, largest_sampled = np.abs(error).max(), np.abs(sampled).max(axis=1)
    is_larger = size > np.quantile(sizes, _MOST) or largest > np.quantile(largest_sampled, _MOST)
    return (
        float(size / np.median(sizes)),
        bool(is_larger),
        bool(size < np.quantile(sizes, 1 - _MOST)),
    )


def _is_wider(error: Array, n_at_once: int) -> bool:
    """Tells whether more than a trace of an error (D,) is outside its `n_at_once` worst parts."""
    squares = np.sort(np.square(error))
    return bool(squares[: len(squares) - n_at_once].sum() > _TRACE**2 * squares.sum())


def _size(errors: Array) -> Array:
    """Returns the root mean square of the coordinates that are wrong, shape (k,)."""
    n_wrong = np.maximum(np.count_nonzero(errors, axis=1), 1)
    return np.asarray(np.sqrt(np.square(errors).sum(axis=1) / n_wrong))
