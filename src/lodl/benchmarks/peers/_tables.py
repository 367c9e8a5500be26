"""Tables of the rows: what was to be shown, ranks, and each task by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from lodl.benchmarks.peers._methods import METHODS, OURS, TWO_STAGE
from lodl.benchmarks.peers._summary import Difference, Score, ranks, scores
from lodl.benchmarks.peers._tasks import LINEAR, TASKS
from lodl.report import Cell, Table

_REFERENCE = "SPO+"
_Found = Mapping[str, Mapping[str, Score]]


def tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables of rows of any tasks, methods and seeds."""
    found = scores(rows)
    found = {name: found[name] for name in TASKS if name in found}
    shown = [_quality(found), _calls(found), _gains(found), _ranks(found)]
    return [table for table in shown if table.rows] + [
        _task(name, of_task) for name, of_task in found.items()
    ]


def _quality(found: _Found) -> Table:
    """Return whether our learner is as good as the best other one, and never worse than 2-stage."""
    lines = []
    for name in LINEAR:
        of_task = found.get(name, {})
        if OURS not in of_task or TWO_STAGE not in of_task:
            continue
        ours, seeds = of_task[OURS], of_task[OURS].blocks.keys()
        others = [
            score.on(seeds)
            for method, score in of_task.items()
            if method != OURS and seeds <= score.blocks.keys()
        ]
        best = min(others, key=lambda score: score.regret)
        two_stage = next(score for score in others if score.method == TWO_STAGE)
        to_best, to_two_stage = ours.less(best), ours.less(two_stage)
        lines.append(
            (
                Cell(TASKS[name].title),
                _percent(ours.regret),
                Cell(f"{best.method} {100 * best.regret:.2f}", 100 * best.regret),
                _pair(to_best),
                Cell("yes" if to_best.mean <= to_best.error else "no"),
                _percent(two_stage.regret),
                _pair(to_two_stage),
                Cell("yes" if to_two_stage.mean <= to_two_stage.error else "no"),
                Cell.of_number(to_best.n_seeds, "{:.0f}"),
            )
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
    return Table(
        "Our learner beside the best of all others, test regret in %", columns, tuple(lines)
    )


def _calls(found: _Found) -> Table:
    """Return what SPO+'s regret costs in oracle calls."""
    lines = []
    for name in LINEAR:
        of_task = found.get(name, {})
        if OURS not in of_task or _REFERENCE not in of_task:
            continue
        ours = of_task[OURS]
        reference = of_task[_REFERENCE].on(ours.blocks)
        difference = ours.less(reference)
        one = reference.calls_of_one or 0.0
        lines.append(
            (
                Cell(TASKS[name].title),
                _percent(reference.regret),
                _percent(ours.regret),
                Cell("yes" if difference.mean <= difference.error else "no"),
                Cell.of_number(reference.calls, "{:,.0f}"),
                Cell.of_number(reference.looks, "{:,.0f}"),
                Cell.of_number(one, "{:,.0f}"),
                Cell.of_number(ours.calls, "{:,.0f}"),
                Cell.of_number(reference.calls / ours.calls, "{:.1f}"),
            )
        )
    columns = (
        "task",
        _REFERENCE,
        OURS,
        "reached within one error",
        f"calls of {_REFERENCE}",
        "and its looks",
        "its calls for one model, all chosen",
        f"calls of {OURS}, looks included",
        "ratio",
    )
    return Table(f"Oracle calls to reach the regret of {_REFERENCE}", columns, tuple(lines))


def _gains(found: _Found) -> Table:
    """Return the gain over 2-stage where methods that need a linear objective cannot enter."""
    lines = []
    for name, of_task in found.items():
        if TASKS[name].is_linear or OURS not in of_task or TWO_STAGE not in of_task:
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
                Cell.of_number(of_task[OURS].calls, "{:,.0f}"),
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
        "Where the objective is not linear in the label, test regret in %", columns, tuple(lines)
    )


def _ranks(found: _Found) -> Table:
    linear = {name: of_task for name, of_task in found.items() if name in LINEAR}
    n_seeds = {
        name: len(of_task.get(OURS, max(of_task.values(), key=lambda one: len(one.blocks))).blocks)
        for name, of_task in linear.items()
    }
    common = [
        method
        for method in METHODS
        if linear
        and all(
            method in linear[name] and len(linear[name][method].blocks) >= n_seeds[name]
            for name in linear
        )
    ]
    places = ranks(linear, common)
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
            Cell.of_number(score.calls, "{:,.0f}"),
            Cell.of_number(score.looks, "{:,.0f}"),
            Cell.of_number(score.calls_of_one, "{:,.0f}"),
            Cell.of_number(score.seconds_solving, "{:.1f}"),
            Cell.of_number(score.seconds, "{:.1f}"),
            Cell.of_number(len(score.blocks), "{:d}"),
        )
        for score in ordered
    )
    columns = (
        "method",
        "test regret, %",
        f"less {TWO_STAGE}",
        "oracle calls",
        "looks",
        "calls of one model",
        "CPU seconds solving",
        "CPU seconds in all",
        "seeds",
    )
    return Table(TASKS[name].title, columns, lines)


def _beside(score: Score, baseline: Score | None) -> float:
    """Return the regret, less that of 2-stage on the same seeds where it is known."""
    return score.regret if baseline is None else score.less(baseline).mean


def _percent(value: float) -> Cell:
    return Cell(f"{100 * value:.2f}", 100 * value)


def _pair(difference: Difference) -> Cell:
    mean, error = 100 * difference.mean, 100 * difference.error
    return Cell(f"{mean:+.2f} ± {error:.2f}", mean)
