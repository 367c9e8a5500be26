"""From an empty file to decisions, in ten lines: a knapsack with HiGHS."""

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

EXAMPLE = """\
import lodl, numpy as np
from lodl.problems.highs import LinearProgram

rng = np.random.default_rng(0)
x, weights = rng.normal(size=(60, 3)), rng.integers(1, 9, size=(1, 6))
y = np.exp(x @ rng.normal(size=(3, 6)))  # values of six items, which no linear model gets right
knapsack = LinearProgram(weights, "max", row_upper=12, upper=1, integrality=1)
model = lodl.DecisionFocusedRegressor(knapsack, max_calls=400).fit(x[:40], y[:40])
print(model.summary())
z = model.decide(x[40:])
"""


def test_ten_lines_lead_from_an_empty_file_to_decisions(capsys):
    assert len(EXAMPLE.replace("\n\n", "\n").splitlines()) <= 10
    names: dict[str, Any] = {}
    exec(compile(EXAMPLE, "example", "exec"), names)
    assert "se this model: regret " in capsys.readouterr().out
    packed = np.array(names["z"])
    assert packed.shape == (20, 6)
    assert (packed @ names["weights"][0] <= 12).all()
    y = names["y"][40:]
    best = np.array([names["knapsack"].solve(label, None) for label in y])
    regret = names["model"].regret(names["x"][40:], y)
    np.testing.assert_allclose(np.sum((best - packed) * y, axis=1), regret, atol=1e-9)
