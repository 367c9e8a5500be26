"""What training one model costs: 2-stage, DFL and learned losses, by cores and by models."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import joblib

from lodl.benchmarks._measure_cost import (
    LODL,
    TRAINED,
    DomainCosts,
    PreparationCosts,
    measure_domain,
    trained_at_once,
)
from lodl.benchmarks._setup import SETUPS, Setup
from lodl.benchmarks._versions import versions

_MOST_CORES = 64  # the paper's machines
_MOST_MODELS = 50


@dataclass(frozen=True)
class CostSettings:
    """What is measured, and with what.

    Attributes:
        n_samples: Candidates per instance, K.
        n_steps: Steps of training, T, without early stopping.
        cores: Numbers of cores to measure on; the first is 1.
        domains: Names of setups.
        versions: Of the packages: under others it is measured again.
    """

    n_samples: int
    n_steps: int
    cores: tuple[int, ...] = (1,)
    domains: tuple[str, ...] = ("web", "portfolio")
    versions: Mapping[str, str] = field(default_factory=versions)


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
        setup = setups[name]
        domain = setup.build(0)
        costs = measure_domain(
            setup,
            n_samples=settings.n_samples,
            n_steps=settings.n_steps,
            cores=settings.cores,
        )
        counts = {
            "N": len(domain.splits.train_and_validation.y),
            "B": trained_at_once(domain, setup),
            "K": settings.n_samples,
            "T": settings.n_steps,
        }
        domains.append({"domain": name, "title": setup.title, **cost_of_domain(costs, counts)})
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    return {"settings": asdict(settings), "machine": machine, "domains": domains}


def cost_of_domain(costs: DomainCosts, counts: Mapping[str, int]) -> dict[str, Any]:
    """Returns the measured seconds of one model, and what follows from them.

    With P the seconds of sampling and fitting on one core, p those that do not become fewer on
    more, and M those of training,

        seconds on c cores = p + (P - p) / c + M,   seconds of each of m models = P / m + M

    for learned losses, and M for the others, whose steps wait for one another. So learned losses
    cost less than DFL, of M', from (P - p) / (M' - M - p) cores, `break_even`, and from
    P / (M' - M) models, `break_even_models`; None where they never do.

    Args:
        costs: What was measured.
        counts: N instances, B of them in a step of training, K samples, T steps.
    """
    once = costs.preparation[0].seconds
    serial = _serial(costs.preparation)
    gain = costs.training["DFL"] - costs.training[LODL]
    cores, models = list(range(1, _MOST_CORES + 1)), list(range(1, _MOST_MODELS + 1))
    units = _unit_costs(costs, counts)
    return {
        "counts": dict(counts),
        "units": units,
        "formula": _by_formula(units, counts),
        "fit_steps": units["T_fit"] / units["T_LODL"],
        "training": costs.training,
        "measured": [
            asdict(part) | {"seconds": _seconds(costs, part.seconds)} for part in costs.preparation
        ],
        "by_cores": {
            "cores": cores,
            "seconds": _curves(costs, [serial + (once - serial) / c for c in cores]),
        },
        "by_models": {"models": models, "seconds": _curves(costs, [once / m for m in models])},
        "serial": serial,
        "break_even": (once - serial) / (gain - serial) if gain > serial else None,
        "break_even_models": once / gain if gain > 0 else None,
    }


def _serial(preparation: Sequence[PreparationCosts]) -> float:
    """Returns the seconds that more cores do not save: p of p + (P - p) / c (Amdahl's law).

    The curve goes through what was measured on one core and on the most. With one core alone, all
    is taken to divide.
    """
    one, most = preparation[0], preparation[-1]
    if most.cores == 1:
        return 0.0
    serial = (most.cores * most.seconds - one.seconds) / (most.cores - 1)
    return min(max(serial, 0.0), one.seconds)


def _unit_costs(costs: DomainCosts, counts: Mapping[str, int]) -> dict[str, float]:
    """Returns the paper's T of everything, and what our fit took, in seconds of one core."""
    n_passes, n_samples = counts["T"] * counts["B"], counts["N"] * counts["K"]
    return {
        "T_M": costs.training["2-stage"] / n_passes,
        "T_O": costs.preparation[0].sampling / n_samples,
        "T_O of DFL": costs.units.surrogate_forward,
        "T'_O": costs.units.surrogate_backward,
        "T_LODL": costs.units.learned_loss,
        "T_fit": costs.preparation[0].fitting / n_samples,
    }


def _by_formula(units: Mapping[str, float], counts: Mapping[str, int]) -> dict[str, float]:
    """Returns the paper's cost of each method on one core, with B for its N in a training step."""
    n_passes, n_samples = counts["T"] * counts["B"], counts["N"] * counts["K"]
    training = n_passes * units["T_M"]
    return {
        "2-stage": training,
        "DFL": training + n_passes * (units["T_O of DFL"] + units["T'_O"]),
        LODL: n_samples * (units["T_O"] + counts["T"] * units["T_LODL"]) + training,
    }


def _curves(costs: DomainCosts, before: Sequence[float]) -> dict[str, list[float]]:
    """Returns the seconds of one model, by the seconds spent before training."""
    return {name: [_seconds(costs, one)[name] for one in before] for name in TRAINED}


def _seconds(costs: DomainCosts, before: float) -> dict[str, float]:
    """Returns the seconds of one model, with those before training where losses are learned."""
    return {name: costs.training[name] + (before if name == LODL else 0.0) for name in TRAINED}
