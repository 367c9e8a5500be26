"""Oracle calls of ten models that share one store of answers, beside SPO+ for one model.

Ten linear models with learning rates of their own are fitted to the same data, as in a search for
the best one. Answers around the labels are asked once; each model asks about its own predictions.

    python results/peers/ten_models.py [TASK]
"""

import sys
import tempfile

import numpy as np

from lodl import DecisionFocusedRegressor
from lodl.oracle import Oracle
from lodl.training.linear import LinearLearner
from lodl_benchmarks.peers import TASKS

RATES = np.geomspace(0.003, 0.03, 10)


def main(task: str = "path-100-6") -> None:
    """Print the calls of every fit."""
    domain = TASKS[task].build(16)
    part = domain.splits.train_and_validation
    calls = []
    with tempfile.TemporaryDirectory() as store:
        for rate in RATES:
            learner = LinearLearner(learning_rate=float(rate))
            model = DecisionFocusedRegressor(Oracle(domain.problem, store=store), learner)
            model.fit(part.x, part.y, context=part.context)
            calls.append(model.result_.n_calls)
            print(f"rate {rate:.4f}: {calls[-1]:,} calls", flush=True)
    print(f"{task}, {len(part.y)} instances: {sum(calls):,} calls for ten models, ", end="")
    print(f"{np.mean(calls):,.0f} for each; the first alone took {calls[0]:,}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
