"""Multilayer perceptrons, as the paper trains them."""

from collections import OrderedDict
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from lodl._arrays import check_count
from lodl.errors import InvalidInputError

Output = Literal["identity", "relu", "tanh"]
_OUTPUTS = {"identity": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}


def mlp(
    n_features: int,
    label_shape: tuple[int, ...],
    *,
    hidden: tuple[int, ...] = (500,),
    output: Output = "identity",
    n_items: int | None = None,
    seed: int = 0,
) -> nn.Sequential:
    """Build a network of ReLU layers from features to a label; linear where `hidden` is empty.

    Args:
        n_features: Size of the last axis of the features.
        label_shape: Shape of a label.
        hidden: Width of each hidden layer.
        output: Activation of the last layer.
        n_items: Number of items if features have shape (n, n_items, n_features), and the same
            network predicts each item's part of the label. Defaults to features (n, n_features).
        seed: Random seed for the initial weights.
    """
    if output not in _OUTPUTS:
        raise InvalidInputError(f"`output` must be one of {', '.join(_OUTPUTS)}, got {output!r}.")
    n_items = 1 if n_items is None else check_count("n_items", n_items)
    n_outputs, n_left = divmod(torch.Size(label_shape).numel(), n_items)
    if n_left:
        wanted = f"the size of the label {tuple(label_shape)}"
        raise InvalidInputError(f"`n_items` must divide {wanted}, got {n_items}.")
    widths = [n_features, *hidden, n_outputs]
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for i, (n_in, n_out) in enumerate(pairwise(widths)):
            if i > 0:
                layers[f"relu{i}"] = nn.ReLU()
            layers[f"linear{i + 1}"] = nn.Linear(n_in, n_out)
    layers["output"] = _OUTPUTS[output]()
    layers["flat"] = nn.Flatten()
    layers["label"] = nn.Unflatten(1, tuple(label_shape))
    return nn.Sequential(layers)
