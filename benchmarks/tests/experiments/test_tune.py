from lodl_benchmarks.experiments import (
    SCALES,
    SETUPS,
    choose,
    table1_experiments,
    tuning_experiments,
)
from lodl_benchmarks.pages import parse_row


def row(method, *, validation, test=(0.0,), sampler="AllPerturbed(1.0)", rate=0.1, surrogate=None):
    return parse_row(
        {
            "domain": "linear",
            "method": method,
            "validation": validation,
            "test": list(test),
            "sampler": sampler,
            "learning_rate": rate,
            "surrogate": surrogate,
        }
    )


def test_tuning_tries_the_same_for_every_method_and_never_a_seed_of_the_table():
    plan = tuning_experiments({"web": SETUPS["web"]}, 100)
    assert not {e.seed for e in plan} & {e.seed for e in table1_experiments(SCALES["paper"])}
    rates = {
        method: {e.learning_rate for e in plan if e.method == method}
        for method in {e.method for e in plan}
    }
    assert set(map(frozenset, rates.values())) == {frozenset(SETUPS["web"].learning_rates)}
    assert {e.sampler_name for e in plan if e.method == "Quadratic"} == {
        f"AllPerturbed({sampler.scale})" for sampler in SETUPS["web"].samplers
    }


def test_settings_are_chosen_by_validation_not_by_test():
    rows = [
        row("Quadratic", rate=0.1, validation=[0.2, 0.4], test=[1.0]),
        row("Quadratic", rate=0.01, validation=[0.5, 0.5], test=[0.0]),
        row("Quadratic", rate=0.1, validation=[0.4], test=[1.0], sampler="other"),
        row("DFL", surrogate="soft", rate=0.1, validation=[0.1], test=[1.0]),
        row("DFL", surrogate="hard", rate=0.01, validation=[0.3], test=[0.0]),
        row("2-stage", rate=0.1, validation=[-0.3], test=[0.0]),
        row("2-stage", rate=0.01, validation=[-0.4], test=[1.0]),
    ]
    assert choose(rows) == {
        "linear": {
            "sampler": "AllPerturbed(1.0)",
            "surrogate": "hard",
            "learning_rates": {"Quadratic": 0.01, "DFL": 0.01, "2-stage": 0.1},
        }
    }


def test_one_sampler_is_chosen_for_all_learned_losses_by_their_mean():
    rows = [
        row("Quadratic", sampler="near", validation=[0.9]),
        row("Quadratic", sampler="far", validation=[0.5]),
        row("WeightedMSE", sampler="near", validation=[0.1]),
        row("WeightedMSE", sampler="far", validation=[0.6]),
    ]
    assert choose(rows)["linear"]["sampler"] == "far"
