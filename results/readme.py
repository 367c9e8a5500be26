"""The README's example: what it prints, how much of that is rounding, and its gain for other data.

python results/readme.py           # run it 25 times and print the numbers: two minutes
python results/readme.py --write   # also write them to results/readme.json and README.md

Rounding differs between machines, and training may amplify it until another model is selected.
Labels changed by one part in 10^14 show how far that moves the result. Data seeds 0 to 4 were
looked at while the example was written, seeds 100 to 109 were not.
"""

import argparse
import contextlib
import io
import json
import re
import statistics
import tempfile
import textwrap
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
RECORD = Path(__file__).with_suffix(".json")
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
    return replaced(code, "default_rng(0)", f"default_rng({seed})")


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
    text = (
        "Rounding differs between machines and can decide which model is selected: with labels "
        f"times 1 ± 1e-14, ten runs ended at {min(after):.3f} to {max(after):.3f}. For data "
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="update README.md")
    is_written = parser.parse_args().write
    page = README.read_text()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = record(example(page))
    print(f"\n{found['said']}\n{claim(found)}")
    if is_written:
        RECORD.write_text(json.dumps(found, indent=2) + "\n")
        README.write_text(with_record(page, found))
