"""What training one model costs: 2-stage, DFL and learned losses, by cores and by models."""

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import joblib

from lodl.experiments._measure_cost import LODL, TRAINED, PartCosts, UnitCosts, measure_domain
from lodl.experiments._quality_table import markdown_table
from lodl.experiments._setup import SETUPS, Setup

_MOST_CORES = 64  # the paper's machines
_MOST_MODELS = 50
_FORMULAS = {
    "2-stage": "T B T_M",
    "DFL": "T B (T_M + T_O of the surrogate + T'_O)",
    LODL: "K N T_O + N K T_fit + T B (T_M + T_LODL)",
}
_MEANINGS = {
    "T_M": "model, forward and backward",
    "T_O": "oracle call of sampling",
    "T_O of the surrogate": "surrogate of DFL, forward",
    "T'_O": "surrogate of DFL, backward",
    "T_LODL": "learned loss, forward and backward",
    "T_fit": "fit of a learned loss, per sample",
}


@dataclass(frozen=True)
class CostSettings:
    """What is measured.

    Attributes:
        n_samples: Candidates per instance, K.
        n_steps: Steps of training, T, without early stopping.
        cores: Numbers of cores to measure on; the first is 1.
        domains: Names of setups.
    """

    n_samples: int
    n_steps: int
    cores: tuple[int, ...] = (1,)
    domains: tuple[str, ...] = ("web", "portfolio")


COST_SCALES: dict[str, CostSettings] = {
    "quick": CostSettings(n_samples=1000, n_steps=200),
    "paper": CostSettings(n_samples=5000, n_steps=500),
}


def measured_cores(n_jobs: int) -> tuple[int, ...]:
    """Returns 1, 2, 4 and so on up to what joblib makes of `n_jobs` on this machine."""
    most = joblib.effective_n_jobs(n_jobs)
    return tuple(2**i for i in range(most.bit_length()))


def figure_cost_info(
    settings: CostSettings, setups: Mapping[str, Setup] = SETUPS
) -> dict[str, Any]:
    """Measures the domains and returns seconds per model, as data; see `cost_of_domain`."""
    domains = []
    for name in settings.domains:
        parts, units = measure_domain(
            setups[name],
            n_samples=settings.n_samples,
            n_steps=settings.n_steps,
            cores=settings.cores,
        )
        splits = setups[name].build(0).splits
        n_train = len(splits.train.y)
        counts = {
            "N": len(splits.with_losses.y),
            "B": min(setups[name].training.batch_size or n_train, n_train),
            "K": settings.n_samples,
            "T": settings.n_steps,
        }
        domains.append(
            {"domain": name, "title": setups[name].title, **cost_of_domain(parts, units, counts)}
        )
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    return {"settings": asdict(settings), "machine": machine, "domains": domains}


def cost_of_domain(
    parts: list[PartCosts], units: UnitCosts, counts: Mapping[str, int]
) -> dict[str, Any]:
    """Returns the measured seconds of one model, and what follows from those of one core.

    With S, F the seconds of sampling and fitting on one core and M those of training,

        seconds on c cores = (S + F) / c + M,   seconds of each of m models = (S + F) / m + M

    for learned losses, and M for the others, whose steps wait for one another. So one number,
    `break_even` = (S + F) / (M of DFL - M), tells from how many cores, or models, learned losses
    cost less than DFL; it is None where they never do.

    Args:
        parts: What was measured, the first on one core.
        units: Of single passes.
        counts: N instances, B of them in a step of training, K samples, T steps.
    """
    one, once = parts[0], parts[0].sampling + parts[0].fitting
    cores, models = list(range(1, _MOST_CORES + 1)), list(range(1, _MOST_MODELS + 1))
    gain = one.training["DFL"] - one.training[LODL]
    unit_costs = _unit_costs(one, units, counts)
    return {
        "counts": dict(counts),
        "units": unit_costs,
        "formula": _by_formula(unit_costs, counts),
        "measured": [asdict(part) | {"seconds": _seconds_of(part)} for part in parts],
        "by_cores": {"cores": cores, "seconds": _curves(one, once, cores)},
        "by_models": {"models": models, "seconds": _curves(one, once, models)},
        "break_even": once / gain if gain > 0 else None,
    }


def _unit_costs(one: PartCosts, units: UnitCosts, counts: Mapping[str, int]) -> dict[str, float]:
    """Returns the paper's T of everything, in seconds of one core."""
    n_passes, n_samples = counts["T"] * counts["B"], counts["N"] * counts["K"]
    return {
        "T_M": one.training["2-stage"] / n_passes,
        "T_O": one.sampling / n_samples,
        "T_O of the surrogate": units.surrogate_forward,
        "T'_O": units.surrogate_backward,
        "T_LODL": units.learned_loss,
        "T_fit": one.fitting / n_samples,
    }


def _by_formula(units: Mapping[str, float], counts: Mapping[str, int]) -> dict[str, float]:
    """Returns the paper's cost of each method on one core, from counts and unit costs."""
    n_passes, n_samples = counts["T"] * counts["B"], counts["N"] * counts["K"]
    through_surrogate = units["T_O of the surrogate"] + units["T'_O"]
    return {
        "2-stage": n_passes * units["T_M"],
        "DFL": n_passes * (units["T_M"] + through_surrogate),
        LODL: n_samples * (units["T_O"] + units["T_fit"])
        + n_passes * (units["T_M"] + units["T_LODL"]),
    }


def _seconds_of(part: PartCosts) -> dict[str, float]:
    """Returns the seconds of one model, with all that it needs."""
    before = {LODL: part.sampling + part.fitting}
    return {name: before.get(name, 0.0) + part.training[name] for name in TRAINED}


def _curves(one: PartCosts, once: float, shares: list[int]) -> dict[str, list[float]]:
    """Returns the seconds of one model where sampling and fitting are shared by so many."""
    before = {LODL: once}
    return {
        name: [before.get(name, 0.0) / share + one.training[name] for share in shares]
        for name in TRAINED
    }


def figure_cost_markdown(info: Mapping[str, Any]) -> str:
    """Returns unit costs, and the paper's formula with them beside what was measured."""
    domains = info["domains"]
    counts = [[name, "", *(f"{domain['counts'][name]:,}" for domain in domains)] for name in "NBKT"]
    units = [
        [name, meaning, *(f"{1e6 * domain['units'][name]:,.1f} µs" for domain in domains)]
        for name, meaning in _MEANINGS.items()
    ]
    n_cores = [part["cores"] for part in domains[0]["measured"]]
    totals = [
        [domain["title"], name, formula, f"{domain['formula'][name]:,.1f}"]
        + [f"{part['seconds'][name]:,.1f}" for part in domain["measured"]]
        for domain in domains
        for name, formula in _FORMULAS.items()
    ]
    titles = [domain["title"] for domain in domains]
    measured = [f"measured, {n} core{'s' if n > 1 else ''}" for n in n_cores]
    return "\n\n".join(
        [
            markdown_table(["", "", *titles], counts + units),
            markdown_table(["domain", "trained on", "cost", "seconds by it", *measured], totals),
            *(f"{domain['title']}: {_break_even(domain)}" for domain in domains),
        ]
    )


def _break_even(domain: Mapping[str, Any]) -> str:
    share = domain["break_even"]
    if share is None:
        return "learned losses never cost less than DFL."
    if share <= 1:
        return "learned losses cost less than DFL on one core, for a single model."
    return (
        f"learned losses cost less than DFL from {share:.1f} cores, or from {share:.1f} models on "
        "one core (computed)."
    )
