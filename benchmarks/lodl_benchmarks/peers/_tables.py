"""Tables of the rows: what was to be shown, ranks, and each task by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from lodl.report import Cell, Table
from lodl_benchmarks.pages import holm, p_cell, plus_minus, verdict_of
from lodl_benchmarks.peers._bill import SECONDS_A_CALL, bills, geometric_mean
from lodl_benchmarks.peers._methods import ABLATIONS, BUDGETS, ONE_MODEL, OURS, TWO_STAGE, VARIANTS
from lodl_benchmarks.peers._standings import REFERENCE, standings
from lodl_benchmarks.peers._summary import (
    Difference,
    Score,
    complete_methods,
    mean_rank_interval,
    ranks,
    scores,
)
from lodl_benchmarks.peers._tasks import LINEAR, OTHERS, TASKS

_Scores = Mapping[str, Mapping[str, Score]]


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables of rows of any tasks, methods and seeds."""
    return [*summary_tables(rows), *task_tables(rows)]


def summary_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables of all tasks together, those that have a line."""
    by_task = scores(rows)
    shown = (_ranks, _quality, _tests, _calls, _one_model, _bill, _ablation, _gains)
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
            *map(_seconds, (standing.ours, standing.best, standing.two_stage)),
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
        f"CPU s of {OURS}",
        "of best other",
        f"of {TWO_STAGE}",
    )
    return Table("Our learner beside the best of all others, test regret in %", columns, lines)


def _tests(by_task: _Scores) -> Table:
    """Return paired tests of our learner against SPO+ and 2-stage, corrected for their number."""
    every = [standing for standing in standings(by_task) if standing.reference is not None]
    lines = [[Cell(TASKS[standing.task].title)] for standing in every]
    columns = ["task"]
    for line, standing in zip(lines, every, strict=True):
        line += [_seconds(standing.ours)]
    columns += [f"CPU s of {OURS}"]
    for name in (REFERENCE, TWO_STAGE):
        gaps = [standing.ours.less(by_task[standing.task][name]) for standing in every]
        corrected = holm([gap.p_value for gap in gaps])
        tasks = [standing.task for standing in every]
        for line, task, gap, p in zip(lines, tasks, gaps, corrected, strict=True):
            line += [_pair(gap), p_cell(gap.p_value), p_cell(p), Cell(verdict_of(gap.mean, p))]
            line += [_seconds(by_task[task][name])]
        columns += [f"{OURS} less {name}", "p", "p by Holm", f"beside {name}", "its CPU s"]
    caption = "Paired t-tests over data seeds, Holm's correction over tasks, test regret in %"
    return Table(caption, tuple(columns), tuple(map(tuple, lines)))


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
            Cell.of_number(standing.ratio, "{:.0f}"),
            _count(standing.reference.looks),
            _count(standing.ours.looks),
            _count(standing.reference.calls_of_one),
            *map(_seconds, (standing.reference, standing.ours)),
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
        f"CPU s of {REFERENCE}",
        f"CPU s of {OURS}",
    )
    return Table(f"Oracle calls to reach the regret of {REFERENCE}", columns, lines)


def _one_model(by_task: _Scores) -> Table:
    """Return our learner beside one model of SPO+ that makes no fewer calls, by its epochs."""
    lines = []
    for standing in standings(by_task):
        of_task = by_task[standing.task]
        if any(name in of_task for name in ONE_MODEL):
            line = [Cell(TASKS[standing.task].title)]
            for name in ONE_MODEL:
                line += _beside_one(of_task, of_task.get(name))
            lines.append(tuple(line))
    columns = ["task"]
    for name in ONE_MODEL:
        columns += [f"less {name}", "our calls and CPU s", "its calls and CPU s"]
    caption = f"{OURS} less one model of {REFERENCE}, nothing selected, with no more calls, in %"
    return Table(caption, tuple(columns), tuple(lines))


def _beside_one(of_task: Mapping[str, Score], other: Score | None) -> list[Cell]:
    """Return ours less a model of SPO+ that makes no fewer calls: if need be, with a budget."""
    names = (OURS, *BUDGETS)
    ours = [of_task[name] for name in names if name in of_task]
    affordable = [score for score in ours if other and score.all_calls <= other.all_calls]
    if other is None or not affordable:
        return [Cell(""), Cell(""), Cell("") if other is None else _bill_of(other)]
    best = max(affordable, key=lambda score: (score.method == OURS, score.all_calls))
    return [_pair(best.less(other)), _bill_of(best), _bill_of(other)]


def _bill_of(score: Score) -> Cell:
    return Cell(f"{score.all_calls:,.0f}; {score.seconds or 0:.1f}", score.all_calls)


def _bill(by_task: _Scores) -> Table:
    """Return regrets over squared error's, against calls and seconds, over all linear tasks."""
    lines = tuple(
        (
            Cell(bill.method),
            Cell.of_number(bill.n_seeds, "{}"),
            Cell.of_number(bill.regret, "{:.3f}"),
            Cell.of_number(bill.calls, "{:,.1f}"),
            _short(bill.measured),
            *map(_short, bill.seconds),
        )
        for bill in bills(by_task)
    )
    prices = (f"CPU s at {label} a call" for label in SECONDS_A_CALL)
    regret = f"regret over that of {TWO_STAGE}"
    columns = ("method", "seeds", regret, "calls an instance", "CPU s", *prices)
    caption = f"The bill: geometric means over {_n_linear(by_task)} linear tasks"
    return Table(caption, columns, lines)


def _ablation(by_task: _Scores) -> Table:
    """Return the regret of our learner without each of its parts, less that with all of them."""
    shown = [name for name in ABLATIONS if any(name in of_task for of_task in by_task.values())]
    lines: list[tuple[Cell, ...]] = []
    ratios: dict[str, list[float]] = {name: [] for name in shown}
    for task in LINEAR:
        of_task = by_task.get(task, {})
        if OURS not in of_task or not of_task.keys() & ABLATIONS.keys():
            continue
        line = [Cell(TASKS[task].title), _percent(of_task[OURS].regret), _bill_of(of_task[OURS])]
        for name in shown:
            score = of_task.get(name)
            line += [Cell("")] * 2 if score is None else [_pair(score.less(ours := of_task[OURS]))]
            if score is not None:
                ratios[name].append(score.regret / ours.on(score.blocks).regret)
                line += [_bill_of(score)]
        lines.append(tuple(line))
    if lines:
        last = [Cell("regret over that of all parts, geometric mean"), Cell("1"), Cell("")]
        for name in shown:
            last += [Cell.of_number(geometric_mean(ratios[name]), "{:.3f}"), Cell("")]
        lines.append(tuple(last))
    columns = ["task", f"{OURS}, %", "calls; CPU s"]
    for name in shown:
        columns += [name.removeprefix(f"{OURS}, "), "calls; CPU s"]
    caption = f"Ablation: {OURS} without one part less {OURS}, test regret in %"
    return Table(caption, tuple(columns), tuple(lines))


def _n_linear(by_task: _Scores) -> int:
    return sum(name in by_task for name in LINEAR)


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
                *map(_seconds, (of_task[TWO_STAGE], of_task[OURS])),
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
        f"CPU s of {TWO_STAGE}",
        f"CPU s of {OURS}",
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
            Cell("{:.2f} to {:.2f}".format(*mean_rank_interval(place))),
            Cell.of_number(int((place == 1).sum()), "{:d}"),
            Cell.of_number(int(place.max()), "{:d}"),
            Cell.of_number(
                sum(of_task[method].seconds or 0 for of_task in linear.values()), "{:.0f}"
            ),
        )
        for method, place in sorted(places.items(), key=lambda item: item[1].mean())
    ]
    caption = f"Ranks over {len(linear)} linear tasks, methods that all of them have on all seeds"
    columns = ("method", "mean rank", "95 % interval over tasks", "tasks where best", "worst rank")
    return Table(caption, (*columns, "CPU s of all tasks, a seed"), tuple(lines))


def _task(name: str, of_task: Mapping[str, Score]) -> Table:
    baseline = of_task.get(TWO_STAGE)
    shown = [score for score in of_task.values() if score.method not in VARIANTS]
    ordered = sorted(shown, key=lambda score: _beside(score, baseline))
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


def _percent(value: float) -> Cell:
    return Cell(f"{100 * value:.2f}", 100 * value)


def _pair(difference: Difference) -> Cell:
    mean, error = 100 * difference.mean, 100 * difference.error
    return Cell(plus_minus(mean, error, signed=True), mean)


def _short(value: float) -> Cell:
    """Return a number with two digits, or all before the point."""
    return Cell(f"{value:,.0f}" if value >= 10 else f"{value:.2g}", value)


def _seconds(score: Score) -> Cell:
    return Cell.of_number(score.seconds, "{:.1f}")
