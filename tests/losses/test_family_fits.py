"""Each family's fit, against independent solvers and on data that are poor."""

import numpy as np
import pytest
import scipy.optimize

from lodl.losses import (
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)
from lodl.oracle import Answers

SOLVED = [
    WeightedMSE(),
    DirectedWeightedMSE(),
    DirectedWeightedMAE(),
    DirectedWeightedMAE(squares=True),
    Quadratic(),
    Quadratic(rank=2),
    DirectedQuadratic(),
    DirectedQuadratic(rank=2),
]
FAMILIES = [*SOLVED, NeuralLoss(n_units=8)]

every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)
every_ridge_family = pytest.mark.parametrize(
    "make",
    [WeightedMSE, DirectedWeightedMSE, Quadratic],
    ids=lambda make: make.__name__,
)
every_solved_family = pytest.mark.parametrize("family", SOLVED, ids=repr)


@pytest.fixture(autouse=True)
def _torch_for_the_network(request):
    family = getattr(request.node, "callspec", None) and request.node.callspec.params.get("family")
    if isinstance(family, NeuralLoss):
        pytest.importorskip("torch")


def fit_one(family, d, regret):
    return family.fit(Answers(np.zeros(d.shape[1]), d, regret))


def value(family, phi, d):
    return family.value({name: array[np.newaxis] for name, array in phi.items()}, d[np.newaxis])[0]


def error(family, phi, d, regret):
    return np.square(value(family, phi, d) - regret).mean()


def draw_phi(family, dim, seed=0):
    rng = np.random.default_rng(seed)
    phi = {name: rng.standard_normal(s) for name, s in family.parameter_shapes(dim).items()}
    for name in family.non_negative:
        phi[name] = np.abs(phi[name])
    return {**phi, "floor": np.zeros(dim)} if "floor" in phi else phi


def test_weighted_mse_is_scipys_non_negative_least_squares(top_one):
    d, regret = top_one(300, 6)
    expected, _ = scipy.optimize.nnls(d**2, regret)
    phi = fit_one(WeightedMSE(min_weight=0, ridge=0), d, regret)
    np.testing.assert_allclose(phi["w"], expected, atol=1e-9)


def test_directed_weighted_mse_is_scipys_non_negative_least_squares(top_one):
    d, regret = top_one(300, 6)
    sides = np.hstack([np.maximum(d, 0) ** 2, np.maximum(-d, 0) ** 2])
    expected, _ = scipy.optimize.nnls(sides, regret)
    phi = fit_one(DirectedWeightedMSE(min_weight=0, ridge=0), d, regret)
    np.testing.assert_allclose(np.concatenate([phi["w_plus"], phi["w_minus"]]), expected, atol=1e-9)


def test_directed_weighted_mae_is_scipys_non_negative_least_squares(top_one):
    d, regret = top_one(300, 6)
    expected, _ = scipy.optimize.nnls(np.hstack([np.maximum(d, 0), np.maximum(-d, 0)]), regret)
    phi = fit_one(DirectedWeightedMAE(min_weight=0, ridge=0), d, regret)
    np.testing.assert_allclose(np.concatenate([phi["w_plus"], phi["w_minus"]]), expected, atol=1e-9)


def test_the_costs_of_a_newsvendor_are_found_exactly():
    d = np.random.default_rng(0).normal(size=(9, 1))
    regret = np.maximum(2.0 * d, -50.0 * d)[:, 0]
    phi = fit_one(DirectedWeightedMAE(ridge=0), d, regret)
    assert phi["w_plus"] == pytest.approx(2.0)
    assert phi["w_minus"] == pytest.approx(50.0)


def test_an_endless_ridge_leaves_a_plain_absolute_error(top_one):
    d, regret = top_one(300, 6)
    size = np.abs(d / np.sqrt(np.square(d).mean(axis=0))).sum(axis=1)
    family = DirectedWeightedMAE(ridge=1e9)
    expected = size * (size @ regret) / (size @ size)
    np.testing.assert_allclose(value(family, fit_one(family, d, regret), d), expected, rtol=1e-5)


@pytest.mark.parametrize("n_samples", [40, 400])
def test_full_rank_quadratic_is_the_optimum_over_semidefinite_matrices(top_one, n_samples):
    cvxpy = pytest.importorskip("cvxpy")
    d, regret = top_one(n_samples, 5)
    h = cvxpy.Variable((5, 5), PSD=True)
    outer = np.einsum("ki,kj->kij", d, d).reshape(n_samples, 25)
    residual = outer @ cvxpy.vec(h, order="F") - regret
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(residual) / n_samples))
    problem.solve(solver="CLARABEL")
    family = Quadratic(min_weight=0, ridge=0)
    phi = fit_one(family, d, regret)
    assert error(family, phi, d, regret) == pytest.approx(problem.value, rel=1e-5)


@pytest.mark.parametrize("two_coordinates", [False, True])
def test_full_rank_quadratic_has_a_certificate_of_optimality(top_one, two_coordinates):
    d, regret = top_one(1500, 20)
    if two_coordinates:
        rng = np.random.default_rng(1)
        d *= rng.permuted(np.arange(20) < np.full((1500, 1), 2), axis=1)
    family = Quadratic(min_weight=0, ridge=0)
    phi = fit_one(family, d, regret)
    residual = value(family, phi, d) - regret
    slack = d.T @ (d * residual[:, np.newaxis]) / len(d)
    size = np.linalg.norm(d.T @ (d * regret[:, np.newaxis]) / len(d), 2)
    assert np.linalg.eigvalsh(slack)[0] > -1e-3 * size
    assert abs(np.sum(slack * (phi["L"] @ phi["L"].T))) < 1e-4 * np.square(regret).mean()


@every_solved_family
def test_a_loss_of_the_family_is_found_again(family):
    rng = np.random.default_rng(1)
    d = rng.standard_normal((3000, 5))
    regret = value(family, draw_phi(family, 5), d)
    phi = fit_one(family, d, regret)
    assert error(family, phi, d, regret) < 0.02 * regret.var()


@pytest.mark.parametrize(
    "family",
    [
        Quadratic(rank=2, min_weight=0, ridge=0),
    ],
    ids=repr,
)
def test_descent_ends_where_the_slope_is_zero(family, top_one):
    torch = pytest.importorskip("torch")
    d, regret = top_one(500, 6)
    fitted = fit_one(family, d, regret)
    phi = {k: torch.tensor(v[np.newaxis], requires_grad=True) for k, v in fitted.items()}
    residual = family.value(phi, torch.tensor(d[np.newaxis]))[0] - torch.tensor(regret)
    residual.square().mean().backward()
    for name in phi.keys() - {"floor"}:
        slope = phi[name].grad.numpy()
        at_bound = (fitted[name] == 0) & (slope[0] > 0) if name.startswith("w") else False
        assert np.abs(np.where(at_bound, 0, slope)).max() < 5e-3 * regret.mean()


def test_a_richer_family_repeats_the_regrets_better(top_one):
    d, regret = top_one(2000, 10)
    families = [
        WeightedMSE(),
        DirectedWeightedMSE(),
        Quadratic(),
        DirectedQuadratic(),
    ]
    errors = {
        type(family): error(family, fit_one(family, d, regret), d, regret) for family in families
    }
    assert errors[DirectedWeightedMSE] < errors[WeightedMSE]
    assert errors[Quadratic] < errors[WeightedMSE]
    assert errors[DirectedQuadratic] < errors[DirectedWeightedMSE]


@pytest.mark.slow
def test_the_network_repeats_more_than_the_mean_regret(top_one):
    pytest.importorskip("torch")
    d, regret = top_one(2000, 5)
    phi = fit_one(NeuralLoss(), d, regret)
    assert error(NeuralLoss(), phi, d, regret) < 0.5 * regret.var()


@every_solved_family
@pytest.mark.parametrize(
    ("d_unit", "regret_unit"), [(1e6, 1.0), (1e-9, 1e-9), (1e-9, 1e6), (1e80, 1.0), (1e-90, 1e9)]
)
def test_the_fit_does_not_depend_on_units(family, d_unit, regret_unit, top_one):
    d, regret = top_one(200, 5)
    plain = error(family, fit_one(family, d, regret), d, regret)
    phi = fit_one(family, d * d_unit, regret * regret_unit)
    rescaled = value(family, phi, d * d_unit) / regret_unit
    assert np.square(rescaled - regret).mean() == pytest.approx(plain, rel=0.02)


@every_solved_family
def test_coordinates_may_have_units_of_their_own(family, top_one):
    d, regret = top_one(200, 5)
    units = np.array([2.0**-10, 1.0, 2.0**10, 2.0**5, 1.0])
    plain = value(family, fit_one(family, d, regret), d)
    phi = fit_one(family, d * units, regret)
    np.testing.assert_allclose(value(family, phi, d * units), plain, rtol=1e-6)


@pytest.fixture
def unseen_error(top_one):
    """Returns the mean error, on unseen samples, of fits to 60 samples of several instances."""
    draws = [top_one(1000, 20, seed) for seed in range(6)]

    def of(family):
        phis = [fit_one(family, d[:60], regret[:60]) for d, regret in draws]
        pairs = zip(phis, draws, strict=True)
        return np.mean([error(family, phi, d[60:], regret[60:]) for phi, (d, regret) in pairs])

    return of


@every_ridge_family
def test_a_regularised_fit_is_better_on_unseen_samples(make, unseen_error):
    assert unseen_error(make()) < unseen_error(make(ridge=0))


def test_a_regularised_absolute_error_is_better_on_unseen_samples(unseen_error):
    assert unseen_error(DirectedWeightedMAE()) < unseen_error(DirectedWeightedMAE(ridge=0))


@pytest.mark.parametrize(
    ("family", "smaller"),
    [(Quadratic(), WeightedMSE()), (DirectedWeightedMAE(squares=True), DirectedWeightedMSE())],
    ids=repr,
)
def test_a_family_is_no_worse_on_unseen_samples_than_one_it_contains(family, smaller, unseen_error):
    assert unseen_error(family) < 1.05 * unseen_error(smaller)


@every_ridge_family
def test_an_endless_ridge_leaves_a_plain_squared_error(make, top_one):
    d, regret = top_one(300, 6)
    size = np.square(d / np.sqrt(np.square(d).mean(axis=0))).sum(axis=1)
    family = make(ridge=1e9)
    expected = size * (size @ regret) / (size @ size)
    np.testing.assert_allclose(value(family, fit_one(family, d, regret), d), expected, rtol=1e-5)


@every_family
def test_units_are_undone_exactly(family, top_one):
    d, regret = top_one(60, 3)
    plain = value(family, fit_one(family, d, regret), d)
    phi = fit_one(family, d * 2.0**20, regret * 2.0**-30)
    np.testing.assert_allclose(value(family, phi, d * 2.0**20) * 2.0**30, plain, rtol=1e-9)


@every_family
@pytest.mark.parametrize(
    "spoil",
    [
        lambda d, regret: (d[:3], regret[:3]),
        lambda d, regret: (d * [1, 0, 1, 1, 1, 1], regret),
        lambda d, regret: (d * [1, 1e-9, 1e6, 1, 1, 1], regret),
        lambda d, regret: (0 * d, regret),
        lambda d, regret: (d, -regret),
        lambda d, regret: (d, np.ones_like(regret)),
        lambda d, regret: (np.repeat(d[:1], len(d), axis=0), regret),
        lambda d, regret: (d, np.where(np.arange(len(d)) == 7, 1e9, regret)),
    ],
    ids=["few", "unmoved", "units", "label only", "negative", "constant", "same point", "outlier"],
)
@pytest.mark.parametrize("n_samples", [12, 60])
def test_poor_data_give_finite_parameters(family, spoil, n_samples, top_one):
    d, regret = spoil(*top_one(n_samples, 6))
    phi = fit_one(family, d, regret)
    assert {name: array.shape for name, array in phi.items()} == family.parameter_shapes(6)
    assert all(np.isfinite(array).all() for array in phi.values())


@pytest.mark.parametrize("family", [WeightedMSE(), DirectedWeightedMSE()], ids=repr)
def test_no_weight_lies_below_the_floor(family, top_one):
    d, regret = top_one(300, 6)
    d[:, 2] = 0.0
    unbounded = fit_one(type(family)(min_weight=0), d, regret)
    size = np.sqrt(np.square(d).mean(axis=0))
    size[2] = np.median(np.delete(size, 2))
    floor = family.min_weight * np.mean([w * size**2 for w in unbounded.values()]) / size**2
    for name, w in fit_one(family, d, regret).items():
        np.testing.assert_allclose(w, np.maximum(unbounded[name], floor), atol=1e-15)
        assert unbounded[name][2] == 0


@pytest.mark.parametrize("make", [Quadratic, DirectedQuadratic], ids=lambda make: make.__name__)
def test_the_floor_bounds_the_curvature_from_below(make, top_one):
    d, regret = top_one(300, 6)
    d[:, 2] = 0.0  # never moved, so nothing but the floor bends the loss there
    phi = fit_one(make(min_weight=0.1), d, regret)
    rows = {name: array[np.newaxis] for name, array in phi.items()}
    moved = make().curvature(rows, np.random.default_rng(0).standard_normal((1, 500, 6)))
    mean = moved.mean()
    assert moved[..., 2].min() == pytest.approx(moved[..., 2].max())
    assert 0.05 * mean < moved[..., 2].mean() < 0.2 * mean


@pytest.mark.parametrize("family", [Quadratic(), Quadratic(rank=2)], ids=repr)
def test_a_coordinate_never_moved_costs_no_more_than_the_floor(family, top_one):
    d, regret = top_one(300, 6)
    d[:, 2] = 0.0
    axis = np.eye(6)
    cost = value(family, fit_one(family, d, regret), axis)
    assert cost[2] < 0.01 * cost.mean()
