import numpy as np
import pytest
from sklearn.linear_model import Ridge

import lodl

pytestmark = pytest.mark.slow


class Pick(lodl.LinearProblem):
    sense, unit = "max", "EUR"

    def solve(self, y_hat, context):
        return (y_hat == y_hat.max()).astype(float)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two saved models of the same data."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    folder = tmp_path_factory.mktemp("models")
    for name, strength in (("weak", 0.1), ("strong", 100.0)):
        model = lodl.DecisionFocusedRegressor(
            Pick(), Ridge(strength), families=(lodl.DecisionHinges(),), n_rounds=0, n_samples=4
        ).fit(x, y, validation=2)
        model.save(folder / name)
    return folder


def test_two_models_are_compared_pair_by_pair(folders, run_lodl):
    code, out, _ = run_lodl("compare", str(folders / "weak"), str(folders / "strong"))
    assert code == 0
    assert "weak" in out
    assert "different instances" not in out


def test_a_unit_is_not_compared_with_another_one(folders, run_lodl, tmp_path):
    class Cents(Pick):
        unit = "cent"

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    model = lodl.DecisionFocusedRegressor(Cents(), Ridge(), families=(), n_rounds=0, n_samples=2)
    model.fit(x, y, validation=2).save(tmp_path / "cents")
    code, out, err = run_lodl("compare", str(folders / "weak"), str(tmp_path / "cents"))
    assert code == 2
    assert "better" not in out
    assert "must be of one problem, got Pick for weak, Cents for cents" in err


def test_one_folder_is_no_comparison(folders, run_lodl):
    code, _, err = run_lodl("compare", str(folders / "weak"))
    assert code == 2
    assert "at least two different folders" in err
