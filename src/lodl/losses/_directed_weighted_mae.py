"""`DirectedWeightedMAE`: absolute error with a weight per coordinate and sign, for kinked costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lodl._arrays import check_number
from lodl._typing import Array
from lodl.losses._family import Parameters, Tensor
from lodl.losses._least_squares import RidgeFamily, Standardised, solve_nnls
from lodl.losses._weighted_mse import directed_weights
from lodl.oracle import Answers

_PULL = 0.01  # ridge penalty of a weight per squared label size, as for squared errors


@dataclass(frozen=True)
class DirectedWeightedMAE(RidgeFamily):
    r"""Absolute error with separate weights for over- and under-prediction.

        f(d) = sum_i [ w+_i max(d_i, 0) + w-_i max(-d_i, 0) ],                     w >= 0
             + sum_i [ s+_i max(d_i, 0)^2 + s-_i max(-d_i, 0)^2 ] if `squares`,    s >= 0

    2 D weights, 4 D with squares. Use it if the cost of an error starts at the label with a slope:
    shortages, excess, recourse, penalties. Losses made of squares are flat at the label and cannot
    see such a cost where the model errs little. With one label and no constraints it is the
    pinball loss whose minimum is the newsvendor's quantile w- / (w+ + w-).

    Boosting gets the curvature of the parabola that touches the loss at `d` and lies above it
    everywhere (Hunter and Lange, 2000), bounded by `width`, the size of the sampled errors:

        (w+_i + w-_i) / (2 max(|d_i|, width_i)) + 2 s_i

    Quasi-Newton learners need a continuous gradient: with `rounding`, |d_i| is d_i^2 / (2 h) within
    h = rounding * width_i of the label, and |d_i| - h / 2 outside.

    Example:
        >>> def cost(order, demand):
        ...     return float(np.maximum(order - demand, 4 * (demand - order)).sum())
        >>> shop = lodl.problem(lambda y_hat: y_hat, cost, sense="min")
        >>> y, family = np.array([[10.0], [12.0]]), lodl.DirectedWeightedMAE(ridge=0.0)
        >>> loss = lodl.learn_loss(shop, y, family=family)
        >>> loss.phi["w_minus"] / loss.phi["w_plus"]  # too small an order costs four times as much
        array([[4.],
               [4.]])
    """

    squares: bool = False  #: Whether squares are added, for costs that grow faster than the error.
    #: The least weight, as a share of the mean fitted weight of the instance, with errors in units
    #: of their size. A side without weight lets predictions run off.
    min_weight: float = 1e-3
    ridge: float = 1.0  #: Strength of the pull towards one weight for all coordinates and sides.
    rounding: float = 0.0  #: Where the kink is rounded, in units of `width`; 0: the absolute error.
    is_convex = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("rounding", self.rounding, at_least=0)

    @property
    def _weights(self) -> Mapping[str, int]:
        """The weights and the degrees of their terms."""
        return {"w_plus": 1, "w_minus": 1} | ({"s_plus": 2, "s_minus": 2} if self.squares else {})

    @property
    def degrees(self) -> Mapping[str, int]:  # type: ignore[override]
        """The power of the error that each parameter multiplies."""  # or the site shows dict's
        return {} if self.rounding else self._weights  # a rounded kink has no degree

    @property
    def non_negative(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self._weights, "width")

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(self.non_negative, (dim,))

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        size = abs(d)
        if self.rounding:
            within, h = self._within_kink(phi, size)
            size = (h == 0) * size + within * (size - within / 2) / (h + (h == 0))
        value = (directed_weights(phi, d) * size).sum(-1)
        return value + (directed_weights(phi, d, "s") * d * d).sum(-1) if self.squares else value

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        slope = (d > 0) * phi["w_plus"][:, None] - (d < 0) * phi["w_minus"][:, None]
        if self.rounding:
            within, h = self._within_kink(phi, abs(d))
            slope = slope * ((h == 0) + within / (h + (h == 0)))
        return slope + 2 * directed_weights(phi, d, "s") * d if self.squares else slope

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        distance = abs(d).clip(min=phi["width"][:, None])
        both_sides = (phi["w_plus"] + phi["w_minus"])[:, None]
        kinks = both_sides / (2 * distance + (distance == 0))
        return kinks + 2 * directed_weights(phi, d, "s") if self.squares else kinks

    def rounded(self, rounding: float) -> DirectedWeightedMAE:
        return replace(self, rounding=rounding)

    def _within_kink(self, phi: Parameters, size: Tensor) -> tuple[Tensor, Tensor]:
        """Return |d| clipped to the width h of the rounded kink, and h."""
        h = self.rounding * phi["width"][:, None]
        return size.clip(max=h), h

    def fit(self, answers: Answers) -> dict[str, Array]:
        """Solve the non-negative least squares problem, then lift the weights to the floor."""
        data = Standardised.of(answers)
        n_samples, dim = data.d.shape
        kinks = np.hstack([np.maximum(data.d, 0.0), np.maximum(-data.d, 0.0)])
        columns = np.hstack([kinks, np.square(kinks)]) if self.squares else kinks
        alike = solve_nnls(columns.reshape(n_samples, -1, 2 * dim).sum(axis=-1), data.regret)
        towards = np.repeat(alike, 2 * dim) * np.tile(data.is_perturbed, len(self._weights))
        pull = self.ridge * _PULL * dim**2
        w = solve_nnls(columns, data.regret, ridge=pull, towards=towards)
        rows = np.maximum(w, self.min_weight * w.mean()).reshape(-1, dim)
        phi = {
            name: row * data.regret_scale / data.d_scale**degree
            for row, (name, degree) in zip(rows, self._weights.items(), strict=True)
        }
        return {**phi, "width": data.d_scale}

    def fallback(self, *, cost: float, scale: Array) -> dict[str, Array]:
        """Return an absolute error if there are no squares: cost * mean_i |d_i| / scale_i."""
        highest, weights = max(self._weights.values()), self._weights.items()
        phi = {w: cost / len(scale) * (degree == highest) / scale**degree for w, degree in weights}
        return {**phi, "width": scale}
