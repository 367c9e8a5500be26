import pytest
import torch

from lodl import domains
from lodl_benchmarks.runner import initialisations, predict


@pytest.mark.parametrize("make", [domains.linear_model, domains.web_advertising, domains.portfolio])
def test_a_domains_own_model_maps_its_features_to_its_labels(make):
    domain = make(sizes=(4, 2, 2))
    models = initialisations(domain, 2)
    layers = [layer for layer in models[0] if isinstance(layer, torch.nn.Linear)]
    assert layers[0].in_features == domain.model.n_features
    assert layers[-1].out_features == domain.model.n_outputs
    assert predict(models, domain.splits.train.x).shape == (2, *domain.splits.train.y.shape)
