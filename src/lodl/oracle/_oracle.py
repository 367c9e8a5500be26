"""`Oracle`: a problem with workers, a store, a time limit and one counter of solver calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_context, check_labels
from lodl._digest import digest
from lodl._threads import one_blas_thread
from lodl._typing import Array, Context, Decision, FilePath
from lodl.errors import InvalidInputError
from lodl.oracle._check import ProblemReport, check
from lodl.oracle._database import check_place
from lodl.oracle._failures import OK, OnFailure, Options, Tally
from lodl.oracle._first_look import N_POINTS, ObjectiveKind, look, verify
from lodl.oracle._instances import Draws, GivenPoints, Instances
from lodl.oracle._run import Calls, Runner, pending
from lodl.oracle._samples import Samples
from lodl.oracle._store import Progress, Store
from lodl.oracle._workers import Workers, choose_workers
from lodl.problems import Problem
from lodl.problems._problem import check_instances, check_predicted, check_problem_type, projected
from lodl.problems._regret import SLIGHT, check_sense_of, regret_of
from lodl.samplers import AllPerturbed, Sampler, check_sampler, label_scale

Labels: TypeAlias = npt.ArrayLike | Instances


class Oracle:
    """Calls the solver of a problem. Everything in `lodl` that needs a decision goes through it.

    A time limit, isolation from crashes, the store and the count hold for every call. The store and
    worker processes are opened at the first call.

    Args:
        problem: The problem whose solver is called.
        store: File that keeps the answers, so that an interrupted run resumes where it stopped and
            no call is made twice. Several processes may share it. It belongs to one problem: class
            and constructor parameters must be the same (dataclass fields with `compare=False` do
            not count), and at most 32 answers are computed again when it is opened. Its first
            labels determine the scale "auto". Defaults to memory.
        n_jobs: Number of worker processes as in joblib, -1 for all cores. Defaults to the active
            Dask client, or else to this process.
        executor: A `concurrent.futures.Executor` or a Dask client that makes the calls instead.
        timeout: Seconds after which a call is abandoned and counts as failed. Calls then run in
            worker processes.
        on_failure: "raise" stops at the first call that fails, "skip" leaves it out.
        max_failure_rate: With "skip", a larger share of failed calls is an error.
        progress: Whether to show progress bars on a terminal.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
        >>> oracle.regret(y_hat, y)  # 1 is gained, 3 could have been
        array([2.])
        >>> oracle.n_calls
        2
    """

    def __init__(
        self,
        problem: Problem,
        *,
        store: FilePath | None = None,
        n_jobs: int | None = None,
        executor: Executor | Any | None = None,
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
        max_failure_rate: float = 0.1,
        progress: bool = True,
    ) -> None:
        check_problem_type(problem)
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | None) or n_jobs == 0:
            what = "None or a whole number other than 0 (-1 for all cores)"
            raise InvalidInputError(f"`n_jobs` must be {what}, got {n_jobs!r}.")
        self.problem = problem
        self.options = Options(timeout, on_failure, max_failure_rate)
        self.n_jobs, self._executor, self.progress = n_jobs, executor, progress
        self._place = None if store is None else check_place(store)
        self._store: Store | None = None
        self._opened: Workers | None = None
        self._tally = Tally()
        self._warned_of = set[str]()

    @classmethod
    def of(cls, problem: Problem | Oracle, **options: Any) -> Oracle:
        """Return an oracle unchanged, or the oracle of a problem with some options."""
        return problem if isinstance(problem, Oracle) else cls(problem, **options)

    def __repr__(self) -> str:
        store = "memory" if self._place is None else str(self._place)
        return f"Oracle({type(self.problem).__name__}, store={store!r}, n_jobs={self.n_jobs})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options: another process has its own workers, and counts from 0."""
        options = {"store": self._place, "progress": self.progress, **vars(self.options)}
        return partial(Oracle, self.problem, **options), ()

    def __sklearn_clone__(self) -> Oracle:
        """Clones of an estimator share its oracle, and so its store and its counter."""
        return self

    def close(self) -> None:
        """Close the store and end the oracle's own processes. The next call opens them again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_calls(self) -> int:
        """Solver calls made so far, failed calls and checks included."""
        return self._tally.n_calls

    @property
    def seconds(self) -> float:
        """Time spent on calls so far, summed over workers."""
        return self._tally.seconds

    @property
    def stored(self) -> Progress:
        """Number of answers in the store, and their cost."""
        if self._store is None and self._place is not None and self._place.exists():
            return Progress.read(self._place)
        return Progress(0, 0, 0, 0.0) if self._store is None else self._store.progress

    def instances(
        self, y: Labels, context: Context = None, keys: Sequence[int | str] | None = None
    ) -> Instances:
        """Return checked instances, which all methods accept in place of labels and contexts.

        `keys` are names of the instances, whole numbers or strings. By default, instances are
        identified by label and context: a part, a fold or another order finds its answers.
        """
        if isinstance(y, Instances):
            return y
        return Instances.of(*check_instances(self.problem, y, context), keys)

    def sample(
        self,
        y: Labels,
        sampler: Sampler = AllPerturbed(),  # noqa: B008 - it is frozen
        n_samples: int = 20,
        *,
        context: Context = None,
        slopes: bool = False,
        random_state: int = 0,
    ) -> Samples:
        """Return the regret of `n_samples` points around every label.

            regret(y_hat, y) = DL(y_hat, y) - DL(y, y)

        With one `random_state` the regrets are the same bits for any workers, for a run in pieces
        and for one that grew, as far as the solver's are.

        Args:
            y: Labels, shape (n_instances, *label_shape), a frame with a column for each number, or
                `instances`. `n_instances * (n_samples + 1)` solver calls are made, fewer if
                instances are equal or the store holds their answers.
            sampler: Draws the points.
            n_samples: Points per instance.
            context: One entry per instance. Rows of a frame become dicts.
            slopes: Whether to compute the slope of each decision too, which decision families need.
            random_state: Random seed of the points.

        Raises:
            OracleError: A solver call failed, or too many did. Finished answers stay in the store.
            ProblemError: Most points lead to better decisions than the labels: a wrong `sense`.
            StoreError: The store is damaged, or belongs to another problem.

        Example:
            >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
            >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
            >>> samples = oracle.sample(y, lodl.AllPerturbed(scale=2.0), n_samples=50)
            >>> np.unique(samples[0].regret)  # right, or wrong by 2
            array([0., 2.])
        """
        instances = self.instances(y, context)
        samples = self._samples(instances, sampler, n_samples, slopes, random_state)
        self._answer(samples)
        samples.counts.tally.check_rate(self.options, self._tally.n_outcomes, samples.store.note)
        samples.warn(self._warned_of)
        return samples

    def decide(self, y_hat: npt.ArrayLike, *, context: Context = None) -> list[Decision]:
        """Return the decision for each prediction (n, *label_shape), None if its call failed."""
        points = projected(self.problem, check_labels(y_hat, "y_hat"))
        instances = Instances.of(points, check_context(context, len(points)), range(len(points)))
        store = Store(None, label_scale(points))
        draws = Draws.of(AllPerturbed(1.0), instances, 1, 0, store.label_scale)
        samples = Samples(instances, (draws,), False, self.problem, store, "decision", False)
        calls = [Calls(np.arange(len(points)), 0, 1)]
        decisions = self._run(samples, calls, returns_decisions=True).decisions
        return [decisions.get((row, 0)) for row in range(len(points))]

    def decision_loss(self, y_hat: npt.ArrayLike, y: Labels, *, context: Context = None) -> Array:
        """Return DL(y_hat, y), shape (n,) or (..., n); see `lodl.evaluation.decision_loss`."""
        loss, shape = self._losses(y_hat, y, context, with_labels=False)
        return np.ascontiguousarray(loss[:, 1:].T).reshape(shape)

    def regret(self, y_hat: npt.ArrayLike, y: Labels, *, context: Context = None) -> Array:
        """Return DL(y_hat, y) - DL(y, y), shape (n,) or (..., n); see `lodl.evaluation.regret`."""
        loss, shape = self._losses(y_hat, y, context, with_labels=True)
        regret = np.ascontiguousarray(regret_of(loss[:, 1:], loss[:, :1]).T)
        regret = regret_of(regret.ravel(), 0.0).reshape(shape)
        known = regret[np.isfinite(regret)]
        n_negative = int(np.sum(known < -SLIGHT * np.abs(known).mean())) if known.size else 0
        check_sense_of(self.problem, int(np.sum(known > 0)), n_negative)
        return regret

    def objective_kind(
        self,
        y: Labels,
        sampler: Sampler | None = None,
        *,
        context: Context = None,
        slopes: bool = False,
        random_state: int = 0,
    ) -> ObjectiveKind:
        """Return how the objective of a decision depends on the label, from at most 18 calls.

        The first call for some labels also raises if the sense is wrong, and warns if the solver is
        random or not exact. The kind is remembered for these labels, in the store if there is one.
        With the arguments of a later `sample`, all but three of the calls are among its own.

        Example:
            >>> domain = lodl.domains.newsvendor(sizes=(10, 1, 1))
            >>> lodl.Oracle(domain.problem).objective_kind(domain.splits.train.y)
            <ObjectiveKind.KINKED: 'kinked'>
        """
        instances = self.instances(y, context)
        name = f"objective kind {digest([b''.join(instances.ids)])}"
        store = self._open_store(instances.label_scale)
        kind = store.recall(name)
        if kind not in list(ObjectiveKind):  # not known, or damaged
            sampler = AllPerturbed(instances.label_scale) if sampler is None else sampler
            samples = self._samples(instances, sampler, N_POINTS, slopes, random_state)
            self._verify(samples)
            lenient = replace(self.options, max_failure_rate=1.0)
            kind = look(samples, partial(self._run, options=lenient), self._apply)
            store.remember(name, kind)
        return ObjectiveKind(kind)

    def is_affine(self, y: Labels, *, context: Context = None) -> bool:
        """Return whether the objective is affine in the label; see `objective_kind`."""
        return self.objective_kind(y, context=context) is ObjectiveKind.AFFINE

    def check(
        self, y: npt.ArrayLike, *, context: Context = None, random_state: int = 0
    ) -> ProblemReport:
        """Check that the problem keeps its contract; see `lodl.testing.check_problem`."""
        return check(*check_instances(self.problem, y, context), random_state, self._apply)

    def _samples(
        self, instances: Instances, sampler: Sampler, n_samples: int, slopes: bool, seed: int
    ) -> Samples:
        """Return samples whose answers may still be missing in the store."""
        check_sampler(sampler)
        own = instances.label_scale
        store = self._open_store(own)
        store.check_labels(own, is_auto=isinstance(sampler.scale, str))
        auto_scale = own if self._place is None else store.label_scale
        draws = Draws.of(sampler, instances, n_samples, seed, auto_scale)
        draws.points(self.problem, instances, [0], 0, 1)  # do sampler and `project` fit?
        return Samples(instances, (draws,), slopes, self.problem, store)

    def _answer(self, samples: Samples, first: int = 0) -> None:
        """Make the calls from a column on that the store lacks, once it is this problem's."""
        lacking = pending(samples, retry=self.options.stops)
        calls = [p._replace(start=max(p.start, first)) for p in lacking if p.stop > first]
        self._verify(samples)
        if n_pending := sum(part.n_calls for part in calls):
            samples.store.remember("n_planned", samples.store.progress.n_answers + n_pending)
        self._run(samples, calls)

    def _verify(self, samples: Samples) -> None:
        lenient = replace(self.options, on_failure="skip", max_failure_rate=1.0)
        verify(samples, partial(self._run, options=lenient))

    def _run(
        self,
        samples: Samples,
        calls: list[Calls],
        options: Options | None = None,
        *,
        returns_decisions: bool = False,
    ) -> Runner:
        """Make calls. With other options, as for a first look, failures are counted apart."""
        is_main = options is None
        tally = self._tally if is_main else Tally()
        given = samples, calls, self._workers, options or self.options, tally
        has_bar = is_main and self.progress
        runner = Runner(*given, returns_decisions=returns_decisions, progress=has_bar)
        try:
            with one_blas_thread():  # once, for all tasks that run in this process
                runner.finish()
        finally:
            if not is_main:
                self._tally.n_calls += tally.n_calls
                self._tally.seconds += tally.seconds
        return runner

    def _apply(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return `function(guard, *arguments)`, computed by a worker."""
        value, n_calls = self._workers.apply(function, *arguments, options=self.options)
        self._tally.n_calls += n_calls
        return value

    @property
    def _workers(self) -> Workers:
        if self._opened is None:
            self._opened = choose_workers(self.problem, self.n_jobs, self._executor, self.options)
        return self._opened

    def _open_store(self, scale: Array) -> Store:
        """Return the store, which is made for labels of a scale if there is none yet."""
        store = self._store
        if store is None or (store.place is None and store.label_scale.shape != scale.shape):
            self._store = store = Store(self._place, scale, self.problem)
        return store

    def _losses(
        self, y_hat: npt.ArrayLike, y: Any, context: Context, *, with_labels: bool
    ) -> tuple[Array, tuple[int, ...]]:
        """Return decision losses at labels and predictions (n, 1 + m), and the result's shape."""
        given = y.y if isinstance(y, Instances) else y
        y_hats, labels, contexts = check_predicted(self.problem, y_hat, given, context)
        instances = y if isinstance(y, Instances) else Instances.of(labels, contexts, None)
        points = np.moveaxis(y_hats.reshape(-1, *labels.shape), 0, 1)
        sampler = GivenPoints(np.ascontiguousarray(points))
        samples = self._samples(instances, sampler, points.shape[1], False, 0)
        samples = replace(samples, point="prediction")
        self._answer(samples, first=0 if with_labels else 1)
        table = samples.table(range(len(instances)))
        loss = np.where(table.status == OK, table.loss, np.nan)
        return loss, y_hats.shape[: y_hats.ndim - labels.ndim + 1]
