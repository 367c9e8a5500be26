"""What fitting asks of a set of oracle samples."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lodl._typing import Array


class InstanceSamples(Protocol):
    """The candidates of one instance, with their regrets."""

    @property
    def y_hat(self) -> Array:
        """Candidate predictions, shape (k, *label_shape)."""

    @property
    def regret(self) -> Array:
        """What each candidate costs, shape (k,); not finite where its oracle call failed."""


class Samples(Protocol):
    """Candidates and regrets of many instances, read one instance at a time."""

    @property
    def n_instances(self) -> int:
        """Number of instances."""

    @property
    def y(self) -> Array:
        """True labels, shape (n_instances, *label_shape)."""

    def select(self, indices: Sequence[int], /) -> "Samples":
        """Returns the samples of some instances, light enough to be sent to a worker."""

    def instance(self, index: int, /) -> InstanceSamples:
        """Returns the samples of one instance."""

    def provenance(self) -> Mapping[str, Any]:
        """Returns where the samples came from, as JSON values."""
