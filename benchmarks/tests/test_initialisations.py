import pytest
import torch

from lodl_benchmarks import domains
from lodl_benchmarks.runner import initialisations, predict
from lodl_benchmarks.runner._task import ModelShape


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (domains.DOMAINS["linear_model"], ModelShape(1, 1, (), "identity")),
        (domains.web_advertising, ModelShape(10, 10, (500,), "relu")),
        (domains.portfolio, ModelShape(28, 1, (500,), "tanh")),
    ],
)
def test_a_domains_model_is_the_papers_and_maps_its_features_to_its_labels(make, shape):
    domain = make(sizes=(4, 2, 2))
    assert ModelShape.of(domain) == shape
    models = initialisations(domain, 2)
    layers = [layer for layer in models[0] if isinstance(layer, torch.nn.Linear)]
    assert layers[0].in_features == shape.n_features
    assert layers[-1].out_features == shape.n_outputs
    assert predict(models, domain.splits.train.x).shape == (2, *domain.splits.train.y.shape)
