"""A model trained for one feasible set, deciding under another.

    python results/structure/changed.py

Prints the test regret of the plain model and of the trained one, by `model.evaluate(problem=...)`:
the paper's Linear Model, trained for the best 1 of 50 items, and knapsacks of 16 items (degree 4,
300 instances), trained at one capacity. Data seeds 2001 to 2003.
"""

from dataclasses import replace

import numpy as np

import lodl
from lodl.domains import Domain, Knapsack, TopK, knapsack
from lodl_benchmarks.domains import linear_model

SEEDS = (2001, 2002, 2003)


def main() -> None:
    print("| trained for | decides under | plain model | trained model |\n|---|---|---|---|")
    picks = {f"best {k} of 50": TopK(k) for k in (1, 5, 25, 45)}
    made = [linear_model(seed, sizes=(200, 1, 400)) for seed in SEEDS]
    show("best 1 of 50", made, [picks] * len(made))
    made = [knapsack(seed, sizes=(300, 1, 1000), n_items=16) for seed in SEEDS]
    show("knapsack", made, [capacities(domain.problem) for domain in made])


def capacities(problem: Knapsack) -> dict[str, Knapsack]:
    """Return the knapsack with half to twice its capacity."""
    shares = (0.5, 0.8, 1.0, 1.25, 2.0)
    given = {share: tuple(share * c for c in problem.capacity) for share in shares}
    return {f"{share:g} x capacity": replace(problem, capacity=c) for share, c in given.items()}


def show(name: str, domains: list[Domain], problems: list[dict[str, lodl.Problem]]) -> None:
    """Print mean regrets over data seeds, with their deviation."""
    regrets: dict[str, list[list[float]]] = {label: [] for label in problems[0]}
    for domain, others in zip(domains, problems, strict=True):
        train, test = domain.splits.train, domain.splits.test
        model = lodl.DecisionFocusedRegressor(domain.problem, random_state=0).fit(train.x, train.y)
        for label, other in others.items():
            by_name = model.evaluate(test.x, test.y, problem=other).regrets
            pair = [by_name[of] for of in ("plain model", "this model")]
            regrets[label].append([float(np.mean(of)) for of in pair])
    for label, pairs in regrets.items():
        mean, deviation = np.mean(pairs, axis=0), np.std(pairs, axis=0)
        cells = [f"{m:.4g} ± {d:.2g}" for m, d in zip(mean, deviation, strict=True)]
        print(f"| {name} | {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
