"""Calls and seconds until models decide as well as they must, beside SPO+.

    python speed/to_the_goal.py                   # the paths, the knapsacks and advertising
    python speed/to_the_goal.py path knapsack

One data seed of the tasks of `lodl benchmark rounds`, each method by itself on one core. SPO+ and
the losses in rounds have the same training loop, two learning rates and three initialisations;
`DecisionFocusedRegressor` has its defaults and its own. Calls are all that were made, for all
models, labels and choices included; seconds are all of asking and training.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lodl_benchmarks.rounds import TASKS, run
from lodl_benchmarks.rounds._tables import all_calls
from lodl_benchmarks.runner import Trial

SEED = 1


def main(names: list[str]) -> None:
    print("| task | goal | method | reached | calls | seconds |")
    print("|---|---|---|---|---|---|")
    for name in names:
        task = TASKS[name]
        compared = ("2-stage", "SPO+", task.judged, "DecisionFocusedRegressor")
        for method in (one for one in compared if one in task.methods):
            with TemporaryDirectory() as folder:  # of its own: no method finds another's answers
                trials = [Trial(name, method, SEED)]
                (row,) = run(trials, Path(folder), n_jobs=1, progress=False)
            seconds = row["seconds_sampling"] + row["seconds_training"]
            print(
                f"| {name} | {task.goal} | {method} | {row['test'][0]:.4f} "
                f"| {all_calls(row):,} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:] or [name for name, task in TASKS.items() if task.goal is not None])
