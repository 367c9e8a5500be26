"""Curves of true regret and learned losses through labels."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_predictions
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError, LodlError
from lodl.losses import LearnedLoss
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.problems._problem import check_instances, check_predicted, projected

_N_INSTANCES = 3
_N_COORDINATES = 2
_SPAN = 3.0  # scales of the sampled noise on either side of the label along a coordinate
_PREDICTION_SPAN = 1.5  # the slice towards a prediction goes half as far beyond it


@dataclass(frozen=True, eq=False)
class _Probe:
    """True regret and learned loss at the same points, for some of the instances."""

    oracle: Oracle  # calls the solver
    index: npt.NDArray[np.intp]  # the positions of the instances among all
    y: Array  # their labels
    context: Context  # their contexts, or None

    @classmethod
    def at(
        cls, index: npt.NDArray[np.intp], problem: Problem | Oracle, y: Array, context: Context
    ) -> Self:
        """Take the instances `index` from all labels and contexts."""
        contexts = None if context is None else [context[i] for i in index]
        return cls(Oracle.of(problem, progress=False), index, y[index], contexts)

    def project(self, points: Array) -> Array:
        """Return points of shape (m, n, *label_shape) in the problem's valid range."""
        flat = points.reshape(-1, *points.shape[2:])
        return projected(self.oracle.problem, flat).reshape(points.shape)

    def regret(self, points: Array) -> Array:
        """Return the true regret of points (m, n, *label_shape), shape (m, n)."""
        try:
            return self.oracle.regret(points, self.y, context=self.context)
        except LodlError as error:
            error.add_note(f"Instances are numbered within {self.index.tolist()}.")
            raise

    def loss(self, loss: LearnedLoss, points: Array) -> Array:
        """Return the learned loss of points (m, n, *label_shape), shape (m, n)."""
        d = np.moveaxis(points - self.y, 0, 1).reshape(len(self.y), len(points), loss.dim)
        return np.asarray(loss.family.value(loss.subset(self.index).phi, d)).T


@dataclass(frozen=True, eq=False)
class _Lines:
    """A line through the label of each chosen instance: y + offset * step."""

    directions: list[str]  # name of each line
    offsets: Array  # positions along the lines, shape (n_points,)
    steps: Array  # direction vectors, shape (n, *label_shape)


def loss_slices(
    loss: LearnedLoss | Mapping[str, LearnedLoss],
    problem: Problem | Oracle,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_hat: npt.ArrayLike | None = None,
    instances: npt.ArrayLike | None = None,
    label_names: Sequence[str] | None = None,
    n_points: int = 41,
) -> dict[str, Any]:
    """Return one-dimensional slices of true regret and learned losses through labels.

    Each instance is cut along the two coordinates in which the true regret rises most within three
    scales of the sampled noise, and towards its prediction if there is one. Points are projected
    into the problem's valid range, as sampled points are.

    Args:
        loss: A learned loss, or several for the same instances, by name.
        problem: Its solver is called twice per coordinate of the label and once per point of a
            slice, for each instance.
        y: The labels that the losses were learned for.
        context: One entry per instance, or None.
        y_hat: Predictions for all instances, shape (n, *label_shape), or None.
        instances: The instances to cut. Defaults to the three with the largest mean regret of
            their samples.
        label_names: Names of the numbers in a label, to call the coordinates by; None counts them.
        n_points: Number of points on a slice: odd, so that the label is one of them.

    Returns:
        JSON values: "kind", "title", "oracle_calls" and "slices", each slice with "instance",
        "direction" (a name), "offsets" (along a coordinate in units of the label; towards a
        prediction, 1 is the prediction), "regret", and under "loss" a list for each name.

    Raises:
        InvalidInputError: An argument is not what was expected.
        OracleError: A solver call failed.
    """
    labels, context = check_instances(Oracle.of(problem).problem, y, context)
    losses = _check_losses(loss, labels)
    n_points = _check_odd(n_points)
    index = _choose_instances(next(iter(losses.values())), instances)
    probe = _Probe.at(index, problem, labels, context)
    lines = list(_coordinate_lines(losses, probe, label_names, n_points))
    if y_hat is not None:
        predictions, _, _ = check_predicted(Oracle.of(problem).problem, y_hat, y)
        steps = (check_predictions(predictions, labels) - labels)[index]
        offsets = np.linspace(-_PREDICTION_SPAN, _PREDICTION_SPAN, n_points)
        lines.append(_Lines(["towards the prediction"] * len(index), offsets, steps))
    slices = _cut(lines, losses, probe)
    return {
        "kind": "slices",
        "title": "True regret and learned loss through the label",
        "oracle_calls": probe.oracle.n_calls,
        "slices": slices,
    }


def _cut(
    lines: list[_Lines], losses: Mapping[str, LearnedLoss], probe: _Probe
) -> list[dict[str, Any]]:
    """Return regrets and losses along the lines, instance by instance."""
    points = [probe.y + np.multiply.outer(line.offsets, line.steps) for line in lines]
    inside = probe.project(np.concatenate(points))
    shape = (len(lines), -1, len(probe.y))
    regret = probe.regret(inside).reshape(shape)
    values = {name: probe.loss(loss, inside).reshape(shape) for name, loss in losses.items()}
    return [
        {
            "instance": int(instance),
            "direction": line.directions[i],
            "offsets": line.offsets.tolist(),
            "regret": regret[j, :, i].tolist(),
            "loss": {name: value[j, :, i].tolist() for name, value in values.items()},
        }
        for i, instance in enumerate(probe.index)
        for j, line in enumerate(lines)
    ]


def _coordinate_lines(
    losses: Mapping[str, LearnedLoss],
    probe: _Probe,
    label_names: Sequence[str] | None,
    n_points: int,
) -> Iterator[_Lines]:
    """Yield a line along each of the coordinates in which the true regret rises most."""
    span = _SPAN * max(_scale(loss, probe.y) for loss in losses.values())
    label_shape = probe.y.shape[1:]
    units = np.stack([_unit(i, label_shape) for i in range(math.prod(label_shape))])
    ends = probe.y + span * np.concatenate([units, -units])[:, np.newaxis]
    regrets = probe.regret(probe.project(ends)).reshape(2, len(units), len(probe.y))
    ranked = np.argsort(-regrets.sum(axis=0), axis=0, kind="stable")[:_N_COORDINATES]
    for coordinates in ranked:
        names = [
            label_names[i] if label_names else _coordinate_name(i, label_shape) for i in coordinates
        ]
        yield _Lines(names, np.linspace(-span, span, n_points), units[coordinates])


def _unit(coordinate: int, label_shape: tuple[int, ...]) -> Array:
    unit = np.zeros(label_shape)
    unit.flat[coordinate] = 1.0
    return unit


def _coordinate_name(coordinate: int, label_shape: tuple[int, ...]) -> str:
    place = [int(i) for i in np.unravel_index(coordinate, label_shape)]
    return f"coordinate {place[0] if len(place) == 1 else tuple(place)}"


def _scale(loss: LearnedLoss, y: Array) -> float:
    """Return the scale of the sampled noise, or of the labels if it is not known."""
    scale = loss.provenance.get("scale")
    if isinstance(scale, Mapping):
        scale = scale["max"]
    return float(scale or np.std(y) or 1.0)


def _check_losses(
    loss: LearnedLoss | Mapping[str, LearnedLoss], y: npt.ArrayLike
) -> dict[str, LearnedLoss]:
    losses = {type(loss.family).__name__: loss} if isinstance(loss, LearnedLoss) else dict(loss)
    if not losses:
        raise InvalidInputError("`loss` must hold at least one learned loss, got none.")
    for loss in losses.values():
        loss.check_labels(y)
    return losses


def _choose_instances(loss: LearnedLoss, instances: npt.ArrayLike | None) -> npt.NDArray[np.intp]:
    if instances is not None:
        loss.subset(instances)  # checks them
        return np.asarray(instances, dtype=np.intp)
    regret = np.nan_to_num(np.asarray(loss.errors.mean_regret), nan=-np.inf)
    return np.argsort(-regret, kind="stable")[:_N_INSTANCES]


def _check_odd(n_points: int) -> int:
    if check_count("n_points", n_points, minimum=3) % 2 == 0:
        raise InvalidInputError(
            f"`n_points` must be odd, so that the label is one of the points, got {n_points}."
        )
    return n_points
