"""The record of a diagnosis, for programs and for people."""

import math
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from lodl.evaluation._fidelity import Fidelity
from lodl.evaluation._region import Region
from lodl.evaluation._verdicts import Verdict, in_words
from lodl.losses import FitSummary

_WIDTH = 88


@dataclass(frozen=True)
class Diagnosis:
    """How faithful a learned loss is where a model predicts. `str(diagnosis)` is the text.

    Attributes:
        n_instances: Instances of the loss.
        n_examined: Instances at which the oracle was asked.
        oracle_calls: How often it was.
        fidelity: Learned loss against true regret at the predictions.
        region: The predictions against what was sampled; None where the sampler is not known.
        fit: How well the loss repeats the samples that it was learned from.
        verdicts: What to do, the most telling first.
    """

    n_instances: int
    n_examined: int
    oracle_calls: int
    fidelity: Fidelity
    region: Region | None
    fit: FitSummary
    verdicts: tuple[Verdict, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the diagnosis as JSON values; what is not defined is None."""
        fidelity = asdict(self.fidelity)
        fidelity |= {"error_share": self.fidelity.error_share, "quality": self.fidelity.quality}
        figures = {
            "family": str(self.fit.family),
            "n_instances": self.n_instances,
            "n_examined": self.n_examined,
            "oracle_calls": self.oracle_calls,
            "fidelity": fidelity,
            "region": None if self.region is None else asdict(self.region),
            "fit": {
                "n_samples": self.fit.n_samples,
                "error_fitted": self.fit.error_fitted.median,
                "error_held_out": self.fit.error_held_out.median,
            },
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
        }
        jsonable: dict[str, Any] = _json(figures)
        return jsonable

    def __str__(self) -> str:
        found = self.fidelity
        worst = [
            f"{one.instance} (loss {one.loss:.3g}, regret {one.regret:.3g})" for one in found.worst
        ]
        share = f", {found.error_share:.2f} of the mean regret" if found.regret > 0 else ""
        figures = {
            "mean regret": f"{found.regret:.3g}; with predictions of other instances "
            f"{in_words(found.foreign_regret)}, with reversed errors {found.reversed_regret:.3g}",
            "learned loss": f"{found.loss:.3g} on average",
            "absolute error": f"{found.error:.3g}{share}",
            "rank correlation": f"{in_words(found.rank_correlation, '.2f')} across instances, "
            f"{in_words(found.rank_correlation_within, '.2f')} within",
            "size of errors": self._region_text(),
            "worst instances": ", ".join(worst),
        }
        return "\n".join(
            [
                f"{self.fit.family} at the predictions for {self.n_examined} of "
                f"{self.n_instances} instances, {self.oracle_calls} oracle calls",
                *(_wrap(f"  {name:<18}{text}", indent=20) for name, text in figures.items()),
                *(_wrap(f"- {verdict}", indent=2) for verdict in self.verdicts),
            ]
        )

    def _region_text(self) -> str:
        if self.region is None:
            return "not compared with the samples: give `sampler`"
        found = self.region
        text = (
            f"{found.size_ratio:.2g} times those sampled; outside the samples "
            f"{found.share_outside:.0%}, far inside {found.share_inside:.0%}"
        )
        if found.share_wider > 0:
            text += f", wrong in more coordinates at once {found.share_wider:.0%}"
        return text


def _wrap(text: str, *, indent: int) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=" " * indent)


def _json(value: Any) -> Any:
    """Returns a value with lists for tuples and None for what is not finite."""
    if isinstance(value, dict):
        return {key: _json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
