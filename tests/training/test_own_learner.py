"""The example of a learner for another framework, which checks itself."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "models" / "plot_own_learner.py"


@pytest.mark.slow
def test_the_example_of_ones_own_learner_runs(capsys):
    names = runpy.run_path(str(EXAMPLE))
    assert "score on new instances" in capsys.readouterr().out
    assert np.isfinite(names["model"].predict(names["test"].x)).all()
