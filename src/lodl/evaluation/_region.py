"""Where candidates were sampled, and where predictions lie."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.evaluation._probe import Probe
from lodl.losses import LearnedLoss
from lodl.samplers import (
    AllPerturbed,
    AtPredictions,
    OnePerturbed,
    Sampler,
    TwoPerturbed,
)

_N_DRAWS = 200  # per instance; they need no oracle call
_MOST = 0.99
_TRACE = 0.1  # share of the size of an error
_BY_NAME = {one.__name__: one for one in (AllPerturbed, OnePerturbed, TwoPerturbed)}


@dataclass(frozen=True)
class Region:
    """How the errors of predictions compare with the errors sampled around the same labels.

    The size of an error is the root mean square of the coordinates that are wrong, in units of the
    sampler's scale.

    Attributes:
        scale: The sampler's scale, the largest if there is one per coordinate.
        size_ratio: Size of a prediction's error divided by that of a typical sample; the median.
        n_at_once: Maximum number of coordinates with noise in one sample.
        share_wider: Share of predictions with more than a tenth of their error outside their
            `n_at_once` worst coordinates: no sample has errors in so many coordinates at once.
        share_outside: Share of predictions whose error is wider than the samples, or larger than
            99% of them, as a whole or in one coordinate.
        share_inside: Share of predictions whose error is smaller than 99% of the samples, and not
            wider.
    """

    scale: float
    size_ratio: float
    n_at_once: int
    share_wider: float
    share_outside: float
    share_inside: float


def sampler_of(loss: LearnedLoss) -> Sampler | None:
    """Return the sampler a loss was learned with, or None if its provenance does not record it."""
    kind = _BY_NAME.get(str(loss.provenance.get("sampler")))
    scale = "auto" if loss.provenance.get("scale_is_auto") else loss.provenance.get("scale")
    return kind(scale) if kind is not None and isinstance(scale, int | float | str) else None


def is_one_sided(loss: LearnedLoss) -> bool:
    """Return whether a loss was learned only where a model predicts, not around labels."""
    draws = loss.provenance.get("draws", [loss.provenance])
    return all(one.get("sampler") == AtPredictions.__name__ for one in draws)


def locate_predictions(
    y_hat: Array, y: Array, *, probe: Probe, sampler: Sampler, seed: int
) -> Region:
    """Compare predictions with samples around the same labels.

    Args:
        y_hat: Predictions of all instances.
        y: Labels of all instances; a scale of "auto" is their standard deviation.
        probe: The instances to look at, and the valid range of predictions.
        sampler: The sampler of all instances.
        seed: Random seed for the samples.
    """
    scale = np.broadcast_to(sampler.resolve_scale(y), y.shape[1:])
    is_sampled = scale > 0  # the other coordinates are known
    centres = sampler.centres(y)
    rng = np.random.default_rng(seed)
    found = []
    for i, label in zip(probe.index, probe.y, strict=True):
        noise = sampler.noise(rng, _N_DRAWS, label.shape)
        # Counted before the projection, whose limits are the problem's and not the sampler's.
        n_noisy = np.count_nonzero(noise[:, is_sampled], axis=1).max()
        drawn = probe.project((centres[i] + scale * noise)[:, np.newaxis])[:, 0]
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
    """Return the ratio of sizes, and whether an error (1, D) is larger or smaller than samples."""
    sampled = sampled[sampled.any(axis=1)]  # projection took the others back to the label
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
    """Return whether more than a trace of an error (D,) is outside its `n_at_once` worst parts."""
    squares = np.sort(np.square(error))
    return bool(squares[: len(squares) - n_at_once].sum() > _TRACE**2 * squares.sum())


def _size(errors: Array) -> Array:
    """Return the root mean square of the coordinates that are wrong, shape (k,)."""
    n_wrong = np.maximum(np.count_nonzero(errors, axis=1), 1)
    return np.asarray(np.sqrt(np.square(errors).sum(axis=1) / n_wrong))
