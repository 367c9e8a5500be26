"""`check_family`: a loss family's contract, checked on random and fitted parameters."""

import tempfile
from collections.abc import Iterator
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


def check_family(family: Family, *, dim: int = 5, zero_at_label: bool = True) -> None:
    """Check that a loss family keeps the contract `lodl` relies on.

    Checked, for random parameters and for parameters fitted to the choice of the best of `dim`
    items: shapes; that the loss is never negative, zero at the label, depends on the instance's own
    parameters only, and is convex if it claims `is_convex`; the gradient against finite
    differences; the sign of the curvature; that the loss is linear in the parameters that `degrees`
    names; that a fit and a fallback have finite parameters that keep `non_negative`; that NumPy and
    torch agree (if torch is installed); and that a saved loss can be loaded. Not checked: how well
    `fit` repeats regrets. Raises a `FamilyError` with one line per finding.

    Args:
        family: The family to check.
        dim: Number of values in a label.
        zero_at_label: Whether the loss is zero at the label for all parameters.

    Example:
        >>> lodl.testing.check_family(lodl.DirectedWeightedMSE())
    """
    check_can_fit(family, check_count("dim", dim, minimum=2))
    rng = np.random.default_rng(0)
    answers = [_choice_of_the_best(dim, rng) for _ in range(_N_INSTANCES)]
    fits = [dict(family.fit(instance)) for instance in answers]
    findings = list(_fit_findings(family, answers, fits[0], dim))
    if not findings:
        shapes = family.parameter_shapes(dim).items()
        random = {name: rng.standard_normal((_N_INSTANCES, *shape)) for name, shape in shapes}
        random |= {name: np.abs(v) for name, v in random.items() if name in family.non_negative}
        both = {"random": random, "fitted": stack_parameters(family, fits)}
        d = rng.standard_normal((_N_INSTANCES, _N_ERRORS, dim))
        for kind, phi in both.items():
            broken = _formula_findings(family, phi, d, zero_at_label, rng)
            findings += (f"{kind} parameters: {finding}" for finding in broken)
        findings += _file_findings(family, np.stack([a.y for a in answers]), both["fitted"])
    if findings:
        raise FamilyError("\n- ".join([f"{family} breaks the contract:", *findings]))


def _choice_of_the_best(dim: int, rng: np.random.Generator) -> Answers:
    """Return answers of a problem that chooses the best item, slopes included."""
    y, d = rng.standard_normal(dim), rng.standard_normal((_N_SAMPLES, dim))
    best, items = (y + d).argmax(axis=1), np.eye(dim)
    return Answers(y, y + d, y.max() - y[best], best, items[y.argmax()] - items)


def _fit_findings(
    family: Family, answers: list[Answers], fit: dict[str, Any], dim: int
) -> Iterator[str]:
    """Check the parameters that `fit`, `fit_many` and `fallback` return."""
    many = family.fit_many(answers)
    if len(many) != len(answers):
        yield f"`fit_many` returns {len(many)} results for {len(answers)} instances."
    fallback = family.fallback(cost=1.0, scale=np.ones(dim))
    for method, phi in [("fit", fit), ("fallback", fallback), *(("fit_many", phi) for phi in many)]:
        shapes = {name: np.shape(value) for name, value in phi.items()}
        expected = shapes_like(family, shapes, dim)
        if shapes != expected:
            yield f"`{method}` must return parameters of the shapes {expected}, got {shapes}."
            continue
        for name, value in phi.items():
            if not np.isfinite(value).all():
                yield f"`{method}` returns {name!r} with values that are not finite."
            if name in family.non_negative and np.min(value, initial=0) < 0:
                yield f"`{method}` returns a negative {name!r}, which is in `non_negative`."


def _formula_findings(
    family: Family, phi: dict[str, Array], d: Array, zero_at_label: bool, rng: np.random.Generator
) -> Iterator[str]:
    results = {of: getattr(family, of)(phi, d) for of in ("value", "gradient", "curvature")}
    for method, result in results.items():
        expected = d.shape[:2] if method == "value" else d.shape
        if np.shape(result) != expected:
            yield f"`{method}` must return shape {expected}, got {np.shape(result)}."
            return
    value, gradient, curvature = results.values()
    if (value < 0).any():
        advice = "If a parameter must not be negative, name it in `non_negative`."
        yield f"the loss is negative, as low as {value.min():.3g}. {advice}"
    if zero_at_label and np.abs(family.value(phi, 0 * d)).max() > 0:
        yield "the loss is not zero at the label."
    share = rng.random((*value.shape, 1))
    between = family.value(phi, share * d + (1 - share) * d[:, ::-1])
    chord = share[..., 0] * value + (1 - share[..., 0]) * value[:, ::-1]
    if family.is_convex and (between > chord + _TOLERANCE * (1 + chord)).any():
        yield "the loss lies above a chord, so it is not convex as `is_convex` says."
    steps = np.eye(d.shape[-1]) * _STEP
    slopes = [(family.value(phi, d + h) - family.value(phi, d - h)) / (2 * _STEP) for h in steps]
    if not _agree(gradient, np.stack(slopes, axis=-1), _TOLERANCE):
        yield "`gradient` is not the derivative of `value`."
    yield from _term_findings(family, phi, d, value, curvature)
    yield from _torch_findings(family, phi, d, results)


def _term_findings(
    family: Family, phi: dict[str, Array], d: Array, value: Array, curvature: Array
) -> Iterator[str]:
    alone = [
        family.value({name: rows[i : i + 1] for name, rows in phi.items()}, d[i : i + 1])
        for i in range(len(d))
    ]
    if not _agree(np.concatenate(alone), value, _TOLERANCE / 10):
        yield "the loss of an instance depends on the parameters of others."
    if family.degrees:
        weights = np.stack([phi[name] for name in family.degrees], axis=1)
        terms = (terms_of(family, d) * weights[:, np.newaxis]).sum(axis=(-2, -1))
        if not _agree(terms, value, _TOLERANCE):
            yield "the loss is not the sum of the terms that `degrees` names."
    if (curvature < 0).any() or (family.is_convex and not curvature.any()):
        yield f"`curvature` is negative or always 0, as low as {curvature.min():.3g}."


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


def _file_findings(family: Family, y: Array, phi: dict[str, Array]) -> Iterator[str]:
    loss = LearnedLoss(family, y, phi, FitErrors.empty(_N_INSTANCES), {})
    with tempfile.TemporaryDirectory() as folder:
        try:
            loss.save(Path(folder) / "loss.safetensors")
            loaded = load_loss(Path(folder) / "loss.safetensors")
        except (InvalidInputError, LossFileError) as error:
            yield f"a loss cannot be saved and loaded: {error}"
            return
    if not np.array_equal(loaded.value(y + 1.0), loss.value(y + 1.0)):
        yield "a loaded loss has different values from the saved loss."


def _agree(actual: npt.NDArray[Any], expected: Array, tolerance: float) -> bool:
    size = max(1.0, float(np.abs(expected).max()))
    return bool((np.abs(actual - expected) <= tolerance * size).all())
