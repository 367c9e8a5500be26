import numpy as np
from sklearn.linear_model import Ridge

import lodl


def test_a_page_shows_what_was_gained_and_tried(tmp_path):
    class Pick(lodl.LinearProblem):
        sense, unit = "max", "<EUR>"

        def solve(self, y_hat, context):
            return (y_hat == y_hat.max()).astype(float)

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    families = (lodl.DecisionHinges(),)
    model = lodl.DecisionFocusedRegressor(
        Pick(), Ridge(), families=families, n_rounds=0, n_samples=4
    ).fit(x, y)
    path = model.report(tmp_path / "deep" / "page.html")
    page = path.read_text()
    assert "&lt;EUR&gt;" in page
    assert "<EUR>" not in page
    for row in model.history_:
        assert row.name in page
