"""The summary of a run: a few sentences for each domain."""

from collections.abc import Sequence

from markupsafe import Markup

from lodl.report.page import Section
from lodl_benchmarks.pages._draw import in_seconds
from lodl_benchmarks.pages._results import REFERENCES, Result, Results

_UNTRAINED = (*REFERENCES, "Constant")
_BASELINE = "2-stage"
_IN_WORDS = {_BASELINE: f"squared error ({_BASELINE})", "DFL": "a handcrafted surrogate (DFL)"}


def summary_section(results: Results) -> Section:
    """Return, for each domain, what was best, what it gained over squared error, and its cost."""
    paragraphs = [
        Markup("<strong>{}.</strong> {}").format(results.title_of(domain), summary_of(compared))
        for domain, compared in results.compared.items()
    ]
    return Section("summary", "Summary", Markup("</p>\n<p>").join(paragraphs))


def summary_of(results: Sequence[Result]) -> str:
    """Return what came out in one domain. Numbers and their spread stay on one line."""
    return " ".join(_sentences(results)).replace(" ± ", "\u00a0±\u00a0")


def _sentences(results: Sequence[Result]) -> list[str]:
    trained = [result for result in results if result.method not in _UNTRAINED]
    if not trained:
        return ["No model was trained here."]
    best = trained[0]
    learned = [result for result in trained if result.is_learned]
    baseline = _named(_BASELINE, results)
    sentences = [_about_best(best, trained), *_about_constant(best, _named("Constant", results))]
    if learned and learned[0] is not best:
        sentences.append(f"The best learned loss, {learned[0].method}, gives {learned[0].quality}.")
    if baseline is not None:
        sentences += _about_gain(learned[0] if learned else best, baseline)
    if learned:
        sentences += _about_cost(learned[0], baseline)
    return sentences


def _named(method: str, results: Sequence[Result]) -> Result | None:
    return next((result for result in results if result.method == method), None)


def _in_words(method: str) -> str:
    return _IN_WORDS.get(method, method)


def _about_best(best: Result, trained: Sequence[Result]) -> str:
    close = [
        other.method
        for other in trained[1:]
        if best.quality.mean - other.quality.mean <= best.quality.std + other.quality.std
    ]
    sentence = f"Models trained on {_in_words(best.method)} decide best: {best.quality}"
    if close:
        sentence += f", with {_listed(close)} within the spread"
    return sentence + "."


def _about_constant(best: Result, constant: Result | None) -> list[str]:
    if constant is None or constant.quality.mean <= best.quality.mean:
        return []
    return [
        f"Predicting a constant does better than any model, {constant.quality.mean:.2f}: here, "
        "what the models learn from the features does not help the decision."
    ]


def _about_gain(result: Result, baseline: Result) -> list[str]:
    if result is baseline:
        return []
    gain = result.quality.mean - baseline.quality.mean
    if abs(gain) < 0.005:
        return [f"That is what squared error ({baseline.method}) gives, too: {baseline.quality}."]
    verb = "gains" if gain > 0 else "loses"
    return [
        f"Against squared error ({baseline.method}, {baseline.quality}), {result.method} "
        f"{verb} {abs(gain):.2f}."
    ]


def _about_cost(result: Result, baseline: Result | None) -> list[str]:
    if result.oracle_calls is None or not result.seconds:
        return []
    seconds = {part: in_seconds(value) for part, value in result.seconds.items()}
    sentence = f"{result.method} took {result.oracle_calls:,.0f} solver calls before training"
    if "sampling" in seconds and "fitting" in seconds:
        sentence += f", {seconds['sampling']} to sample and {seconds['fitting']} to fit"
    if "training" in seconds:
        sentence += f"; training took {seconds['training']}"
        if baseline is not None and "training" in baseline.seconds:
            sentence += f", against {in_seconds(baseline.seconds['training'])} on squared error"
    return [sentence + "."]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
