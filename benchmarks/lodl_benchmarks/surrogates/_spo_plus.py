"""SPO+, the handcrafted loss for objectives that are linear in the label."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lodl._arrays import check_context, check_instance_of, check_labels, context_of
from lodl._typing import Array, Context
from lodl.problems import LinearProblem


class SPOPlus(nn.Module):
    r"""The loss of Elmachtoub and Grigas (2022), with the solver in the training loop.

        loss(y_hat, y) = -(2 y_hat - y) . z(2 y_hat - y) + 2 y_hat . z* - y . z*

    with z* = solve(y), for an objective that is minimised; for one that is maximised the sign of
    all labels and predictions is changed. It is convex, and at least the regret. The gradient is
    2 (z* - z(2 y_hat - y)). Every loss takes an oracle call, and every label one at the start.

    Args:
        problem: The problem whose solver is called.
        y: Labels, shape (n_instances, *label_shape).
        context: One entry per instance, or None.

    Attributes:
        n_calls: Oracle calls so far.
    """

    y: Tensor
    z_of_label: Tensor

    def __init__(
        self, problem: LinearProblem, y: npt.ArrayLike, *, context: Context = None
    ) -> None:
        super().__init__()
        check_instance_of(LinearProblem, "problem", problem, wanted="a `LinearProblem`")
        labels = check_labels(y)
        check_context(context, len(labels))
        self.problem = problem
        self.context = context
        self.n_calls = 0
        self.sign = 1.0 if problem.sense == "min" else -1.0
        z = self._solve(labels[np.newaxis], range(len(labels)))[0]
        self.register_buffer("y", _as_tensor(labels))
        self.register_buffer("z_of_label", _as_tensor(z))

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    def forward(self, y_hat: Tensor, index: Tensor) -> Tensor:
        """Return losses (models, n) of predictions (models, n, *label_shape)."""
        y, z_of_label = self.y[index], self.z_of_label[index]
        beyond = 2 * y_hat - y
        z = _as_tensor(self._solve(beyond.detach().double().numpy(), index.tolist()))
        losses: Tensor = (2 * y_hat * z_of_label - y * z_of_label - beyond * z).flatten(2).sum(-1)
        return self.sign * losses

    def _solve(self, y_hats: Array, instances: "range | list[int]") -> Array:
        """Return the decisions for predictions (models, n, *label_shape), in the same shape."""
        self.n_calls += y_hats.shape[0] * y_hats.shape[1]
        if self.context is None:
            zs = self.problem.solve_many(y_hats.reshape(-1, *y_hats.shape[2:]), None)
            return np.asarray(zs, dtype=np.float64).reshape(y_hats.shape)
        each = [
            np.asarray(self.problem.solve_many(y_hats[:, at], context_of(self.context, i)))
            for at, i in enumerate(instances)
        ]
        return np.stack(each, axis=1).astype(np.float64)


def _as_tensor(values: Array) -> Tensor:
    return torch.tensor(values, dtype=torch.get_default_dtype())
