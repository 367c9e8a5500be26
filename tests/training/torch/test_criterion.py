import numpy as np
import pytest
import torch

from lodl import learn_loss
from lodl.domains import TopK
from lodl.errors import InvalidInputError
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMSE,
    FitErrors,
    LearnedLoss,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)
from lodl.samplers import AllPerturbed
from lodl.training.torch import LearnedLossModule, _criterion

FAMILIES = [
    WeightedMSE(),
    DirectedWeightedMSE(),
    Quadratic(rank=2),
    DirectedQuadratic(rank=2),
    DecisionHinges(max_decisions=4),
    DecisionRanking(max_decisions=4),
    NeuralLoss(n_units=5),
]
N, LABEL_SHAPE = 7, (2, 3)


def learned(family, seed=0):
    rng = np.random.default_rng(seed)
    shapes = family.parameter_shapes(6)
    return LearnedLoss(
        family=family,
        y=rng.standard_normal((N, *LABEL_SHAPE)),
        phi={name: rng.random((N, *shape)) for name, shape in shapes.items()},
        errors=FitErrors.empty(N),
        provenance={},
    )


@pytest.fixture(params=FAMILIES, ids=lambda family: type(family).__name__)
def loss(request):
    return learned(request.param)


def predictions(n, *in_front):
    return np.random.default_rng(1).standard_normal((*in_front, n, *LABEL_SHAPE))


def test_it_is_the_learned_loss(loss):
    index, y_hat = np.array([4, 0, 4]), predictions(3)
    module = LearnedLossModule(loss, reduction="none").double()
    value = module(torch.as_tensor(y_hat), torch.as_tensor(index))
    assert value.dtype == torch.float64
    assert value.numpy() == pytest.approx(loss.value(y_hat, index), rel=1e-6)


def test_autograd_gives_the_learned_loss_gradient(loss):
    index = np.array([1, 5])
    y_hat = torch.as_tensor(predictions(2)).requires_grad_()
    LearnedLossModule(loss, reduction="sum").double()(y_hat, torch.as_tensor(index)).backward()
    gradient = loss.gradient(y_hat.detach().numpy(), index)
    assert y_hat.grad.numpy() == pytest.approx(gradient, rel=1e-5, abs=1e-8)


def test_predictions_of_several_models_score_as_one_by_one(loss):
    module = LearnedLossModule(loss, reduction="none")
    y_hats = torch.as_tensor(predictions(4, 2, 3), dtype=torch.float32)
    index = torch.tensor([0, 6, 2, 2])
    together = module(y_hats, index)
    assert together.shape == (2, 3, 4)
    assert torch.allclose(together[1, 2], module(y_hats[1, 2], index), rtol=1e-5)


def test_reductions_are_those_of_torch(loss):
    y_hat, index = torch.as_tensor(predictions(N), dtype=torch.float32), torch.arange(N)
    each = LearnedLossModule(loss, reduction="none")(y_hat, index)
    assert torch.allclose(LearnedLossModule(loss)(y_hat, index), each.mean())
    assert torch.allclose(LearnedLossModule(loss, reduction="sum")(y_hat, index), each.sum())


def test_labels_and_parameters_are_buffers_and_nothing_is_trained(loss):
    module = LearnedLossModule(loss)
    assert not list(module.parameters())
    assert {"y", *(f"phi_{name}" for name in loss.phi)} == set(dict(module.named_buffers()))
    other = LearnedLossModule(learned(loss.family, seed=5))
    other.load_state_dict(module.state_dict())
    y_hat, index = torch.as_tensor(predictions(2), dtype=torch.float32), torch.tensor([0, 1])
    assert torch.equal(other(y_hat, index), module(y_hat, index))


@pytest.mark.slow
def test_it_compiles_to_the_same_values(loss):
    module = LearnedLossModule(loss, reduction="none")
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    y_hat, index = torch.as_tensor(predictions(3), dtype=torch.float32), torch.tensor([1, 2, 3])
    assert torch.allclose(compiled(y_hat, index), module(y_hat, index), rtol=1e-5)


def test_buffers_follow_to_another_device(loss):
    module = LearnedLossModule(loss, reduction="none").to(device="meta")
    assert {buffer.device.type for buffer in module.buffers()} == {"meta"}
    assert module(torch.empty(2, *LABEL_SHAPE, device="meta"), [0, 1]).device.type == "meta"


def test_gradients_of_each_instance_by_vmap_are_those_of_autograd(loss):
    module = LearnedLossModule(loss, reduction="sum").double()
    y_hat, index = torch.as_tensor(predictions(3)), torch.tensor([5, 0, 5])
    one_by_one = torch.vmap(torch.func.grad(lambda y_hat, i: module(y_hat[None], i[None])))
    leaf = y_hat.clone().requires_grad_()
    module(leaf, index).backward()
    torch.testing.assert_close(one_by_one(y_hat, index), leaf.grad)


@pytest.mark.parametrize("as_index", [list, np.array, lambda i: torch.tensor(i, dtype=torch.uint8)])
def test_an_index_may_be_anything_that_lists_whole_numbers(as_index):
    module = LearnedLossModule(learned(WeightedMSE()), reduction="none")
    y_hat = torch.as_tensor(predictions(3), dtype=torch.float32)
    expected = module(y_hat, torch.tensor([1, 0, 1]))
    assert torch.equal(module(y_hat, as_index([1, 0, 1])), expected)


def test_predictions_may_be_more_precise_than_the_module(loss):
    y_hat = torch.as_tensor(predictions(3))
    value = LearnedLossModule(loss, reduction="none")(y_hat, [4, 0, 4])
    assert value.dtype == torch.float64
    assert value.numpy() == pytest.approx(loss.value(y_hat.numpy(), [4, 0, 4]), rel=1e-4)


@pytest.fixture
def criterion():
    return LearnedLossModule(learned(WeightedMSE()), reduction="none")


def test_without_an_index_predictions_are_of_all_instances(loss):
    criterion = LearnedLossModule(loss, reduction="none")
    y_hat = torch.as_tensor(predictions(N, 2), dtype=torch.float32)
    assert torch.equal(criterion(y_hat), criterion(y_hat, torch.arange(N)))
    with pytest.raises(InvalidInputError, match=r"`y_hat` must have shape .* and \(7,\)"):
        criterion(y_hat[:, 1:])


@pytest.mark.parametrize(("index", "wrong"), [([3, -1], -1), ([0, N], N), ([N + 5, N], N + 5)])
def test_an_index_out_of_range_is_an_error(criterion, index, wrong):
    with pytest.raises(
        InvalidInputError, match=f"`index` must be from 0 to 6, .* 7 instances, got {wrong}"
    ):
        criterion(torch.zeros(2, *LABEL_SHAPE), torch.tensor(index))


@pytest.mark.parametrize(
    "index", [[0.0, 1.0], [True, False], [[0], [1]], 0, [None], ["a", "b"], "ab"]
)
def test_an_index_that_is_no_list_of_whole_numbers_is_an_error(criterion, index):
    with pytest.raises(InvalidInputError, match="`index` must be a list of whole numbers, got"):
        criterion(torch.zeros(2, *LABEL_SHAPE), index)


@pytest.mark.parametrize("index", [[], torch.arange(0)])
def test_an_empty_batch_is_an_error(criterion, index):
    with pytest.raises(InvalidInputError, match="`index` must name at least one instance"):
        criterion(torch.zeros(0, *LABEL_SHAPE), index)


def test_it_works_in_a_loop_with_a_data_loader():
    loss = learned(Quadratic(rank=2))
    x = torch.as_tensor(predictions(N), dtype=torch.float32)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, torch.arange(N)), batch_size=3
    )
    model, criterion = torch.nn.Linear(3, 3), LearnedLossModule(loss)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    epochs = []
    for _ in range(20):
        total = 0.0
        for features, index in loader:
            optimiser.zero_grad()
            value = criterion(model(features), index)
            value.backward()
            optimiser.step()
            total += value.item()
        epochs.append(total)
    assert epochs[-1] < 0.9 * epochs[0]


def test_it_says_what_it_holds():
    module = LearnedLossModule(learned(WeightedMSE()))
    assert "WeightedMSE" in repr(module)
    assert "n_instances=7" in repr(module)


@pytest.mark.parametrize(
    ("y_hat", "index"),
    [
        (torch.zeros(3, 2, 3), torch.arange(2)),
        (torch.zeros(3, 6), torch.arange(3)),
        (torch.zeros(3, 2, 1), torch.arange(3)),
        (torch.zeros(2, 3), torch.arange(1)),
    ],
)
def test_shapes_that_do_not_match_are_an_error(criterion, y_hat, index):
    with pytest.raises(InvalidInputError, match=r"`y_hat` must have shape \(n, \*\(2, 3\)\)"):
        criterion(y_hat, index)


def test_an_unknown_reduction_is_an_error():
    with pytest.raises(InvalidInputError, match='`reduction` must be "mean", "sum" or "none"'):
        LearnedLossModule(learned(WeightedMSE()), reduction="average")


def test_in_double_precision_no_digit_of_a_label_is_lost():
    y = 1e8 + np.random.default_rng(0).random((6, 3))
    loss = learn_loss(TopK(1), y, family=WeightedMSE(), sampler=AllPerturbed(1.0), n_samples=50)
    module = LearnedLossModule(loss, reduction="none", dtype=torch.float64)
    assert not module(torch.from_numpy(y), torch.arange(6)).any()
    y_hat = torch.from_numpy(y + 0.3)
    np.testing.assert_allclose(module(y_hat, torch.arange(6)), loss.value(y + 0.3), rtol=1e-6)


def scores(loss, y_hat, index):
    """Return losses and their gradient, each instance weighted differently."""
    leaf = y_hat.clone().requires_grad_()
    values = LearnedLossModule(loss, reduction="none")(leaf, index)
    (values * torch.arange(1.0, values.numel() + 1).reshape(values.shape)).sum().backward()
    return values.detach(), leaf.grad


@pytest.mark.parametrize("in_front", [(), (2,)])
@pytest.mark.parametrize("index", [None, [4, 0, 4, 1]])
def test_large_batches_are_evaluated_in_parts(loss, index, in_front, monkeypatch):
    n = N if index is None else len(index)
    y_hat = torch.as_tensor(predictions(n, *in_front), dtype=torch.float32)
    whole = scores(loss, y_hat, index)
    monkeypatch.setattr(_criterion, "_MAX_AT_ONCE", 0)
    monkeypatch.setattr(_criterion, "_N_CACHED", 20)
    for ours, expected in zip(scores(loss, y_hat, index), whole, strict=True):
        assert torch.allclose(ours, expected, rtol=1e-4, atol=1e-5)
    module = LearnedLossModule(loss, reduction="none")
    with torch.no_grad():
        assert torch.allclose(module(y_hat, index), whole[0], rtol=1e-5)
    by_func = torch.func.grad(lambda y_hat: module(y_hat, index).sum())(y_hat)
    leaf = y_hat.clone().requires_grad_()
    module(leaf, index).sum().backward()
    assert torch.allclose(by_func, leaf.grad)


@pytest.mark.parametrize("in_front", [(), (2,)])
@pytest.mark.parametrize("index", [None, [4, 0, 4, 1]])
@pytest.mark.parametrize("max_at_once", [0, 2**21])
def test_slopes_by_formula_are_those_of_autograd(loss, index, in_front, max_at_once, monkeypatch):
    monkeypatch.setattr(_criterion, "_MAX_AT_ONCE", max_at_once)
    monkeypatch.setattr(_criterion, "_N_CACHED", 20)
    module = LearnedLossModule(loss, "sum", dtype=torch.float64)
    y_hat = torch.as_tensor(predictions(N if index is None else len(index), *in_front))
    leaf = y_hat.requires_grad_()
    module(leaf, index).backward()
    slopes = module.gradient(leaf, index)
    assert not slopes.requires_grad
    torch.testing.assert_close(slopes, leaf.grad)


def test_large_batches_have_second_derivatives(monkeypatch):
    module = LearnedLossModule(learned(Quadratic()), reduction="sum").double()
    y_hat = torch.as_tensor(predictions(2))
    expected = torch.autograd.functional.hessian(lambda y_hat: module(y_hat, [0, 4]), y_hat)
    monkeypatch.setattr(_criterion, "_MAX_AT_ONCE", 0)
    monkeypatch.setattr(_criterion, "_N_CACHED", 20)
    hessian = torch.autograd.functional.hessian(lambda y_hat: module(y_hat, [0, 4]), y_hat)
    torch.testing.assert_close(hessian, expected)
