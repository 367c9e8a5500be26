"""PJM: a ridge that stays as it is, with a small boosted correction.

    python results/real/boosted_correction.py FOLDER [--choosing]

Test regret of the ridge, and of the regressor with a correction by LightGBM (100 rounds, four
leaves), trained until 2014-12-29; or, to choose by, trained until a year before 2012-05-16 and
tested on that year.
"""

import sys
from pathlib import Path

from lightgbm import LGBMRegressor
from sklearn.model_selection import KFold

from lodl import DecisionFocusedRegressor, Oracle
from lodl._threads import one_blas_thread
from lodl.training.corrected import Corrected
from lodl_benchmarks.real._tasks import TASKS, TIME_ORDER, estimator


def main() -> None:
    folder, choosing = Path(sys.argv[1]), "--choosing" in sys.argv
    task = "pjm-2012-05" if choosing else "pjm-2014-12"
    split = TASKS[task].read(folder, "ridge", TIME_ORDER, choosing)
    trees = LGBMRegressor(n_estimators=100, learning_rate=0.15, num_leaves=4, verbose=-1)
    trees.set_params(min_child_samples=30, max_bin=63, n_jobs=1)
    learner = Corrected(estimator("ridge", split), trees, max_shift=6.0)
    model = DecisionFocusedRegressor(Oracle(split.problem, progress=False), learner)
    with one_blas_thread():
        model.fit(split.x_train, split.y_train, validation=KFold(5))
        print(model.evaluate(split.x_test, split.y_test))


if __name__ == "__main__":
    main()
