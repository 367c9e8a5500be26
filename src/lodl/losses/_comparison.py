"""Learned losses side by side."""

import math
from collections.abc import Iterator, Sequence
from textwrap import fill

from lodl.errors import InvalidInputError
from lodl.losses._learned_loss import LearnedLoss
from lodl.losses._short_name import short_name
from lodl.losses._summary import FitSummary

_COLUMNS = ["rank corr.", "held out", "fitted", "R2", "met", "slopes", "parameters", "family"]
_WIDTH = 80
_NOTE = (
    "Medians over fitted instances (means of rank correlation, met and slopes). Held out and "
    "fitted: errors as shares of the mean regret. Rank correlation and R2 are those of held-out "
    "samples. A loss made of decisions is a bound and not a fit, so instead of errors it has the "
    "share of costly held-out decisions that were met before, and of held-out decisions that its "
    "slopes explain."
)


def compare_losses(losses: Sequence[LearnedLoss]) -> str:
    """Return a table of learned losses for the same instances, and name the one that ranks best.

    Raises:
        InvalidInputError: The losses are not for the same instances.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(10, 1, 1))
        >>> oracle = lodl.Oracle(domain.problem)
        >>> samples = oracle.sample(domain.splits.train.y, n_samples=50, slopes=True)
        >>> families = (lodl.WeightedMSE(), lodl.DecisionHinges())
        >>> table = lodl.losses.compare_losses([lodl.losses.fit(samples, one) for one in families])
        >>> "DecisionHinges" in str(table)
        True
    """
    if not losses:
        raise InvalidInputError("`losses` must hold at least one learned loss, got none.")
    for loss in losses[1:]:
        loss.check_labels(losses[0].y)
    summaries = [loss.summary() for loss in losses]
    rows = [_COLUMNS, *map(_cells, summaries)]
    *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = []
    for *numbers, family in rows:
        start = "".join(
            f"{text.rjust(width)}  " for text, width in zip(numbers, widths, strict=True)
        )
        lines.append(
            fill(
                start + family,
                _WIDTH,
                break_long_words=False,
                subsequent_indent=" " * (len(start) + 2),
            )
        )
    advice = (f"{short_name(one.family)}: {one.findings[0].verdict.name}." for one in summaries)
    notes = (*advice, _NOTE, *_best(summaries))
    return "\n".join([*lines, *(fill(note, _WIDTH) for note in notes)])


def _best(summaries: Sequence[FitSummary]) -> Iterator[str]:
    """Yield which family ranks held-out samples best, where there are several that do."""
    ranked = [one for one in summaries if not math.isnan(one.rank_correlation)]
    if len(ranked) > 1:
        best = max(ranked, key=lambda one: one.rank_correlation)
        yield (
            f"Best by rank correlation: {short_name(best.family)} ({best.rank_correlation:.2f}). "
            "Decisions of models on validation instances have the last word."
        )


def _cells(summary: FitSummary) -> list[str]:
    errors = (summary.error_held_out, summary.error_fitted, summary.r2)
    shares = (summary.decisions_met, summary.decisions_explained)
    return [
        f"{summary.rank_correlation:.2f}",
        *("-" if summary.family.uses_slopes else f"{spread.median:.2f}" for spread in errors),
        *("-" if share is None else f"{share:.2f}" for share in shares),
        str(summary.n_parameters),
        short_name(summary.family),
    ]
