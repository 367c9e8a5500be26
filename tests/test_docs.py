"""What the documents say holds."""

import contextlib
import json
import logging
import re
import runpy
import shlex
import sqlite3
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors import safe_open

import lodl
import lodl.cli
from lodl.losses import squared_error_loss
from lodl.oracle import _workers

ROOT = Path(__file__).parents[1]
TO_UPDATE = "Run `python results/readme.py --write` to update the numbers of README.md."
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "results").rglob("*.md")),
]


README = (ROOT / "README.md").read_text()
OF_README = SimpleNamespace(**runpy.run_path(str(ROOT / "results" / "readme.py")))
RECORD = json.loads(OF_README.RECORD.read_text())


@pytest.mark.slow
def test_the_code_of_the_readme_runs_and_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(block, "README.md", "exec"), namespace)
    # Rounding may change the numbers after training, and nothing else.
    said = capsys.readouterr().out
    assert without_numbers(said) == without_numbers(RECORD["said"]), TO_UPDATE
    before, *_, after = namespace["evaluation"].means.values()
    assert before == pytest.approx(RECORD["before"], rel=1e-6), TO_UPDATE
    rounded = RECORD["after_with_rounding"]
    assert 0.8 * min(rounded) < after < 1.25 * max(rounded), TO_UPDATE


def without_numbers(text):
    return re.sub(r"[\d.,]*\d", "#", " ".join(text.split()))


def test_the_numbers_of_the_readme_are_those_of_its_record():
    assert OF_README.with_record(README, RECORD) == README, TO_UPDATE


def test_writing_the_record_mends_a_wrong_number_in_the_readme():
    for number in (
        f"{max(RECORD['after_with_rounding']):.4f}",
        f"{max(RECORD['after_with_rounding']):.3f}. For",
        "% less; for ten",
    ):
        assert README.count(number) == 1
        assert OF_README.with_record(README.replace(number, f"9{number}"), RECORD) == README


@pytest.mark.slow
def test_the_tutorial_of_the_command_line_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _workers._end_pool()  # workers of an earlier test would not find the modules of this folder
    page = (ROOT / "docs" / "tutorials" / "command-line.md").read_text()
    page = page.replace("--n-jobs 1", "--n-jobs 1 --max-seconds 0")  # the site does it in full
    names: dict[str, Any] = {}
    codes = []
    for kind, options, body in re.findall(
        r"```{(run|shell)}\n((?::[^\n]*\n)*)(.*?)```", page, re.DOTALL
    ):
        if file := re.search(r":file: (\S+)", options):
            Path(file[1]).write_text(body)
        elif kind == "run":
            exec(compile(body, "command-line.md", "exec"), names)
        for command in body.replace("\\\n", "").splitlines() if kind == "shell" else []:
            if command.startswith("lodl "):
                monkeypatch.setattr(sys, "argv", shlex.split(command))
                with pytest.raises(SystemExit) as ended:
                    lodl.cli.main()
                codes.append((ended.value.code, "fails" in options))
    said = capsys.readouterr()
    assert codes == [(0, False)] * 4 + [(2, True)], said.err
    assert "'n/a?' in row 17 ('2024-01-18'), column 'park'" in said.err
    assert "245 test instances" in said.out
    plan = Path("plan.csv").read_text().splitlines()
    assert plan[0] == "day,harbour,station,park,campus,museum,stadium"
    assert len(plan) == 6
    sys.modules.pop("trucks", None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "sections",
    [["MLflow"], ["ONNX: linear models", "ONNX: forests"]],
    ids=["mlflow", "onnx"],
)
def test_a_served_model_predicts_as_the_page_on_serving_says(sections, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = (ROOT / "docs" / "how-to" / "serve.md").read_text()
    parts = {part.splitlines()[0]: part for part in re.split(r"^#+ ", page, flags=re.MULTILINE)[1:]}
    names: dict[str, Any] = {"__name__": "__main__"}
    for part in [next(iter(parts.values())), *(parts[title] for title in sections)]:
        for block in re.findall(r"```python\n(.*?)```", part, re.DOTALL):
            exec(compile(block, "serve.md", "exec"), names)
    sys.modules.pop("truck", None)


def planned_calls(problem, caplog, *, n=60, items=False, context=None, estimator=None):
    """Return the calls per instance that a fit announces."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5, 2) if items else (n, 3))
    y = rng.gamma(2.0, size=(n, 5))
    caplog.clear()
    with caplog.at_level(logging.INFO, "lodl"):
        model = lodl.DecisionFocusedRegressor(problem, estimator, max_seconds=0)
        model.fit(x, y, context=context)
    return int(re.search(r"Up to \d+ solver calls, (\d+) for each", caplog.text)[1])


@pytest.mark.filterwarnings("ignore::UserWarning:lightgbm")
def test_the_calls_per_instance_that_pages_name_are_the_most_that_fit_plans(caplog):
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMRegressor(n_estimators=2, n_jobs=1, verbose=-1)
    top = lodl.problem(
        lambda y_hat, context: np.isin(np.arange(5), np.argsort(y_hat)[-2:]).astype(float),
        lambda z, y, context: float(z @ y),
        sense="max",
    )
    stock = lodl.problem(
        lambda y_hat: y_hat.clip(0),
        lambda z, y: float((2 * np.minimum(z, y) - z).sum()),
        sense="max",
    )
    smooth = lodl.problem(np.round, lambda z, y: float(((z - y) ** 2).sum()), sense="min")
    ways: tuple[dict[str, Any], ...] = ({}, {"items": True}, {"estimator": trees})
    most = [
        max(planned_calls(problem, caplog, context=context, **way) for problem, context in of
            for way in ways)
        for of in ([(top, None)], [(stock, None)], [(smooth, None), (top, list(range(60)))])
    ]  # fmt: skip
    assert most == list(OF_README.CALLS.values())


def test_spo_plus_is_the_loss_that_the_page_for_users_of_pyepo_says():
    page = (ROOT / "docs" / "how-to" / "from-pyepo.md").read_text()
    code = re.search(r"## The same loss.*?```{run}\n(.*?)```", page, re.DOTALL)[1]
    names: dict[str, Any] = {"np": np, "lodl": lodl}
    exec(compile(code, "from-pyepo.md", "exec"), names)
    np.testing.assert_allclose(names["loss"].value(names["y_hat"]), names["spo_plus"])
    assert names["spo_plus"].max() > 1


def test_the_recipe_for_a_program_in_another_language_decides_and_names_what_fails(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "tutorials" / "your-own-solver.md").read_text()
    blocks = r"## A program.*?```{run}\n:file: packer.py\n(.*?)```.*?```{run}\n(.*?)```"
    program, code = re.search(blocks, page, re.DOTALL).groups()
    Path("packer.py").write_text(program)
    names: dict[str, Any] = {"lodl": lodl, "y": np.array([[1.0, 3.0, 3.5]])}
    exec(compile(code, "your-own-solver.md", "exec"), names)
    assert names["z"] == [0, 2]
    lodl.testing.check_problem(names["packer"], names["y"])
    Path("packer.py").write_text("import sys; sys.exit('no licence')")
    with pytest.raises(RuntimeError, match=r"packer.py failed: no licence"):
        names["packer"].solve(names["y"][0])


@pytest.mark.slow
def test_the_learner_in_jax_keeps_its_contract(monkeypatch):
    """JAX is not installed here: its two functions are stood in for, by complex steps."""

    def vjp(function, w):
        def pull_back(g):
            gradients = {name: np.zeros_like(array) for name, array in w.items()}
            for name, array in w.items():
                for place in np.ndindex(array.shape):
                    moved = {key: one.astype(complex) for key, one in w.items()}
                    moved[name][place] += 1e-30j
                    gradients[name][place] = (g * function(moved).imag).sum() / 1e-30
            return (gradients,)

        return function(w), pull_back

    def tree_map(function, *trees):
        return {name: function(*(tree[name] for tree in trees)) for name in trees[0]}

    jax: Any = ModuleType("jax")
    jax.numpy, jax.vjp, jax.tree = np, vjp, SimpleNamespace(map=tree_map)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", np)
    page = (ROOT / "docs" / "how-to" / "own-learner.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    assert len(code.splitlines()) < 65
    names: dict[str, Any] = {"__name__": "jax_learner"}
    monkeypatch.setitem(sys.modules, "jax_learner", ModuleType("jax_learner"))
    exec(compile(code, "own-learner.md", "exec"), names)
    lodl.testing.check_learner(names["JaxLearner"](n_hidden=2, max_steps=60))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_gain_of_the_readme_holds_for_other_data(seed):
    result = OF_README.run(OF_README.reseeded(OF_README.example(README), seed))
    assert result["after"] < 0.6 * result["before"]


def unsourced(page):
    """Returns the lines of a page, outside code, with numbers that no result or file has."""
    known = [*OF_README.lines().values(), *OF_README.claim(RECORD).splitlines()]
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    found = []
    for line in text.splitlines():
        words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)  # code and addresses
        for phrase in OF_README.SETTINGS:
            words = words.replace(phrase, "")
        if re.search(r"\d", words) and line not in known:
            found.append(line)
    return found


def test_every_number_of_the_readme_is_made_from_a_result_or_named_with_its_file():
    advice = "Make the line in `lines` of results/readme.py, or name its file in `SETTINGS`."
    assert unsourced(README) == [], advice
    assert OF_README.with_lines(README) == README, "Run `python results/readme.py --tables`."
    for phrase, file in OF_README.SETTINGS.items():
        assert phrase in README
        text = (ROOT / file).read_text()
        assert all(number in text for number in re.findall(r"[\d.]*\d", phrase)), phrase


@pytest.mark.parametrize(
    ("old", "new"),
    [("## How", "It is 12% faster."), ("| 15.19 |", "| 15.18 |"), ("**11.3**", "**11.2**")],
)
def test_a_number_without_a_source_is_found(old, new):
    assert README.count(old) == 1
    [line] = unsourced(README.replace(old, new))
    assert new in line


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["affine", "kinked"])
def test_fit_makes_no_more_calls_per_instance_than_the_pages_say(kind):
    make = {"affine": lodl.domains.knapsack, "kinked": lodl.domains.newsvendor}[kind]
    domain = make(sizes=(40, 1, 1))
    oracle, data = lodl.Oracle(domain.problem), domain.splits.train
    lodl.DecisionFocusedRegressor(oracle).fit(data.x, data.y, context=data.context)
    n_fixed = 40  # to find out what kind of objective it is, and for the report's examples
    assert oracle.n_calls / len(data.y) <= OF_README.CALLS[kind] + n_fixed / len(data.y)


@pytest.mark.parametrize("page", ["README.md", "docs/reference/faq.md", "docs/how-to/few-calls.md"])
def test_pages_agree_on_the_calls_per_instance(page):
    text = " ".join((ROOT / page).read_text().split())
    affine, kinked, other = OF_README.CALLS.values()
    calls = f"most {affine} per instance if the objective is linear and there is no context, "
    assert f"{calls}{kinked} if it has a kink at the label, {other} otherwise" in text


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_the_page_on_files_states_the_version_of_loss_files_that_is_written(tmp_path):
    squared_error_loss(np.eye(2)).save(tmp_path / "loss")
    with safe_open(tmp_path / "loss", framework="numpy") as file:
        name, version = (file.metadata()[key] for key in ("format", "version"))
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    assert f"| `format`, `version` | `{name}`, `{version}` |" in page
    assert f"`*.safetensors`, format version {version}\n" in page


def test_the_page_on_files_states_the_tables_and_the_version_of_a_store(tmp_path):
    lodl.Oracle(lodl.domains.TopK(1), store=tmp_path / "answers.db", progress=False).sample(
        np.eye(3), n_samples=2
    )
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    with contextlib.closing(sqlite3.connect(tmp_path / "answers.db")) as store:
        version = store.execute("SELECT value FROM header WHERE key = 'version'").fetchone()[0]
        tables = [
            name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
            assert f"| `{table}` | {', '.join(f'`{name}`' for name in columns)} |" in page
    assert f"Format version {version}." in page


def test_the_page_on_files_states_the_version_of_model_folders(tmp_path):
    domain = lodl.domains.knapsack(sizes=(8, 1, 1))
    data = domain.splits.train
    model = lodl.DecisionFocusedRegressor(domain.problem, families=(), n_rounds=0, n_samples=1)
    model.fit(data.x, data.y, validation=2).save(tmp_path / "model")
    version = json.loads((tmp_path / "model" / "checksums.json").read_text())["lodl_model"]
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    assert f"`checksums.json` | the format's version ({version})" in page


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_extras_of_the_package_are_those_that_a_page_lists(page):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ", (ROOT / page).read_text(), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert {*listed, "all"} == project["optional-dependencies"].keys()
    assert len(set(listed)) == len(listed)


def test_the_page_on_errors_states_the_exit_codes():
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert codes == [0, 1, 2, lodl.cli._CTRL_C, lodl.cli._TERMINATED]


def test_the_page_on_citing_names_this_version_and_the_title_of_the_paper():
    page = " ".join((ROOT / "docs" / "reference" / "cite.md").read_text().split())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f"version = {{{citation['version']}}}" in page
    assert citation["preferred-citation"]["title"] in page


def test_the_chooser_and_the_page_for_users_of_pyepo_name_classes_that_exist():
    page = (ROOT / "docs" / "how-to" / "choose.md").read_text()
    text = "\n".join(path.read_text() for path in (ROOT / "src" / "lodl" / "problems").glob("*.py"))
    named = set(re.findall(r"`(\w+(?:Problem|Program))", page))
    assert len(named) > 6
    assert all(f"class {name}(" in text for name in named)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        assert "://" in target or (document.parent / target).exists(), target


def test_the_tests_that_a_page_names_exist():
    text = "\n".join(path.read_text() for path in sorted((ROOT / "docs").rglob("*.md")))
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text))
    assert len(named) > 50
    for file, test in sorted(named):
        assert f"def {test}(" in (ROOT / file).read_text() or not test, f"{file}::{test}"
