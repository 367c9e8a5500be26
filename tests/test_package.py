"""The package as a whole: what it needs, what it shows."""

import pkgutil
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions, requires, version

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lodl

FRAMEWORKS = ["torch", "sklearn", "xgboost", "lightgbm", "cvxpy", "matplotlib", "pandas"]
SLOW = ["joblib", "loky", "tqdm", "threadpoolctl", "cloudpickle", "importlib.metadata"]
EXTRAS = ["distributed", "dask", "typer", "rich"]

WITHOUT_EXTRAS = """
import sys

class OnlyDeclared:
    # First on the meta path: refuses every package that a bare installation would not have.
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        is_standard = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        if not is_standard and top not in {allowed!r}:
            raise ModuleNotFoundError(f"{{name}} is not declared", name=name)

sys.meta_path.insert(0, OnlyDeclared())

import numpy as np
import lodl
from lodl.evaluation import decision_loss, regret
from lodl.testing import check_problem
import lodl.report

y = np.random.default_rng(0).random((4, 3))
pick = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
check_problem(pick, y)
loss = lodl.learn_loss(lodl.Oracle(pick, store="answers"), y, n_samples=60)
loss.save("loss.safetensors")
assert (lodl.load_loss("loss.safetensors").value(y) == 0).all()
assert (decision_loss(pick, y, y) == -y.max(axis=1)).all() and not regret(pick, y, y).any()
model = lodl.DecisionFocusedRegressor(pick, families=(), n_samples=2).fit(y, y)
assert len(model.decide(y)) == 4
for extra, call in [
    ("torch", "import lodl.training.torch"),
    ("sklearn", "from sklearn.linear_model import Ridge; "
     "lodl.DecisionFocusedRegressor(pick, Ridge(), families=(), n_samples=2).fit(y, y).save('m')"),
    ("torch", "lodl.learn_loss(pick, y, family=lodl.NeuralLoss(), n_samples=60)"),
    ("report", "model.report('report.html')"),
    ("cli", "from lodl.cli import main; main()"),
]:
    try:
        exec(call)
    except (ImportError, SystemExit) as error:
        print(extra, call, error)
    else:
        raise AssertionError(call)
"""


def core_distributions():
    """Returns the names of what a bare `pip install lodl` installs, by declaration."""
    found, waiting = set(), ["lodl"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        declared = [Requirement(line) for line in requires(name) or []]
        waiting += [
            canonicalize_name(one.name)
            for one in declared
            if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    return found


@cache
def core_modules():
    """Returns the top-level modules of those distributions."""
    core = core_distributions()
    owners = packages_distributions()
    return {module for module in owners if core & set(map(canonicalize_name, owners[module]))}


@pytest.mark.slow
def test_the_core_works_without_any_extra_and_says_what_to_install(tmp_path):
    script = WITHOUT_EXTRAS.format(allowed=core_modules() | {"lodl"})
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    hints = done.stdout + done.stderr
    for extra in ("torch", "sklearn", "report", "cli"):
        assert f"pip install 'lodl[{extra}]'" in hints


@pytest.mark.slow
def test_no_framework_but_scikit_learn_and_no_extra_is_a_declared_dependency_of_the_core():
    assert core_modules() & {*FRAMEWORKS, *EXTRAS} == {"sklearn"}
    assert {"numpy", "loky"} <= core_modules()


def loaded_by(statement, modules):
    """Return which of the modules a fresh process has loaded after a statement."""
    script = f"import sys; {statement}; print(*[m for m in {modules} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_the_package_imports_no_framework_and_nothing_slow():
    assert loaded_by("import lodl", [*FRAMEWORKS, *EXTRAS, *SLOW]) == []


def test_what_needs_scikit_learn_loads_it_on_first_use():
    names = ["lodl.learning", "lodl.evaluation", "lodl.report", "lodl.training", "lodl.testing"]
    assert loaded_by(f"import {', '.join(names)}", ["sklearn"]) == []


IN_WORKERS = """
import sys
import numpy as np
import lodl

class Pick(lodl.LinearProblem):
    sense = "max"

    def solve(self, y_hat, context):
        if "sklearn" in sys.modules:
            raise ImportError("a worker has imported scikit-learn")
        return np.eye(len(y_hat))[y_hat.argmax()]

x, y = np.random.default_rng(0).normal(size=(2, 8, 3))
model = lodl.DecisionFocusedRegressor(lodl.Oracle(Pick(), n_jobs=2), families=(), n_samples=2)
model.fit(x, y).decide(x)
assert "sklearn" in sys.modules
"""


@pytest.mark.slow
def test_workers_never_import_scikit_learn(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", IN_WORKERS], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_only_torch_training_imports_torch():
    names = [module.name for module in pkgutil.walk_packages(lodl.__path__, "lodl.")]
    others = [
        name for name in names if not name.startswith("lodl.training.") and "__main__" not in name
    ]
    assert {"lodl.cli", "lodl.losses._neural", "lodl.report", "lodl.training"} <= set(others)
    assert loaded_by(f"import {', '.join(others)}", ["torch", "lodl_benchmarks"]) == []


def test_every_public_name_exists_and_is_documented():
    for name in lodl.__all__:
        assert getattr(lodl, name).__doc__, name


def test_sub_packages_are_there_after_importing_the_package():
    code = "import lodl; lodl.testing.check_problem; lodl.evaluation.regret; lodl.evaluation"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"testing", "evaluation", "learn_loss"} <= set(dir(lodl))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lodl.nonsense  # noqa: B018


def test_the_version_is_that_of_the_installed_package():
    assert lodl.__version__ == version("lodl")


def test_dir_lists_public_names_only_and_each_of_them_can_be_used():
    assert {name for name in dir(lodl) if name.startswith("_")} == {"__version__"}
    assert {"importlib", "Any", "package_version"}.isdisjoint(dir(lodl))
    assert set(lodl.__all__) < set(dir(lodl))
    for name in dir(lodl):
        assert getattr(lodl, name) is not None, name


def test_no_module_imports_itself_by_a_detour():
    graph = grimp.build_graph("lodl", cache_dir=None)  # local and type-checking imports count
    imports = {
        module: [
            other
            for other in graph.find_modules_directly_imported_by(module)
            if not module.startswith(f"{other}.")
        ]
        for module in graph.modules
    }
    TopologicalSorter(imports).prepare()  # raises a CycleError that names the modules
