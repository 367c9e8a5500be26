"""`check_family`: a loss family's contract, checked on random and fitted parameters."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, require
from lodl._typing import Array
from lodl.errors import FamilyError, InvalidInputError, LossFileError, MissingExtraError
from lodl.losses import Family, FitErrors, LearnedLoss, load_loss
from lodl.losses._family import check_can_fit, shapes_like, stack_parameters
from lodl.losses._pooled import terms_of
from lodl.oracle import Answers

_N_INSTANCES, _N_ERRORS, _N_SAMPLES = 3, 20, 60
_STEP = 1e-6
_TOLERANCE = 1e-4  # relative error of finite differences; a tenth of it for orders of summation


def check_family(
    family: Family, *, dim: int = 5, zero_at_label: bool = True, random_state: int = 0
) -> None:
    """Check that a loss family keeps the contract `lodl` relies on.

    Checked, for random parameters and for parameters fitted to the choice of the best of `dim`
    items: shapes; that the loss is never negative, zero at the label, and convex along segments if
    it claims `is_convex`; the gradient against finite differences; the shape and
    the sign of the curvature; that the loss is linear in the parameters that `degrees` names; that
    a fit and a fallback have finite parameters of the right shapes that keep `non_negative`; that
    NumPy and torch agree (if torch is installed); and that a saved loss can be loaded.

    Args:
        family: The family to check.
        dim: Number of values in a label.
        zero_at_label: Whether the loss is zero at the label for all parameters.
        random_state: Random seed for parameters and errors.

    Raises:
        InvalidInputError: An argument is not what was expected.
        FamilyError: With one line per finding.

    Example:
        >>> lodl.testing.check_family(lodl.DirectedWeightedMSE())
    """
    check_can_fit(family, check_count("dim", dim, minimum=2))
    case = _Case(family, dim, np.random.default_rng(random_state))
    findings = list(_fit_findings(case))
    if not findings:
        findings += _formula_findings("random parameters", case, case.random, zero_at_label)
        findings += _formula_findings("fitted parameters", case, case.fitted, zero_at_label)
        findings += _file_findings(case)
    if findings:
        lines = "".join(f"\n- {finding}" for finding in findings)
        raise FamilyError(f"{family} breaks the contract:{lines}")


@dataclass(frozen=True, eq=False)
class _Case:
    """A family, with answers, errors and parameters to check it on."""

    family: Family
    dim: int
    rng: np.random.Generator

    @cached_property
    def answers(self) -> list[Answers]:
        """Answers of a problem that chooses the best item, slopes included."""
        return [self._choose_the_best() for _ in range(_N_INSTANCES)]

    @cached_property
    def d(self) -> Array:
        return self.rng.standard_normal((_N_INSTANCES, _N_ERRORS, self.dim))

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self.family.parameter_shapes(self.dim)

    @cached_property
    def random(self) -> dict[str, Array]:
        phi = {}
        for name, shape in self.shapes.items():
            values = self.rng.standard_normal((_N_INSTANCES, *shape))
            phi[name] = np.abs(values) if name in self.family.non_negative else values
        return phi

    @cached_property
    def fits(self) -> list[dict[str, Any]]:
        return [dict(self.family.fit(answers)) for answers in self.answers]

    @cached_property
    def fitted(self) -> dict[str, Array]:
        return stack_parameters(self.family, self.fits)

    def _choose_the_best(self) -> Answers:
        y, d = self.rng.standard_normal(self.dim), self.rng.standard_normal((_N_SAMPLES, self.dim))
        best = (y + d).argmax(axis=1)
        items = np.eye(self.dim)
        return Answers(y, y + d, y.max() - y[best], best, items[y.argmax()] - items)


def _fit_findings(case: _Case) -> Iterator[str]:
    """Check the parameters that `fit`, `fit_many` and `fallback` return."""
    many = case.family.fit_many(case.answers)
    if len(many) != len(case.answers):
        yield f"`fit_many` returns {len(many)} results for {len(case.answers)} instances."
    fallback = case.family.fallback(cost=1.0, scale=np.ones(case.dim))
    for where, phi in (
        ("fit", case.fits[0]),
        ("fallback", fallback),
        *(("fit_many", p) for p in many),
    ):
        yield from _parameter_findings(case, where, phi)


def _parameter_findings(case: _Case, where: str, phi: dict[str, Any]) -> Iterator[str]:
    shapes = {name: np.shape(value) for name, value in phi.items()}
    expected = shapes_like(case.family, phi, case.dim)
    if shapes != expected:
        yield f"`{where}` must return parameters of the shapes {expected}, got {shapes}."
        return
    for name, value in phi.items():
        if not np.isfinite(value).all():
            yield f"`{where}` returns {name!r} with values that are not finite."
        if name in case.family.non_negative and np.min(value, initial=0) < 0:
            yield f"`{where}` returns a negative {name!r}, which is in `non_negative`."


def _formula_findings(
    what: str, case: _Case, phi: dict[str, Array], zero_at_label: bool
) -> Iterator[str]:
    family, d = case.family, case.d
    results = {"value": family.value(phi, d), "gradient": family.gradient(phi, d)}
    results["curvature"] = family.curvature(phi, d)
    for method, result in results.items():
        expected = d.shape[:2] if method == "value" else d.shape
        if np.shape(result) != expected:
            yield f"{what}: `{method}` must return shape {expected}, got {np.shape(result)}."
            return
    value = results["value"]
    if (value < 0).any():
        yield (
            f"{what}: the loss is negative, as low as {value.min():.3g}. If a parameter must not "
            "be negative, name it in `non_negative`."
        )
    if zero_at_label and np.abs(family.value(phi, 0 * d)).max() > 0:
        yield f"{what}: the loss is not zero at the label."
    if family.is_convex and not _is_convex(case, phi):
        yield f"{what}: the loss lies above a chord, so it is not convex as `is_convex` says."
    slope = _differences(lambda at: family.value(phi, at), d)
    if not _agree(results["gradient"], slope, _TOLERANCE):
        yield f"{what}: `gradient` is not the derivative of `value`."
    if family.degrees and not _agree(_sum_of_terms(family, phi, d), value, _TOLERANCE):
        yield f"{what}: the loss is not the sum of the terms that `degrees` names."
    if (results["curvature"] < 0).any():
        yield f"{what}: `curvature` is negative, as low as {results['curvature'].min():.3g}."
    yield from (f"{what}: {finding}" for finding in _torch_findings(family, phi, d, results))


def _sum_of_terms(family: Family, phi: dict[str, Array], d: Array) -> Array:
    weights = np.stack([phi[name] for name in family.degrees], axis=1)
    return np.asarray((terms_of(family, d) * weights[:, np.newaxis]).sum(axis=(-2, -1)))


def _is_convex(case: _Case, phi: dict[str, Array]) -> bool:
    a, b = case.d, case.d[:, ::-1]
    share = case.rng.random((*a.shape[:2], 1))
    between = case.family.value(phi, share * a + (1 - share) * b)
    ends = case.family.value(phi, a), case.family.value(phi, b)
    chord = share[..., 0] * ends[0] + (1 - share[..., 0]) * ends[1]
    return bool((between <= chord + _TOLERANCE * (1 + chord)).all())


def _torch_findings(
    family: Family, phi: dict[str, Array], d: Array, results: dict[str, Array]
) -> Iterator[str]:
    try:
        torch = require("torch", "torch")
    except MissingExtraError:
        return
    tensors = {name: torch.tensor(value) for name, value in phi.items()}
    for method, expected in results.items():
        result = getattr(family, method)(tensors, torch.tensor(d))
        if not isinstance(result, torch.Tensor):
            yield f"`{method}` of torch tensors must be a tensor, got {type(result).__name__}."
        elif not _agree(result.numpy(), expected, _TOLERANCE / 10):
            yield f"`{method}` differs between torch tensors and NumPy arrays."


def _file_findings(case: _Case) -> Iterator[str]:
    y = np.stack([answers.y for answers in case.answers])
    loss = LearnedLoss(case.family, y, case.fitted, FitErrors.empty(_N_INSTANCES), {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loss.safetensors"
        try:
            loss.save(path)
            loaded = load_loss(path)
        except (InvalidInputError, LossFileError) as error:
            yield f"a loss cannot be saved and loaded: {error}"
            return
    if not np.array_equal(loaded.value(y + 1.0), loss.value(y + 1.0)):
        yield "a loaded loss has different values from the saved loss."


def _differences(function: Callable[[Array], Array], d: Array) -> Array:
    """Return central differences of `function(d)` by each coordinate, on a last axis."""
    steps = np.eye(d.shape[-1]) * _STEP
    return np.stack(
        [(function(d + step) - function(d - step)) / (2 * _STEP) for step in steps], axis=-1
    )


def _agree(actual: npt.NDArray[Any], expected: Array, tolerance: float) -> bool:
    size = max(1.0, float(np.abs(expected).max()))
    return bool((np.abs(actual - expected) <= tolerance * size).all())
