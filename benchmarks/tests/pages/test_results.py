import numpy as np
import pytest

from lodl_benchmarks.pages import read_rows, results_of
from lodl_benchmarks.pages._settings import settings_in_words, versions_of
from lodl_benchmarks.pages._summary import summary_of
from lodl_benchmarks.paper._page import beside_the_paper
from lodl_benchmarks.paper._published import TABLE1


@pytest.fixture
def results(write_rows):
    """Returns the results of rows."""

    def of(*rows):
        found = read_rows(write_rows(*rows) / "rows.jsonl")
        return beside_the_paper(results_of(found), found)

    return of


@pytest.fixture
def summary(results):
    """Returns the sentences about the one domain of rows."""

    def of(*rows):
        (compared,) = results(*rows).compared.values()
        return summary_of(compared).replace("\u00a0", " ")

    return of


def test_runs_of_all_seeds_are_pooled(row, results):
    values = [0.2, 0.4, 0.5, 0.9]
    found = results(row("web", "NN", 0, values[:2]), row("web", "NN", 1, values[2:]))
    (result,) = found.compared["web"]
    assert result.runs == tuple(values)
    assert result.quality.mean == pytest.approx(np.mean(values))
    assert result.quality.std == pytest.approx(np.std(values))
    assert str(result.quality) == "0.50 ± 0.25"
    assert result.published == TABLE1["NN"]["web"]


def test_costs_are_means_over_seeds(row, results):
    found = results(
        row("web", "Quadratic", 0, [0.9], oracle_calls=100, seconds_fitting=1.0),
        row("web", "Quadratic", 1, [0.9], oracle_calls=300, seconds_fitting=2.0),
    )
    (result,) = found.compared["web"]
    assert result.oracle_calls == 200
    assert result.seconds == {"sampling": 0.5, "fitting": 1.5, "training": 4.0}
    assert result.is_learned


def test_methods_stand_best_first(row, results):
    found = results(row("web", "NN", 0, [0.1]), row("web", "DFL", 0, [0.9]))
    assert [result.method for result in found.compared["web"]] == ["DFL", "NN"]


def test_ablations_do_not_mix_with_what_is_compared(row, results):
    found = results(
        row("web", "2-stage", 0, [0.3]),
        row("web", "Quadratic", 0, [0.5], n_samples=50),
        row("web", "Quadratic", 0, [0.9]),
        row("web", "NN", 0, [0.8]),
        row("web", "NN", 0, [0.6], sampler="OnePerturbed(0.1)"),
    )
    compared = {result.method: result.quality.mean for result in found.compared["web"]}
    assert compared == {"2-stage": 0.3, "Quadratic": 0.9, "NN": 0.8}
    assert [(other.method, other.setting) for other in found.others] == [
        ("NN", "OnePerturbed(0.1)"),
        ("Quadratic", "50 samples"),
    ]
    assert all(other.published is None for other in found.others)


def test_settings_of_any_name_are_shown_and_missing_ones_are_not_made_up(row, results):
    found = results(
        row("web", "NN", 0, [0.9, 0.9], training={"{0.x}": 1}),
        row("web", "NN", 0, [0.5, 0.5], training={"{0.x}": 2}),
        {"domain": "web", "method": "NN", "test": [0.1]},
    )
    given, not_given = (other.setting for other in found.others)
    assert given.endswith(", learning rate 0.001, {0.x} 2")
    assert not_given == "settings not given"


def test_of_settings_that_as_many_methods_have_those_of_more_runs_are_compared(row, results):
    found = results(
        row("web", "NN", 0, [0.1, 0.2, 0.3], n_samples=2000),
        *(row("web", "NN", seed, [0.9, 0.9, 0.9], n_samples=5000) for seed in (0, 1)),
    )
    assert found.compared["web"][0].quality.mean == pytest.approx(0.9)


def test_of_learning_rates_that_of_the_best_validation_is_compared(row, results):
    found = results(
        row("web", "NN", 0, [0.9], validation=[0.1], learning_rate=0.1),
        row("web", "NN", 0, [0.5], validation=[0.2], learning_rate=0.01),
    )
    assert found.compared["web"][0].quality.mean == 0.5
    assert found.others[0].setting == "learning rate 0.1"


def test_real_prices_are_compared_with_the_papers_portfolio(row, results):
    found = results(row("portfolio-prices", "DFL", 0, [0.4]))
    assert found.compared["portfolio-prices"][0].published == TABLE1["DFL"]["portfolio"]
    assert found.title_of("portfolio-prices") == "Portfolio, real prices"


@pytest.mark.parametrize("domain", ["web-shop", "portfolio"])
def test_a_domain_of_a_users_own_is_not_compared_with_the_paper(results, domain):
    found = results({"domain": domain, "method": "2-stage", "test": [0.7]})
    assert found.compared[domain][0].published is None
    assert found.title_of(domain) == domain


def test_another_sampler_or_fewer_samples_are_not_compared_with_the_paper(row, results):
    one_perturbed = results(row("web", "NN", 0, [0.4], sampler="OnePerturbed(0.1)"))
    assert one_perturbed.compared["web"][0].published is None
    fewer = results(
        *(row("web", "NN", seed, [0.4], n_samples=50) for seed in (0, 1)),
        row("web", "NN", 0, [0.9], n_samples=5000),
    )
    assert fewer.compared["web"][0].quality.mean == 0.4
    assert fewer.compared["web"][0].published is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n_samples", (50, 5000, 500)),
        ("sampler", ("OnePerturbed(0.1)", "AllPerturbed(0.1)", "TwoPerturbed(0.1)")),
    ],
)
def test_of_an_ablation_alone_the_papers_main_settings_are_compared(row, results, name, values):
    quality = dict(zip(values, (0.6, 0.9, 0.7), strict=True))
    found = results(*(row("web", "NN", 0, [quality[v]], **{name: v}) for v in values))
    (result,) = found.compared["web"]
    assert (result.quality.mean, result.published) == (0.9, TABLE1["NN"]["web"])


def test_runs_on_other_data_of_the_same_seeds_are_kept_apart(row, results):
    found = results(
        *(row("mine", "NN", seed, [0.4], data=f"old {seed}") for seed in (0, 1)),
        *(row("mine", "NN", seed, [0.8], data=f"new {seed}") for seed in (0, 1)),
    )
    assert [result.runs for result in found.compared["mine"]] == [(0.4, 0.4)]
    assert [(other.runs, other.setting) for other in found.others] == [((0.8, 0.8), "data 2")]


def test_every_seed_has_data_of_its_own(row, results):
    found = results(*(row("mine", "NN", seed, [0.4], data=f"{seed}") for seed in (0, 1)))
    assert found.compared["mine"][0].runs == (0.4, 0.4)
    assert not found.others


def test_the_summary_gives_the_best_the_gain_and_the_cost(row, summary):
    said = summary(
        row("web", "Optimal", 0, [1.0]),
        row("web", "2-stage", 0, [0.4, 0.4], seconds_training=11.4),
        row("web", "Quadratic", 0, [0.9, 0.9]),
        row("web", "ConvexDirectedQuadratic", 0, [0.98, 0.98]),
    )
    assert said == (
        "Models trained on ConvexDirectedQuadratic decide best: 0.98 ± 0.00. "
        "Against squared error (2-stage, 0.40 ± 0.00), ConvexDirectedQuadratic gains 0.58. "
        "ConvexDirectedQuadratic took 200,100 solver calls before training, 0.5 s to sample and "
        "6.0 s to fit; training took 4.0 s, against 11 s on squared error."
    )


def test_the_summary_names_those_within_the_spread_and_the_best_learned_loss(row, summary):
    said = summary(
        row("web", "DFL", 0, [0.8, 1.0]),
        row("web", "Quadratic", 0, [0.85, 0.85]),
        row("web", "2-stage", 0, [0.1, 0.1]),
    )
    assert "a handcrafted surrogate (DFL) decide best: 0.90 ± 0.10" in said
    assert "0.10, with Quadratic within the spread." in said
    assert "The best learned loss, Quadratic, gives 0.85 ± 0.00." in said


def test_the_summary_does_not_hide_that_a_constant_is_better_or_squared_error(row, summary):
    said = summary(
        row("portfolio", "Constant", 0, [0.68]),
        row("portfolio", "2-stage", 0, [0.47]),
        row("portfolio", "Quadratic", 0, [0.38]),
    )
    assert "Models trained on squared error (2-stage) decide best" in said
    assert "Predicting a constant does better than any model, 0.68" in said
    assert "Quadratic loses 0.09" in said


def test_the_summary_of_bare_rows_is_still_one(summary):
    said = summary({"domain": "mine", "method": "trees", "test": [0.5]})
    assert said == "Models trained on trees decide best: 0.50 ± 0.00."
    assert summary({"domain": "mine", "method": "Random", "test": [0]}) == (
        "No model was trained here."
    )


def test_settings_that_differ_are_shown_with_their_methods(row, write_rows):
    folder = write_rows(
        *(row("web", "NN", seed, [0.9], learning_rate=0.1, settings="N(a=1)") for seed in range(3)),
        row("web", "2-stage", 5, [0.5], settings="TwoStage()"),
    )
    rows = read_rows(folder / "rows.jsonl")
    told = dict(settings_in_words(rows)["web"])
    assert told["seeds"] == "0, 1, 2, 5"
    assert told["learning rate"] == "0.1 (NN); 0.001 (2-stage)"
    assert told["samples"] == "2000"
    assert told["parameters"] == "N(a=1)"
    assert dict(settings_in_words(rows[:3])["web"])["seeds"] == "0 to 2"
    assert versions_of(rows) == (("lodl", "0.1.0"), ("numpy", "2.4.6"))


def test_methods_are_named_only_where_a_setting_is_an_exception(row, write_rows):
    learned = [(name, f"Learned(family={name}(rank=4))") for name in ("Quadratic", "NN")]
    methods = [*learned, ("2-stage", "TwoStage()"), ("DFL", "DFL()")]
    errors = {"Quadratic": [0.1], "NN": [0.2]}

    def rows_of(methods, **more):
        return [
            row("web", name, 0, [0.5], settings=text, empirical_error=errors.get(name, []), **more)
            for name, text in methods
        ]

    folder = write_rows(
        *rows_of(methods, learning_rate=0.1),
        *rows_of(learned, learning_rate=0.1, n_samples=50),
        *rows_of(learned, learning_rate=0.1, n_samples=500),
        row("web", "mine", 0, [0.5], learning_rate=0.2),
    )
    told = dict(settings_in_words(read_rows(folder / "rows.jsonl"))["web"])
    assert told["samples"] == "2000; 50, 500 (learned losses)"
    assert told["learning rate"] == "0.1; 0.2 (mine)"
    assert told["parameters"] == "Quadratic(rank=4); NN(rank=4)"
