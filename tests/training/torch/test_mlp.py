import pytest
import torch

from lodl.errors import InvalidInputError
from lodl.training.torch import mlp


def test_a_seed_gives_the_same_initialisation_and_leaves_the_global_stream_alone():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    first = mlp(3, (5, 2), seed=7)
    assert torch.rand(1) == expected
    assert torch.equal(first[0].weight, mlp(3, (5, 2), seed=7)[0].weight)
    assert not torch.equal(first[0].weight, mlp(3, (5, 2), seed=8)[0].weight)


def test_a_component_wise_model_treats_items_alike_and_a_joint_one_does_not():
    x = torch.randn(4, 5, 3)
    component_wise = mlp(3, (5, 2), n_items=5, hidden=(8,))
    shuffled = component_wise(x[:, [1, 0, 2, 3, 4]])
    assert torch.allclose(shuffled[:, [1, 0, 2, 3, 4]], component_wise(x))
    assert mlp(15, (5, 2), hidden=(8,))(x.flatten(1)).shape == (4, 5, 2)


@pytest.mark.parametrize(
    ("output", "low", "high"), [("identity", -9, 9), ("relu", 0, 9), ("tanh", -1, 1)]
)
def test_the_output_is_in_its_range(output, low, high):
    torch.manual_seed(0)
    y_hat = mlp(3, (2,), output=output, hidden=(50,))(3 * torch.randn(100, 3))
    assert low <= y_hat.min() < y_hat.max() <= high
    assert (y_hat.min() < 0) == (low < 0)


def test_no_hidden_layer_is_a_linear_model():
    model = mlp(1, (50,), hidden=(), n_items=50)
    assert sum(p.numel() for p in model.parameters()) == 2


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"output": "sigmoid"}, "`output` must be one of identity, relu, tanh, got 'sigmoid'"),
        ({"n_items": 3}, r"`n_items` must divide the size of the label \(5, 2\), got 3"),
        ({"n_items": 0}, "`n_items` must be a whole number of at least 1, got 0"),
    ],
)
def test_a_model_that_cannot_be_is_an_error(argument, message):
    with pytest.raises(InvalidInputError, match=message):
        mlp(3, (5, 2), **argument)
