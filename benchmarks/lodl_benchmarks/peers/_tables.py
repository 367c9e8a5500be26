"""Tables of the rows: what was to be shown, ranks, and each task by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from lodl.report import Cell, Table
from lodl_benchmarks.peers._methods import ONE_MODEL, OURS, TWO_STAGE
from lodl_benchmarks.peers._standings import REFERENCE, standings
from lodl_benchmarks.peers._summary import Difference, Score, complete_methods, holm, ranks, scores
from lodl_benchmarks.peers._tasks import LINEAR, OTHERS, TASKS

_LEVEL = 0.05  # of Holm-corrected p-values
_Scores = Mapping[str, Mapping[str, Score]]


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables of rows of any tasks, methods and seeds."""
    return [*summary_tables(rows), *task_tables(rows)]


def summary_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables of all tasks together, those that have a line."""
    by_task = scores(rows)
    shown = (_quality, _tests, _calls, _one_model, _gains, _ranks)
    found = [table(by_task) for table in shown]
    return [table for table in found if table.rows]


def task_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return a table of each task."""
    by_task = scores(rows)
    return [_task(name, by_task[name]) for name in TASKS if name in by_task]


def _quality(by_task: _Scores) -> Table:
    """Return whether our learner is as good as the best other one, and never worse than 2-stage."""
    lines = tuple(
        (
            Cell(TASKS[standing.task].title),
            _percent(standing.ours.regret),
            Cell(
                f"{standing.best.method} {100 * standing.best.regret:.2f}",
                100 * standing.best.regret,
            ),
            _pair(standing.ours.less(standing.best)),
            _yes(standing.is_best),
            _percent(standing.two_stage.regret),
            _pair(standing.ours.less(standing.two_stage)),
            _yes(standing.is_no_worse_than_two_stage),
            Cell.of_number(len(standing.ours.blocks), "{:.0f}"),
        )
        for standing in standings(by_task)
    )
    columns = (
        "task",
        OURS,
        "best other",
        f"{OURS} less best",
        "within one error",
        TWO_STAGE,
        f"{OURS} less {TWO_STAGE}",
        "not worse",
        "seeds",
    )
    return Table("Our learner beside the best of all others, test regret in %", columns, lines)


def _tests(by_task: _Scores) -> Table:
    """Return paired tests of our learner against SPO+ and 2-stage, corrected for their number."""
    every = [standing for standing in standings(by_task) if standing.reference is not None]
    lines = [[Cell(TASKS[standing.task].title)] for standing in every]
    columns = ["task"]
    for name in (REFERENCE, TWO_STAGE):
        gaps = [standing.ours.less(by_task[standing.task][name]) for standing in every]
        corrected = holm([gap.p_value for gap in gaps])
        for line, gap, p in zip(lines, gaps, corrected, strict=True):
            line += [_pair(gap), _p_value(gap.p_value), _p_value(p), Cell(_outcome(gap, p))]
        columns += [f"{OURS} less {name}", "p", "p by Holm", f"beside {name}"]
    caption = "Paired t-tests over data seeds, Holm's correction over tasks, test regret in %"
    return Table(caption, tuple(columns), tuple(map(tuple, lines)))


def _outcome(gap: Difference, p: float) -> str:
    """Return whether ours is better or worse, by a corrected p-value."""
    if p >= _LEVEL:
        return "open"
    return "better" if gap.mean < 0 else "worse"


def _calls(by_task: _Scores) -> Table:
    """Return what SPO+'s regret costs in oracle calls."""
    lines = tuple(
        (
            Cell(TASKS[standing.task].title),
            _percent(standing.reference.regret),
            _percent(standing.ours.regret),
            _yes(standing.reaches_reference),
            _count(standing.reference.calls),
            _count(standing.ours.calls),
            Cell.of_number(standing.ratio, "{:.1f}"),
            _count(standing.reference.looks),
            _count(standing.ours.looks),
            _count(standing.reference.calls_of_one),
        )
        for standing in standings(by_task)
        if standing.reference is not None
    )
    columns = (
        "task",
        REFERENCE,
        OURS,
        "reached within one error",
        f"calls of {REFERENCE}",
        f"calls of {OURS}",
        "ratio",
        f"looks of {REFERENCE}",
        f"looks of {OURS}",
        f"calls of one {REFERENCE} model, all chosen",
    )
    return Table(f"Oracle calls to reach the regret of {REFERENCE}", columns, lines)


def _one_model(by_task: _Scores) -> Table:
    """Return our learner beside one model of SPO+, by its number of epochs."""
    lines = []
    for standing in standings(by_task):
        of_task = by_task[standing.task]
        if any(name in of_task for name in ONE_MODEL):
            calls = standing.ours.calls + standing.ours.looks
            line = [Cell(TASKS[standing.task].title), _count(calls)]
            for name in ONE_MODEL:
                score = of_task.get(name)
                line += [
                    Cell("") if score is None else _pair(standing.ours.less(score)),
                    _count(None if score is None else score.calls),
                ]
            lines.append(tuple(line))
    columns = ["task", f"calls and looks of {OURS}"]
    for name in ONE_MODEL:
        columns += [f"{OURS} less {name}", "its calls"]
    caption = f"Our learner beside one model of {REFERENCE}, nothing selected, test regret in %"
    return Table(caption, tuple(columns), tuple(lines))


def _gains(by_task: _Scores) -> Table:
    """Return the gain over 2-stage on the paper's domains and on right-hand sides."""
    lines = []
    for name in OTHERS:
        of_task = by_task.get(name, {})
        if OURS not in of_task or TWO_STAGE not in of_task:
            continue
        gain = of_task[TWO_STAGE].less(of_task[OURS])
        two_stage = of_task[TWO_STAGE].on(of_task[OURS].blocks).regret
        lines.append(
            (
                Cell(TASKS[name].title),
                _percent(two_stage),
                _percent(of_task[OURS].regret),
                _pair(gain),
                Cell(f"{100 * gain.half_width:.2f}"),
                Cell.of_number(100 * gain.mean / two_stage, "{:.0f} %"),
                _count(of_task[OURS].calls),
                Cell.of_number(gain.n_seeds, "{:.0f}"),
            )
        )
    columns = (
        "task",
        TWO_STAGE,
        OURS,
        "gain",
        "95 % interval, plus or minus",
        "share of the regret",
        "calls",
        "seeds",
    )
    return Table(
        "The paper's domains, and predicted right-hand sides, test regret in %",
        columns,
        tuple(lines),
    )


def _ranks(by_task: _Scores) -> Table:
    linear = {name: of_task for name, of_task in by_task.items() if name in LINEAR}
    places = ranks(linear, complete_methods(linear))
    lines = [
        (
            Cell(method),
            Cell.of_number(float(place.mean()), "{:.2f}"),
            Cell.of_number(int((place == 1).sum()), "{:d}"),
            Cell.of_number(int(place.max()), "{:d}"),
        )
        for method, place in sorted(places.items(), key=lambda item: item[1].mean())
    ]
    caption = f"Ranks over {len(linear)} linear tasks, methods that all of them have on all seeds"
    return Table(caption, ("method", "mean rank", "tasks where best", "worst rank"), tuple(lines))


def _task(name: str, of_task: Mapping[str, Score]) -> Table:
    baseline = of_task.get(TWO_STAGE)
    ordered = sorted(of_task.values(), key=lambda score: _beside(score, baseline))
    lines = tuple(
        (
            Cell(score.method),
            _percent(score.regret),
            Cell("") if baseline in (None, score) else _pair(score.less(baseline)),
            Cell.of_number(len(score.blocks), "{:d}"),
            _count(score.calls),
            _count(score.looks),
            _count(score.calls_of_one),
            Cell.of_number(score.seconds_solving, "{:.1f}"),
            Cell.of_number(score.seconds, "{:.1f}"),
        )
        for score in ordered
    )
    columns = (
        "method",
        "test regret, %",
        f"less {TWO_STAGE}",
        "seeds",
        "oracle calls",
        "looks",
        "calls of one model",
        "CPU s solving",
        "CPU s",
    )
    return Table(TASKS[name].title, columns, lines)


def _beside(score: Score, baseline: Score | None) -> float:
    """Return the regret less 2-stage's regret on the same seeds, if it is known."""
    return score.regret if baseline is None else score.less(baseline).mean


def _yes(holds: bool) -> Cell:
    return Cell("yes" if holds else "no")


def _count(calls: float | None) -> Cell:
    return Cell.of_number(calls, "{:,.0f}")


def _p_value(p: float) -> Cell:
    return Cell("< 0.001" if p < 0.001 else f"{p:.3f}", p)


def _percent(value: float) -> Cell:
    return Cell(f"{100 * value:.2f}", 100 * value)


def _pair(difference: Difference) -> Cell:
    mean, error = 100 * difference.mean, 100 * difference.error
    return Cell(f"{mean:+.2f} ± {error:.2f}", mean)
