"""What the oracle needs to know of some instances, and the candidates drawn around them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context, InstanceContext
from lodl._validation import check_context, check_count, check_labels, context_of
from lodl.errors import InvalidInputError
from lodl.oracle._shared import Shared
from lodl.problems import Problem
from lodl.problems._problem import check_problem_type, projected, sign_of
from lodl.samplers import Sampler
from lodl.samplers._sampler import check_sampler


@dataclass(frozen=True, eq=False)
class OracleInputs:
    """A problem, labels with their contexts, and how candidates are drawn.

    Attributes:
        shared_problem: The problem, once for all tasks.
        sampler: The sampler of these instances.
        seed: Seed of all candidates.
        numbers: The instances' numbers among all instances: they name the random streams.
        y: Labels of these instances.
        context: Their contexts, or None.
        centres: What candidates lie around.
        scale: The resolved scale, from the labels of all instances.
    """

    shared_problem: Shared[Problem]
    sampler: Sampler
    seed: int
    numbers: npt.NDArray[np.intp]
    y: Array
    context: Context
    centres: Array
    scale: Array

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.shared_problem.thing

    def take(self, rows: slice | npt.NDArray[np.intp]) -> "OracleInputs":
        """Returns the inputs of some instances, light enough to send to a worker."""
        kept = np.arange(len(self.y))[rows]
        context = None if self.context is None else [self.context[i] for i in kept]
        y = self.y[rows]
        return OracleInputs(
            shared_problem=self.shared_problem,
            sampler=self.sampler.take(rows),
            seed=self.seed,
            numbers=self.numbers[rows],
            y=y,
            context=context,
            centres=y if self.centres is self.y else self.centres[rows],
            scale=self.scale,
        )

    def context_of(self, row: int) -> InstanceContext:
        """Returns the context of one of these instances."""
        return context_of(self.context, row)

    def candidates(self, row: int, block: int) -> Array:
        """Returns one block of candidates of an instance, in the problem's valid range."""
        drawn = self.sampler.draw(
            self.centres[row],
            self.scale,
            seed=self.seed,
            instance=int(self.numbers[row]),
            block=block,
        )
        return projected(self.problem, drawn)


def check_inputs(
    problem: Problem, y: npt.ArrayLike, *, context: Context, sampler: Sampler, seed: int
) -> OracleInputs:
    """Returns checked inputs of all instances."""
    check_problem_type(problem)
    check_sampler(sampler)
    sign_of(problem)
    labels = check_labels(y).copy()  # candidates are drawn again from it: it must stay as it is
    labels.flags.writeable = False
    check_context(context, len(labels))
    inputs = OracleInputs(
        shared_problem=Shared(problem),
        sampler=sampler,
        seed=_check_seed(seed),
        numbers=np.arange(len(labels)),
        y=labels,
        context=context,
        centres=sampler.centres(labels),
        scale=sampler.resolve_scale(labels),
    )
    inputs.candidates(0, 0)  # a sampler or a projection that does not fit the labels shows here
    return inputs


def _check_seed(seed: int) -> int:
    if check_count("seed", seed, minimum=0) >= 2**64:
        raise InvalidInputError(f"`seed` must be below 2^64, got {seed}.")
    return int(seed)
