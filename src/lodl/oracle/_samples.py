"""Regrets of candidate predictions around every label, and the candidates drawn again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._answers import Answers
from lodl._typing import Array
from lodl._validation import check_count
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._inputs import OracleInputs
from lodl.oracle._panel import MemoryPanel, Outcomes, Panel, SampleStatus
from lodl.samplers import Sampler
from lodl.samplers._sampler import BLOCK_SIZE


@dataclass(frozen=True)
class _Counts:
    calls: int
    failures: int
    negative: int
    pending: int


@dataclass(frozen=True, eq=False)
class OracleSamples:
    """What the oracle said about candidate predictions around every label.

    Regrets are read, and candidates drawn again, when an instance is asked for: `samples[i]`.

    Attributes:
        n_samples: Candidates per instance, failed ones included.
        fingerprints: Digests of problem, labels, context and sampler.
        seconds: Time spent in tasks, summed over workers, as far as it was noted before a kill: of
            all that a store holds, the share of these samples.
        first_failures: The first message of each kind of failure.
    """

    n_samples: int
    fingerprints: Mapping[str, str]
    seconds: float
    first_failures: Mapping[str, str]
    _inputs: OracleInputs = field(repr=False)
    _optimum: Outcomes = field(repr=False)
    _regret: Panel = field(repr=False)
    _band: dict[int, Outcomes] = field(default_factory=dict, repr=False, init=False)

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Shape of one label."""
        return self.y.shape[1:]

    @property
    def y(self) -> Array:
        """Labels, shape (n_instances, *label_shape)."""
        return self._inputs.y

    @property
    def optimum(self) -> Array:
        """DL(y, y) of each instance, NaN where the oracle failed, shape (n_instances,)."""
        return self._optimum.values[:, 0]

    @property
    def sampler(self) -> Sampler:
        """The sampler."""
        return self._inputs.sampler

    @property
    def scale(self) -> Array:
        """The resolved scale of the noise."""
        return self._inputs.scale

    @property
    def seed(self) -> int:
        """The seed of all candidates."""
        return self._inputs.seed

    @property
    def n_calls(self) -> int:
        """Oracle calls these samples took, those at the labels included.

        A vectorised problem may have been asked for more: it answers whole batches.
        """
        return self._counts.calls

    @property
    def n_failures(self) -> int:
        """Samples without a regret."""
        return self._counts.failures

    @property
    def n_negative(self) -> int:
        """Samples whose decision is better than the one for the label: the solver is heuristic."""
        return self._counts.negative

    def __len__(self) -> int:
        return self.n_instances

    def __iter__(self) -> Iterator[Answers]:
        return (self.instance(i) for i in range(self.n_instances))

    def __getitem__(self, i: int) -> Answers:
        return self.instance(i)

    def instance(self, i: int) -> Answers:
        """Return the answers about instance `i`, without the calls that failed."""
        if not isinstance(i, int | np.integer):
            raise InvalidInputError(
                f"`i` must be the number of one instance, got {i!r}. "
                "Several? Use `samples.select(np.arange(start, stop))`."
            )
        if not -self.n_instances <= i < self.n_instances:
            raise IndexError(f"There are {self.n_instances} instances, got index {i}.")
        row = int(i) % self.n_instances
        outcomes = self._read_row(row)
        ok = outcomes.is_ok[0]
        blocks = range(-(-self.n_samples // BLOCK_SIZE))
        y_hat = np.concatenate([self._inputs.candidates(row, block) for block in blocks])
        numbers = np.flatnonzero(ok)
        return Answers(self.y[row], y_hat[numbers], outcomes.values[0, numbers])

    def select(self, instances: npt.ArrayLike) -> "OracleSamples":
        """Returns the samples of some instances, in memory and light enough to send to a worker.

        Args:
            instances: Numbers of instances, or a mask.
        """
        wanted = np.asarray(instances)
        rows = np.arange(self.n_instances)[wanted] if wanted.size else wanted
        if rows.size == 0:
            raise InvalidInputError("`instances` must name at least one instance, got none.")
        read = [self._read_row(int(row)) for row in rows]
        outcomes = Outcomes(
            np.concatenate([part.values for part in read]),
            np.concatenate([part.status for part in read]),
        )
        return replace(
            self,
            seconds=self.seconds * len(rows) / self.n_instances,
            _inputs=self._inputs.take(rows),
            _optimum=Outcomes(self._optimum.values[rows], self._optimum.status[rows]),
            _regret=MemoryPanel(outcomes, chunk_shape=outcomes.status.shape),
        )

    def head(self, n_samples: int) -> "OracleSamples":
        """Returns the first samples of every instance."""
        if check_count("n_samples", n_samples) > self.n_samples:
            raise InvalidInputError(
                f"`n_samples` must be at most {self.n_samples}, the samples there are, "
                f"got {n_samples}."
            )
        seconds = self.seconds * n_samples / self.n_samples
        return replace(self, n_samples=int(n_samples), seconds=seconds)

    def provenance(self) -> dict[str, Any]:
        """Returns where the samples came from, in JSON values."""
        return {
            "sampler": type(self.sampler).__name__,
            "scale": _summary(self.scale),
            "scale_is_auto": isinstance(self.sampler.scale, str),
            "seed": self.seed,
            "n_samples": self.n_samples,
            "fingerprints": dict(self.fingerprints),
        }

    @property
    def is_complete(self) -> bool:
        """Whether no sample is missing or damaged."""
        return self._counts.pending == 0

    @cached_property
    def _counts(self) -> _Counts:
        pending = failures = negative = 0
        calls = int(np.count_nonzero(self._optimum.status))
        for rows in self._regret.bands(self.n_samples):
            part = self._regret.read(rows, slice(0, self.n_samples))
            n_pending, n_failures = int(part.is_pending.sum()), int(part.is_failed.sum())
            n_uncalled = int(np.equal(part.status, SampleStatus.NO_OPTIMUM).sum())
            pending += n_pending
            calls += part.status.size - n_pending - n_uncalled
            failures += n_failures
            negative += int((part.values < 0).sum())
        return _Counts(calls, failures, negative, pending)

    def _read_row(self, row: int) -> Outcomes:
        """Returns one row, and keeps the chunks it was in: the next row is probably there too."""
        height = self._regret.chunk_shape[0]
        top = row // height * height
        band = self._band.get(top)
        if band is None:
            rows = slice(top, min(top + height, self.n_instances))
            band = self._regret.read(rows, slice(0, self.n_samples))
            self._band.clear()
            self._band[top] = band
        at = slice(row - top, row - top + 1)
        if not band.status[at].all():
            raise StoreError(
                f"Samples of instance {self._inputs.numbers[row]} are missing or damaged. "
                "Call `evaluate` again: it computes only these."
            )
        return Outcomes(band.values[at], band.status[at])


def _summary(scale: Array) -> float | dict[str, Any]:
    """Returns a scale as a JSON value: itself if it is a number, else its shape and range."""
    if scale.ndim == 0:
        return float(scale)
    return {"shape": list(scale.shape), "min": float(scale.min()), "max": float(scale.max())}
