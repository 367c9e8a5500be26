"""The costs of training, as Markdown."""

from collections.abc import Mapping
from typing import Any

from lodl.benchmarks._measure_cost import LODL
from lodl.benchmarks._quality_table import markdown_table

_COUNTS = {
    "N": "instances with a learned loss",
    "B": "instances in a step of training; all N in the paper",
    "K": "samples of an instance",
    "T": "steps of training",
}
_UNITS = {
    "T_M": ("model, forward and backward", "2-stage / T B"),
    "T_O": ("oracle call of sampling", "sampling / K N"),
    "T_O of DFL": ("surrogate of DFL, forward", "a pass of B"),
    "T'_O": ("surrogate of DFL, backward", "a pass of B"),
    "T_LODL": ("learned loss of a sample, forward and backward by its parameters", "a pass of K"),
    "T_fit": ("our fit of a learned loss, of a sample", "fitting / K N"),
}
_FORMULAS = {
    "2-stage": "T B T_M",
    "DFL": "T B (T_M + T_O of DFL + T'_O)",
    LODL: "K N T_O + N T K T_LODL + T B T_M",
}
_NOTE = (
    "The costs are the paper's, for one core, with B for its N in a step of training. 2-stage and "
    "the term K N T_O agree with what was measured by definition: T_M and T_O were found from it. "
    "T_O of DFL and T'_O were found apart, where a model predicts before training. N T K T_LODL is "
    "a fit by T steps of gradient descent; ours are solved."
)


def figure_cost_markdown(info: Mapping[str, Any]) -> str:
    """Returns unit costs, and the paper's formula with them beside what was measured."""
    domains = info["domains"]
    counts = [
        [name, meaning, "", *(f"{domain['counts'][name]:,}" for domain in domains)]
        for name, meaning in _COUNTS.items()
    ]
    units = [
        [name, meaning, found, *(f"{1e6 * domain['units'][name]:,.1f} µs" for domain in domains)]
        for name, (meaning, found) in _UNITS.items()
    ]
    n_cores = [part["cores"] for part in domains[0]["measured"]]
    totals = [
        [domain["title"], name, formula, f"{domain['formula'][name]:,.1f}"]
        + [f"{part['seconds'][name]:,.1f}" for part in domain["measured"]]
        for domain in domains
        for name, formula in _FORMULAS.items()
    ]
    measured = [f"measured, {n} core{'s' if n > 1 else ''}" for n in n_cores]
    return "\n\n".join(
        [
            markdown_table(
                ["", "", "found from", *(domain["title"] for domain in domains)], counts + units
            ),
            markdown_table(["domain", "trained on", "cost", "seconds by it", *measured], totals),
            _NOTE,
            *(f"{domain['title']}: {_in_words(domain)}" for domain in domains),
        ]
    )


def _in_words(domain: Mapping[str, Any]) -> str:
    """Says what a fit took, what does not divide, and where learned losses cost less than DFL."""
    return (
        f"a fit took as long as {domain['fit_steps']:.0f} such steps. Of sampling and fitting, "
        f"{domain['serial']:.1f} s are taken not to divide among cores. {_break_even(domain)}"
    )


def _break_even(domain: Mapping[str, Any]) -> str:
    cores, models = domain["break_even"], domain["break_even_models"]
    if models is None:
        return "Learned losses never cost less than DFL."
    if models <= 1:
        return "Learned losses cost less than DFL on one core, for a single model."
    by_cores = "on no number of cores" if cores is None else f"from {cores:.1f} cores"
    return (
        f"Learned losses cost less than DFL from {models:.1f} models on one core, and for a single "
        f"model {by_cores} (computed)."
    )
