"""What fitting asks of a set of oracle samples."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lodl._answers import Answers
from lodl._typing import Array


class Samples(Protocol):
    """The oracle's answers about many instances, read one instance at a time."""

    @property
    def n_instances(self) -> int:
        """Number of instances."""

    @property
    def y(self) -> Array:
        """True labels, shape (n_instances, *label_shape)."""

    def select(self, indices: Sequence[int], /) -> "Samples":
        """Return the samples of some instances, light enough to be sent to a worker."""

    def instance(self, index: int, /) -> Answers:
        """Return the answers about one instance."""

    def provenance(self) -> Mapping[str, Any]:
        """Return where the samples came from, as JSON values."""
