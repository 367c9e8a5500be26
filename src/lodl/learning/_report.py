"""The page of a fitted model: its plain data, handed to `lodl.report`."""

from pathlib import Path
from typing import TYPE_CHECKING

from lodl.learning._summary import headline
from lodl.problems._problem import describe
from lodl.report import ModelRun, TriedModel, write_model_report

if TYPE_CHECKING:
    from lodl.learning._regressor import DecisionFocusedRegressor


def write_report_of(model: "DecisionFocusedRegressor", path: Path) -> Path:
    """Write the page of a fitted model and return its path."""
    return write_model_report(run_of(model), path)


def run_of(model: "DecisionFocusedRegressor") -> ModelRun:
    """Return all that a page shows of a fitted model."""
    unit, held_out = model.problem.unit, model.held_out_
    settings = model.get_params(deep=False)
    return ModelRun(
        problem=describe(model.problem),
        unit=unit,
        headline=headline(model.gain_, unit),
        chosen=model.chosen_,
        judged_by=model.judged_by_,
        interval=(model.gain_.low, model.gain_.high),
        instances=tuple(map(str, held_out.index)),
        two_stage=held_out.two_stage,
        regret=held_out.chosen,
        tried=tuple(
            TriedModel(row.name, row.round, row.regret, row.n_calls, row.seconds)
            for row in model.history_
        ),
        n_oracle_calls=model.n_oracle_calls_,
        seconds=model.seconds_,
        settings={name: str(value) for name, value in settings.items() if name != "problem"},
        label_names=model.label_names_,
        y=held_out.y,
        y_hat_two_stage=held_out.y_hat_two_stage,
        y_hat=held_out.y_hat,
    )
