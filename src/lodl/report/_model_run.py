"""One model that was fitted for its decisions: the record of it, and its page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lodl._typing import Array
from lodl.report._blocks import Block, Section
from lodl.report._json_file import write_text
from lodl.report._page import render
from lodl.report._summary import Summary
from lodl.report._table import Cell, Table

_ABOUT_REGRET = (
    "Regret is what a decision taken under a prediction costs more than the best one, scored under "
    "the true label."
)


@dataclass(frozen=True)
class TriedModel:
    """One model that was tried.

    Attributes:
        name: The loss it was trained on.
        round: Rounds of candidates around predictions that its loss knew.
        regret: Mean regret of its held-out decisions.
        n_calls: Oracle calls until then.
        seconds: Time until then.
    """

    name: str
    round: int
    regret: float
    n_calls: int
    seconds: float


@dataclass(frozen=True, eq=False)
class ModelRun:
    """What `DecisionFocusedRegressor.fit` found, as plain data.

    Attributes:
        problem: The name of the problem.
        unit: What the objective is counted in, or empty.
        headline: What to do, with the regret before and after.
        chosen: The model that was kept, in words.
        judged_by: Which instances were held out, in words.
        interval: Ends of the 95 % interval of the gain per instance.
        instances: Names of the held-out instances.
        two_stage: Regret of 2-stage on each of them, NaN where the solver failed.
        regret: Regret of the kept model.
        tried: All models that were tried, in order.
        n_oracle_calls: Oracle calls made.
        seconds: Time that `fit` took.
        settings: Parameters of the learner, by name.
        label_names: Names of the numbers in a label, or None.
        y: Labels of the held-out instances, None if they are not known any more.
        y_hat_two_stage: Held-out predictions of 2-stage, or None.
        y_hat: Held-out predictions of the kept model, or None.
    """

    problem: str
    unit: str
    headline: str
    chosen: str
    judged_by: str
    interval: tuple[float, float]
    instances: tuple[str, ...]
    two_stage: Array
    regret: Array
    tried: tuple[TriedModel, ...]
    n_oracle_calls: int
    seconds: float
    settings: Mapping[str, str]
    label_names: tuple[str, ...] | None = None
    y: Array | None = None
    y_hat_two_stage: Array | None = None
    y_hat: Array | None = None


def write_model_report(run: ModelRun, path: str | Path) -> Path:
    """Write one HTML file about a fitted model that needs nothing but a browser."""
    n_changed = int(np.sum(run.two_stage != run.regret))
    summary = Summary(
        run.problem,
        (
            run.headline,
            f"Kept: {run.chosen}.",
            f"{n_changed} of {len(run.regret)} held-out decisions differ in worth.",
            f"{run.n_oracle_calls:,} oracle calls, {run.seconds:.3g} s.",
        ),
    )
    sections = [_tried_section(run), _settings_section(run)]
    page = render(run.problem, run.judged_by, [summary], sections, _ABOUT_REGRET)
    return write_text(Path(path), page)


def _tried_section(run: ModelRun) -> Section:
    unit = f" ({run.unit})" if run.unit else ""
    table = Table(
        "All models that were tried",
        ("trained on", "round", f"regret{unit}", "oracle calls", "seconds"),
        tuple(
            (
                Cell(one.name),
                Cell.of_number(one.round, "{:d}"),
                Cell.of_number(one.regret, "{:.4g}"),
                Cell.of_number(one.n_calls, "{:,}"),
                Cell.of_number(one.seconds, "{:.1f}"),
            )
            for one in run.tried
        ),
    )
    text = "Mean regret of held-out decisions; calls and seconds until then."
    return Section("tried", "What was tried", text, (Block(tables=(table,)),))


def _settings_section(run: ModelRun) -> Section:
    rows = tuple((Cell(name), Cell(value)) for name, value in run.settings.items())
    table = Table("Parameters of the learner", (), rows)
    return Section("settings", "Settings", "", (Block(tables=(table,)),))
