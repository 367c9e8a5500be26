"""Standings of our learner on each linear task: the best other method, 2-stage and SPO+."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lodl_benchmarks.peers._methods import OURS, TWO_STAGE, VARIANTS
from lodl_benchmarks.peers._summary import Difference, Score
from lodl_benchmarks.peers._tasks import LINEAR

REFERENCE = "SPO+"

_TENTH = 10.0  # times fewer calls than the reference are the aim


@dataclass(frozen=True, eq=False)
class Standing:
    """Our learner on a task, and others on the data seeds that it has."""

    task: str  # name of the task
    ours: Score  # our learner
    two_stage: Score  # 2-stage
    best: Score  # the best of all other methods that have these seeds, 2-stage among them
    reference: Score | None  # SPO+, if it was run

    @classmethod
    def of(cls, task: str, of_task: Mapping[str, Score]) -> "Standing | None":
        """Return the standing where our learner and 2-stage have rows of the same seeds."""
        ours, others = of_task.get(OURS), {}
        if ours is not None:
            others = {
                name: score.on(ours.blocks)
                for name, score in of_task.items()
                if name not in VARIANTS | {OURS} and ours.blocks.keys() <= score.blocks.keys()
            }
        if ours is None or TWO_STAGE not in others:
            return None
        best = min(others.values(), key=lambda score: score.regret)
        return cls(task, ours, others[TWO_STAGE], best, others.get(REFERENCE))

    @property
    def is_best(self) -> bool:
        """Whether ours is best, or within one standard error of the best."""
        return _is_reached(self.ours.less(self.best))

    @property
    def is_no_worse_than_two_stage(self) -> bool:
        """Whether ours is better than 2-stage, or within one standard error of it."""
        return _is_reached(self.ours.less(self.two_stage))

    @property
    def reaches_reference(self) -> bool:
        """Whether ours is better than SPO+, or within one standard error of it."""
        return self.reference is not None and _is_reached(self.ours.less(self.reference))

    @property
    def ratio(self) -> float:
        """Ratio of SPO+'s calls to ours, looks left out on both sides."""
        return 0.0 if self.reference is None else self.reference.calls / self.ours.calls


def standings(by_task: Mapping[str, Mapping[str, Score]]) -> list[Standing]:
    """Return the standings on the linear tasks that have the rows for it."""
    every = [Standing.of(task, by_task.get(task, {})) for task in LINEAR]
    return [standing for standing in every if standing is not None]


def verdict(by_task: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """Return what was to be shown and how often it holds, in a line each."""
    every = standings(by_task)
    if not every:
        return []
    reached = [standing for standing in every if standing.reaches_reference]
    frugal = [standing.ratio >= _TENTH for standing in reached]
    return [
        f"{OURS} is best or within one standard error of the best on "
        f"{_count(every, [standing.is_best for standing in every])} linear tasks.",
        f"It is no worse than {TWO_STAGE} by more than one standard error on "
        f"{_count(every, [standing.is_no_worse_than_two_stage for standing in every])}.",
        f"It reaches {REFERENCE} within one standard error on {_count(every, reached)}"
        + (f", on {sum(frugal)} of these with at most a tenth of its calls." if frugal else "."),
    ]


def _count(every: Sequence[object], held: Sequence[object]) -> str:
    return f"{sum(map(bool, held))} of {len(every)}"


def _is_reached(difference: Difference) -> bool:
    return difference.mean <= difference.error
