import pytest

from lodl.benchmarks import figure_cost_markdown
from lodl.benchmarks._measure_cost import LODL

FACTS = {
    "title": "Small",
    "counts": {"N": 10, "B": 4, "K": 5000, "T": 50},
    "units": dict.fromkeys(("T_M", "T_O", "T_O of DFL", "T'_O", "T_LODL", "T_fit"), 0.01),
    "formula": {"2-stage": 2.0, "DFL": 9.0, LODL: 1234.5},
    "fit_steps": 20.4,
    "measured": [
        {"cores": 1, "seconds": {"2-stage": 2.0, "DFL": 12.0, LODL: 44.0}},
        {"cores": 2, "seconds": {"2-stage": 2.0, "DFL": 12.0, LODL: 25.0}},
    ],
    "serial": 2.0,
    "break_even": 5.0,
    "break_even_models": 7.0,
}


def markdown(**changes):
    return figure_cost_markdown({"domains": [FACTS | changes]})


def test_units_say_what_they_were_found_from():
    text = markdown()
    assert "| K | samples of an instance |  | 5,000 |" in text
    assert "| T_M | model, forward and backward | 2-stage / T B | 10,000.0 µs |" in text
    assert "| T'_O | surrogate of DFL, backward | a pass of B | 10,000.0 µs |" in text


def test_the_papers_cost_stands_beside_what_was_measured():
    text = markdown()
    assert "| domain | trained on | cost | seconds by it | measured, 1 core |" in text
    assert "| Small | 2-stage | T B T_M | 2.0 | 2.0 | 2.0 |" in text
    assert f"| Small | {LODL} | K N T_O + N T K T_LODL + T B T_M | 1,234.5 | 44.0 | 25.0 |" in text
    assert "a fit took as long as 20 such steps" in text
    assert "2.0 s are taken not to divide" in text


@pytest.mark.parametrize(
    ("cores", "models", "words"),
    [
        (5.0, 7.0, "from 7.0 models on one core, and for a single model from 5.0 cores"),
        (None, 7.0, "from 7.0 models on one core, and for a single model on no number of cores"),
        (None, None, "never"),
        (0.7, 0.8, "on one core, for a single model"),
    ],
)
def test_it_says_where_learned_losses_pay(cores, models, words):
    assert words in markdown(break_even=cores, break_even_models=models)
