"""The README's numbers: of its example, and of the committed results.

python results/readme.py           # run the example 25 times and print its numbers: two minutes
python results/readme.py --write   # also write them to results/readme.json and README.md
python results/readme.py --tables  # only write the numbers of committed results to README.md
python results/readme.py --picture # draw results/report.png: the report of the example

Rounding differs between machines, and training may amplify it until another model is selected.
Labels changed by one part in 10^14 show how far that moves the result. Data seeds 0 to 4 were
looked at while the example was written, seeds 100 to 109 were not. The example has data seed 1,
because with seed 0 machines select different models, and end at 0.026 or at 0.057.

A line of README.md with a number, outside code, is a line that `lines` makes from results, or its
numbers are in `SETTINGS`, with the file that says so. A test checks it.
"""

import argparse
import contextlib
import io
import json
import re
import shutil
import statistics
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent
README = RESULTS.parent / "README.md"
RECORD = Path(__file__).with_suffix(".json")
PICTURE = RESULTS / "report.png"
CALLS = {"affine": 10, "kinked": 22, "other": 39}  # most of a `fit` per instance; tested
SETTINGS = {  # numbers that are no results: the text of the README, and a file that has its numbers
    "Python 3.11 or newer": "pyproject.toml",
    "NeurIPS 2022": "CITATION.cff",
}
_OUTPUT = re.compile(r"(?<=```\n\n```\n).*?(?=```\n)", re.DOTALL)  # the block after the code
_CLAIM = re.compile(r"^Rounding differs.*?results/readme\.py`\.\n", re.DOTALL | re.MULTILINE)


def example(page: str) -> str:
    """Return the README's first block of code."""
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]


def run(code: str) -> dict[str, Any]:
    """Return what the example prints, and the mean regret on new instances before and after."""
    names: dict[str, Any] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, names)
    before, *_, after = names["evaluation"].means.values()
    return {"said": said.getvalue(), "before": before, "after": after}


def rounded(code: str, number: int) -> str:
    """Return the example with labels that another machine could have computed."""
    noise = f"np.random.default_rng({number}).choice([-1e-14, 1e-14], size=y.shape)"
    return replaced(code, "\nmodel = ", f"\ny *= 1 + {noise}\nmodel = ")


def reseeded(code: str, seed: int) -> str:
    """Return the example with other data."""
    return replaced(code, "default_rng(1)", f"default_rng({seed})")


def replaced(code: str, old: str, new: str) -> str:
    """Return code with one replacement."""
    if code.count(old) != 1:
        raise SystemExit(f"The example in README.md must have {old!r} once, got {code.count(old)}.")
    return code.replace(old, new)


def record(code: str) -> dict[str, Any]:
    """Run the example with rounding and with other data, and print each result."""
    of_page = shown(run(code), "as on the page")
    runs = [shown(run(rounded(code, i)), f"rounding {i}") for i in range(10)]
    known, fresh = (
        [shown(run(reseeded(code, seed)), f"data seed {seed}") for seed in seeds]
        for seeds in (range(5), range(100, 110))
    )
    return {
        "said": of_page["said"],
        "before": of_page["before"],
        "after_with_rounding": [one["after"] for one in runs],
        "gain": [1 - one["after"] / one["before"] for one in known],
        "gain_on_fresh_seeds": [1 - one["after"] / one["before"] for one in fresh],
    }


def shown(result: dict[str, Any], name: str) -> dict[str, Any]:
    """Print a result and return it."""
    print(f"{name}: {result['before']:.3f} -> {result['after']:.3f}", flush=True)
    return result


def claim(record: dict[str, Any]) -> str:
    """Return what the page says about other machines and other data."""
    after, gain = record["after_with_rounding"], record["gain"]
    fresh = record["gain_on_fresh_seeds"]
    ends = list(dict.fromkeys(f"{value:.3f}" for value in (min(after), max(after))))
    text = (
        "Rounding differs between machines and can decide which model is selected: with labels "
        f"times 1 ± 1e-14, ten runs ended at {' to '.join(ends)}. For data "
        f"seeds 0 to 4, trucks lose {100 * min(gain):.0f} to {max(gain):.0%} less; for ten "
        f"fresh seeds, {100 * min(fresh):.0f} to {max(fresh):.0%} "
        f"(median {statistics.median(fresh):.0%}): `python results/readme.py`."
    )
    return textwrap.fill(text, 140, break_on_hyphens=False) + "\n"


def with_record(page: str, record: dict[str, Any]) -> str:
    """Return the README with the numbers of a record."""
    for pattern, text in ((_OUTPUT, record["said"]), (_CLAIM, claim(record))):
        page, n_found = pattern.subn(lambda _, text=text: text, page, count=1)
        if not n_found:
            raise SystemExit(f"README.md must have a text that matches {pattern.pattern!r}.")
    return page


def lines() -> dict[str, str]:
    """Return the README's lines with numbers of committed results, by how they begin."""
    found = [*_real(), *_paper(), *_peers(), *_texts()]
    return {re.match(r"\| .*? \| |[^\d]*", line)[0]: line for line in found}


def with_lines(page: str) -> str:
    """Return the README with the numbers of committed results."""
    made = lines()
    found = []
    for line in page.splitlines():
        key = next((key for key in made if line.startswith(key)), None)
        found.append(line if key is None else made.pop(key))
    if made:
        raise SystemExit(f"README.md must have lines that begin with {', '.join(made)}.")
    return "\n".join(found) + "\n"


def _table(file: str, title: str = "") -> dict[str, dict[str, str]]:
    """Return the first table below a title of a page: cells by row and column."""
    text = (RESULTS / file).read_text()
    table = text[text.index("| ", text.index(title)) :].split("\n\n")[0]
    rows = [row.removeprefix("| ").removesuffix(" |") for row in table.splitlines()]
    names = rows[0].split(" | ")
    cells = (row.split(" | ") for row in rows[2:])
    return {row[0]: dict(zip(names, row, strict=True)) for row in cells}


def _real() -> list[str]:
    rows = [json.loads(line) for line in (RESULTS / "real" / "rows.jsonl").read_text().splitlines()]
    called = {"quantile": "quantile regression", "shifted": "shifted by a quantile"}
    called["corrected"] = "drawn to the mean"
    tasks = {
        "flight-staff": ("staff for flight delays", 1),
        "restaurant": ("dishes that a restaurant prepares", 0),
        "pjm-2014-12": ("generation for the load of a power grid (PJM)", 1),
        "pjm-2012-05": ("the same, trained on fewer years", 1),
    }
    found = []
    for task, (name, digits) in tasks.items():
        regrets = {
            row["method"]: row["regret"]
            for row in rows
            if row["task"] == task and row["model"] == "ridge" and not row["choosing"]
        }
        simple = min(called, key=lambda method: regrets[method])
        plain, best, ours = (f"{regrets[m]:.{digits}f}" for m in ("plain", simple, "learner"))
        if regrets["learner"] < regrets[simple]:
            ours = f"**{ours}**"
        else:
            best = f"**{best}**"
        found.append(f"| {name} | {plain} | {best}, {called[simple]} | {ours} |")
    return found


def _paper() -> list[str]:
    table = _table("paper/table1.md")
    names = {
        "2-stage": "squared error (2-stage)",
        "DirectedQuadratic": "`DirectedQuadratic`, the paper's most reliable",
        "DecisionHinges": "`DecisionHinges`, ours",
        "Constant": "nothing: a constant prediction",
    }
    found = []
    for row, name in names.items():
        cells = [table[row][domain] for domain in ("Linear Model", "Web Advertising", "Portfolio")]
        found.append(f"| {name} | {' | '.join(cell.removesuffix(' *') for cell in cells)} |")
    return found


def _peers() -> list[str]:
    tasks = {
        "path 5x5, n = 100, degree 6, noise 0.5": "5 x 5 path, degree 6, noise 0.5, 100 instances",
        "path 5x5, n = 1,000, degree 4, noise 0.5": "the same, degree 4, 1,000 instances",
        "knapsack of 16, n = 500": "knapsack of 16, 500 instances",
        "path 12x12, n = 200, degree 6, noise 0.5": "12 x 12 path, degree 6, 200 instances",
    }
    found = []
    for task, name in tasks.items():
        table = _table("peers/peers.md", f"## {task}\n")
        cells = [table["2-stage"]["test regret, %"]]
        for method in ("SPO+", "lodl"):
            row = table[method]
            n_calls = sum(int(row[column].replace(",", "")) for column in ("oracle calls", "looks"))
            one = f" ({row['calls of one model']} of one model)" if method == "SPO+" else ""
            cost = f"{n_calls:,} calls{one}, {row['CPU s']} CPU s"
            cells.append(f"{row['less 2-stage']}; {cost}")
        found.append(f"| {name} | {' | '.join(cells)} |")
    return found


def _versions(file: str) -> Callable[..., str]:
    """Return a function that names the versions by which models were measured, if not the last."""
    rows = [json.loads(line) for line in (RESULTS / file).read_text().splitlines()]
    every = {(row["model"], row["versions"]["lodl"]) for row in rows}
    last = max(version for _, version in every)

    def made_by(*models: str) -> str:
        old = sorted({version for model, version in every if model in models} - {last})
        return f" (by lodl {', '.join(old)})" if old else ""

    return made_by


def _texts() -> list[str]:
    every = _table("peers/peers.md", "## Our learner beside the best").values()
    n_best = sum(row["within one error"] == "yes" for row in every)
    n_worse = sum(row["not worse"] == "no" for row in every)
    learner = _table("learner/learner.md", "## Tasks on which")
    n_gains = {name: int(row["better by two errors"]) for name, row in learner.items()}
    boosted = ("xgboost", "lightgbm", "catboost")
    n_boosted = sum(int(learner[name]["tasks"]) for name in boosted)
    made_by = _versions("learner/rows.jsonl")
    affine, kinked, other = CALLS.values()
    claim = (RESULTS / "spo" / "spo.md").read_text()
    paths, portfolios = re.findall(r"of the best, in (\d+ of \d+) cells", claim)
    peers = map(json.loads, (RESULTS / "peers" / "rows.jsonl").read_text().splitlines())
    n_seeds = len({row["seed"] for row in peers if row["method"] in ("2-stage", "SPO+", "lodl")})
    return [
        "Test regret of squared error in percent of the optimum; what SPO+ and `lodl` add to it, ± "
        f"the standard error over {n_seeds} data seeds; and",
        f"Of {len(every)} linear tasks, `lodl` is best or within one standard error of the best on "
        f"{n_best}, and by more than that",
        f"worse than squared error on {n_worse}. On 12 [domains](results/learner/README.md) linear "
        f"models gain more than two standard errors on {n_gains['linear']} of "
        f"{learner['linear']['tasks']} tasks, boosted trees{made_by(*boosted)} on "
        f"{sum(n_gains[name] for name in boosted)} of {n_boosted}, and forests{made_by('forest')} "
        f"on {n_gains['forest']} of {learner['forest']['tasks']} (`lodl benchmark learner`).",
        "On the [founding table of SPO+](results/spo/README.md) it is best or within one standard "
        f"error of the best in {paths} cells of paths and {portfolios} of portfolios "
        "(`lodl reproduce spo`).",
        f"- **Few solver calls**: at most {affine} per instance if the objective is linear and "
        f"there is no context, {kinked} if it has a kink at the label, {other}",
    ]


def draw(code: str) -> None:
    """Draw the report of the example."""
    from playwright.sync_api import sync_playwright

    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    page = names["model"].report("report.html", names["x"][300:], names["y"][300:])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"], timeout=120_000
        )
        tab = browser.new_page(viewport={"width": 900, "height": 620})
        tab.goto(page.absolute().as_uri())
        tab.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("write", "tables", "picture"):
        parser.add_argument(f"--{option}", action="store_true")
    options, page = parser.parse_args(), README.read_text()
    if options.tables:
        README.write_text(with_lines(page))
        raise SystemExit
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if options.picture:
            draw(example(page))
            raise SystemExit
        found = record(example(page))
    print(f"\n{found['said']}\n{claim(found)}")
    if options.write:
        RECORD.write_text(json.dumps(found, indent=2) + "\n")
        README.write_text(with_record(page, found))
