"""Every family keeps the promises of a loss, on NumPy arrays and on torch tensors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)

torch = pytest.importorskip("torch")

FAMILIES = [
    WeightedMSE(),
    DirectedWeightedMSE(),
    DirectedWeightedMAE(),
    DirectedWeightedMAE(squares=True),
    DirectedWeightedMAE(rounding=2.0),
    Quadratic(),
    Quadratic(rank=1),
    DirectedQuadratic(),
    DirectedQuadratic(rank=1),
    DecisionHinges(max_decisions=3),
    DecisionHinges(margin=1, max_decisions=1),
    DecisionRanking(max_decisions=3),
    NeuralLoss(),
    NeuralLoss(n_layers=2, n_units=3),
]
AT_THE_LABEL = [family for family in FAMILIES if not isinstance(family, NeuralLoss)]
KINKED = [family for family in FAMILIES if isinstance(family, DirectedWeightedMAE)]
BENT = [family for family in FAMILIES if not family.uses_slopes and family not in KINKED]
CONVEX = [family for family in FAMILIES if family.is_convex]

every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)
every_family_of_the_label = pytest.mark.parametrize("family", AT_THE_LABEL, ids=repr)
every_convex_family = pytest.mark.parametrize("family", CONVEX, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few_examples = settings(deadline=None, max_examples=10, derandomize=True)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6))
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(
    "family",
    [
        *FAMILIES,
        WeightedMSE(ridge=0.0),
        DirectedWeightedMSE(ridge=0.0, min_weight=0.0),
        Quadratic(ridge=0.0),
        DecisionHinges(margin=1.0, squared_error=3.0),
        DecisionRanking(temperature=1.0, min_weight=0.1),
    ],
    ids=repr,
)
def test_the_repr_of_a_family_evaluates_to_the_same_family(family):
    assert eval(repr(family), {type(family).__name__: type(family)}) == family


def draw_phi(family, n, dim, rng, dtype=np.float64):
    phi = {
        name: rng.standard_normal((n, *shape))
        for name, shape in family.parameter_shapes(dim).items()
    }
    for name in family.non_negative:
        phi[name] = np.abs(phi[name])
    if isinstance(family, NeuralLoss):  # weights of a network as a fit would start from
        phi = {name: value / np.sqrt(max(1, value.shape[1])) for name, value in phi.items()}
    return {name: value.astype(dtype) for name, value in phi.items()}


def draw(family, shape, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    phi = draw_phi(family, shape[0], shape[2], rng, dtype)
    return phi, rng.standard_normal(shape).astype(dtype)


def to_torch(phi, d):
    return {name: torch.tensor(value) for name, value in phi.items()}, torch.tensor(d)


def difference(function, d, step):
    """Central differences of `function(d)` by each coordinate of d, on a last axis."""
    axes = np.eye(d.shape[-1]) * step
    return np.stack([(function(d + a) - function(d - a)) / (2 * step) for a in axes], axis=-1)


@every_dtype
@every_family
@few_examples
@given(shape=shapes, seed=seeds)
def test_the_loss_is_never_negative(family, dtype, shape, seed):
    phi, d = draw(family, shape, seed, dtype)
    assert (family.value(phi, d) >= 0).all()


@every_dtype
@every_family_of_the_label
@few_examples
@given(shape=shapes, seed=seeds)
def test_the_loss_is_zero_and_flat_at_the_label(family, dtype, shape, seed):
    phi, d = draw(family, shape, seed, dtype)
    assert (family.value(phi, 0 * d) == 0).all()
    assert (family.gradient(phi, 0 * d) == 0).all()


@every_dtype
@every_convex_family
@few_examples
@given(shape=shapes, seed=seeds, share=st.floats(0, 1))
def test_the_loss_is_convex_along_segments(family, dtype, shape, seed, share):
    phi, a = draw(family, shape, seed, dtype)
    _, b = draw(family, shape, seed + 1, dtype)
    between = family.value(phi, share * a + (1 - share) * b)
    chord = share * family.value(phi, a) + (1 - share) * family.value(phi, b)
    assert (between <= chord + 1e-5 * (1 + chord)).all()


def test_the_published_directed_quadratic_is_not_convex():
    phi, a = draw(DirectedQuadratic(), (1, 2000, 5), seed=0)
    b = a[:, ::-1]
    values = [DirectedQuadratic().value(phi, d) for d in (a, b, (a + b) / 2)]
    violations = values[2] > (values[0] + values[1]) / 2 + 1e-9
    assert 0.01 < violations.mean() < 0.5


def test_the_published_directed_quadratic_jumps_where_a_coordinate_changes_sign():
    phi, d = draw(DirectedQuadratic(), (1, 1, 5), seed=0)
    above, below = d.copy(), d.copy()
    above[..., 2], below[..., 2] = 0.0, -1e-12
    jump = DirectedQuadratic().value(phi, above) - DirectedQuadratic().value(phi, below)
    assert abs(jump.item()) > 0.01


@every_dtype
@every_family
@few_examples
@given(shape=shapes, seed=seeds)
def test_numpy_and_torch_agree_and_keep_their_dtype(family, dtype, shape, seed):
    phi, d = draw(family, shape, seed, dtype)
    tensors = to_torch(phi, d)
    for method in (family.value, family.gradient, family.curvature):
        array, tensor = method(phi, d), method(*tensors)
        assert array.dtype == dtype
        assert tensor.dtype == tensors[1].dtype
        np.testing.assert_allclose(array, tensor.numpy(), rtol=1e-6, atol=1e-6 * _size(array))


@every_dtype
@every_family
@few_examples
@given(shape=shapes, seed=seeds)
def test_the_gradient_is_that_of_autograd(family, dtype, shape, seed):
    phi, d = draw(family, shape, seed, dtype)
    parameters, errors = to_torch(phi, d)
    errors.requires_grad_()
    (expected,) = torch.autograd.grad(family.value(parameters, errors).sum(), errors)
    gradient = family.gradient(phi, d)
    np.testing.assert_allclose(gradient, expected.numpy(), atol=1e-5 * _size(gradient))


@every_family
@few_examples
@given(shape=shapes, seed=seeds)
def test_value_and_gradient_together_are_those_of_each(family, shape, seed):
    phi, d = draw(family, shape, seed)
    value, gradient = family.value_and_gradient(phi, d)
    tiny = 1e-14 * _size(gradient)  # sums may have another order
    np.testing.assert_allclose(value, family.value(phi, d), rtol=1e-12)
    np.testing.assert_allclose(gradient, family.gradient(phi, d), rtol=1e-12, atol=tiny)


@every_family
@few_examples
@given(shape=shapes, seed=seeds)
def test_the_gradient_is_that_of_finite_differences(family, shape, seed):
    phi, d = draw(family, shape, seed)
    expected = difference(lambda at: family.value(phi, at), d, 1e-6)
    gradient = family.gradient(phi, d)
    np.testing.assert_allclose(gradient, expected, atol=1e-5 * _size(gradient))


@pytest.mark.parametrize("family", BENT, ids=repr)
@few_examples
@given(shape=shapes, seed=seeds)
def test_the_curvature_is_the_diagonal_of_the_second_derivative(family, shape, seed):
    phi, d = draw(family, shape, seed)
    second = difference(lambda at: family.gradient(phi, at), d, 1e-6)
    curvature = family.curvature(phi, d)
    expected = np.diagonal(second, axis1=-2, axis2=-1)
    np.testing.assert_allclose(curvature, expected, atol=1e-5 * _size(curvature))
    assert (curvature >= 0).all()


@pytest.mark.parametrize("family", KINKED, ids=repr)
@few_examples
@given(shape=shapes, seed=seeds)
def test_a_parabola_of_the_curvature_lies_above_the_kink(family, shape, seed):
    phi, d = draw(family, shape, seed)
    phi["width"] = 0 * phi["width"]
    if family.squares:  # the second derivative of directed squares is no bound
        phi["s_minus"] = phi["s_plus"]
    step = np.random.default_rng(seed + 1).standard_normal(shape) * 3
    parabola = (family.gradient(phi, d) + family.curvature(phi, d) * step / 2) * step
    rise = family.value(phi, d + step) - family.value(phi, d)
    assert (rise <= parabola.sum(-1) + 1e-9).all()


@pytest.mark.parametrize("family", KINKED, ids=repr)
def test_the_curvature_of_a_kink_is_bounded_by_its_width(family):
    phi, d = draw(family, (2, 3, 4), seed=0)
    at_label, within = family.curvature(phi, 0 * d), family.curvature(phi, 0 * d + 1e-9)
    np.testing.assert_allclose(at_label, within)
    expected = (phi["w_plus"] + phi["w_minus"]) / (2 * phi["width"])
    expected = expected + 2 * phi["s_plus"] if family.squares else expected
    np.testing.assert_allclose(at_label, np.repeat(expected[:, None], 3, axis=1))
    assert np.isfinite(family.curvature({**phi, "width": 0 * phi["width"]}, 0 * d)).all()


@every_family
def test_one_error_can_be_shared_by_all_instances(family):
    phi, _ = draw(family, (3, 1, 4), seed=0)
    d = np.random.default_rng(1).standard_normal((1, 2, 4))
    everywhere = np.repeat(d, 3, axis=0)
    for method in (family.value, family.gradient, family.curvature):
        shared = np.broadcast_to(method(phi, d), method(phi, everywhere).shape)
        np.testing.assert_allclose(shared, method(phi, everywhere), atol=1e-12)


@pytest.mark.parametrize(
    "family", [f for f in AT_THE_LABEL if f not in KINKED or f.squares], ids=repr
)
def test_a_squared_error_can_stand_in(family):
    d = np.random.default_rng(0).standard_normal((1, 7, 5))
    scale = np.array([0.1, 0.2, 1.0, 10.0, 1e3])
    phi = family.fallback(cost=3.0, scale=scale)
    value = family.value({name: array[np.newaxis] for name, array in phi.items()}, d)
    np.testing.assert_allclose(value, 3.0 * np.square(d / scale).mean(axis=-1))
    shapes = family.parameter_shapes(5)
    shapes |= {name: (1, *shapes[name][1:]) for name in family.padded}
    assert {name: array.shape for name, array in phi.items()} == shapes


@pytest.mark.parametrize("family", [NeuralLoss(), DirectedWeightedMAE()], ids=repr)
def test_an_absolute_error_stands_in_if_there_are_no_squares(family):
    d = np.random.default_rng(0).standard_normal((1, 7, 5))
    scale = np.array([0.1, 0.2, 1.0, 10.0, 1e3])
    phi = family.fallback(cost=3.0, scale=scale)
    value = family.value({name: array[np.newaxis] for name, array in phi.items()}, d)
    np.testing.assert_allclose(value, 3.0 * np.abs(d / scale).mean(axis=-1))


def test_the_stand_in_of_a_narrow_network_grows_with_every_error():
    d = np.random.default_rng(0).standard_normal((1, 200, 80))
    phi = NeuralLoss().fallback(cost=3.0, scale=np.full(80, 0.1))
    value = NeuralLoss().value({name: array[np.newaxis] for name, array in phi.items()}, d)
    assert value.mean() == pytest.approx(3.0 * np.abs(d / 0.1).mean(), rel=0.1)


def _size(values):
    return max(1.0, float(np.abs(values).max()))
