"""Which instances a step of training sees."""

import torch
from torch import Tensor


class Batches:
    """Indices of the instances of each step, in a new random order in every pass.

    Args:
        n_instances: Number of training instances.
        size: Instances per step; None, or as many as there are, means all of them.
        seed: Random seed for the order.
    """

    def __init__(self, n_instances: int, size: int | None, seed: int) -> None:
        self.n_instances = n_instances
        self.size = min(size or n_instances, n_instances)
        self.generator = torch.Generator().manual_seed(seed)
        self.left = torch.arange(0)

    def next(self) -> Tensor:
        """Return the instances of the next step."""
        if self.size == self.n_instances:
            return torch.arange(self.n_instances)
        if len(self.left) < self.size:
            self.left = torch.randperm(self.n_instances, generator=self.generator)
        index, self.left = self.left[: self.size], self.left[self.size :]
        return index
