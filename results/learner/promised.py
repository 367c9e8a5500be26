"""Does a fit keep its promise? The test gain, and the interval that validation gave for it.

    python results/learner/promised.py [FIRST_SEED [N_SEEDS]]

Linear models with defaults, nine tasks, data seeds 3001 to 3005 by default, 3,000 new instances.
`fit` promises how much less regret the selected model has than squared error, with an interval of
95 % from validation instances. Counted are fits that promise a gain or a loss: where squared error
stays, nothing is promised. Test instances err, too: with intervals that are right and 300
validation instances, 94 % of the gains would be inside.
"""

import sys
from functools import partial

import numpy as np

from lodl import DecisionFocusedRegressor
from lodl._threads import one_blas_thread
from lodl.domains import item_knapsack, knapsack, newsvendor, shortest_path
from lodl.evaluation import regret
from lodl_benchmarks.domains import assignment

LARGE, SMALL = (240, 60, 3000), (80, 20, 3000)
DOMAINS = {
    "path, degree 6": partial(shortest_path, degree=6, sizes=LARGE),
    "path, degree 4, n = 100": partial(shortest_path, degree=4, sizes=SMALL),
    "path, degree 1, n = 150": partial(shortest_path, degree=1, sizes=(120, 30, 3000)),
    "knapsack": partial(knapsack, sizes=LARGE),
    "knapsack, n = 100": partial(knapsack, sizes=SMALL),
    "knapsack by item": partial(item_knapsack, sizes=LARGE),
    "newsvendor": partial(newsvendor, sizes=LARGE),
    "newsvendor, n = 100": partial(newsvendor, sizes=SMALL),
    "assignment": partial(assignment, sizes=LARGE),
}


def distance(name: str, seed: int) -> float | None:
    """Return the test gain less the promised gain, in half widths of its interval."""
    domain = DOMAINS[name](seed)
    data, test = domain.splits.train_and_validation, domain.splits.test
    model = DecisionFocusedRegressor(domain.problem).fit(data.x, data.y, context=data.context)
    gain = model.result_.gain
    if gain.mean == 0:
        return None
    before, after = (
        regret(domain.problem, one.predict(test.x), test.y, context=test.context).mean()
        for one in (model.baseline_, model)
    )
    return float((before - after - gain.mean) / (gain.high - gain.mean))


def main() -> None:
    given = [int(value) for value in sys.argv[1:]]
    first, n_seeds = [*given, *(3001, 5)[len(given) :]]
    print("| task | promises | inside | less than promised | more |\n|---|---|---|---|---|")
    known: list[float] = []
    with one_blas_thread():
        for name in [*DOMAINS, "all"]:
            seeds = range(first, first + n_seeds) if name in DOMAINS else ()
            found = [d for seed in seeds if (d := distance(name, seed)) is not None]
            known += found
            shown = np.array(found if name in DOMAINS else known)
            counts = (np.sum(np.abs(shown) <= 1), np.sum(shown < -1), np.sum(shown > 1))
            print(f"| {name} | {len(shown)} | {' | '.join(map(str, counts))} |", flush=True)


if __name__ == "__main__":
    main()
