"""The package as a whole: what it needs, what it shows."""

import subprocess
import sys

import lodl

FRAMEWORKS = ["torch", "sklearn", "xgboost", "lightgbm", "cvxpy", "matplotlib", "pandas"]
EXTRAS = ["daqp", "distributed", "dask", "typer", "rich"]

WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys({blocked!r}))  # an import of any of these raises

import numpy as np
import lodl
from lodl.evaluation import normalised_decision_quality
from lodl.testing import check_problem

y = np.random.default_rng(0).random((4, 3))
pick = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
check_problem(pick, y)
loss = lodl.learn_loss(pick, y, n_samples=60, store="samples.zarr")
loss.save("loss.safetensors")
assert (lodl.load_loss("loss.safetensors").value(y) == 0).all()
assert normalised_decision_quality(pick, y, y) == 1
for extra, call in [
    ("torch", "import lodl.training.torch"),
    ("torch", "lodl.learn_loss(pick, y, family=lodl.NeuralLoss(), n_samples=60)"),
    ("portfolio", "from lodl.problems import Portfolio; Portfolio().solve(y[0], np.eye(3))"),
    ("cli", "from lodl.cli import main; main()"),
]:
    try:
        exec(call)
    except (ImportError, SystemExit) as error:
        print(extra, call, error)
    else:
        raise AssertionError(call)
"""


def test_the_core_works_without_any_extra_and_says_what_to_install(tmp_path):
    script = WITHOUT_EXTRAS.format(blocked=FRAMEWORKS + EXTRAS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    hints = done.stdout + done.stderr
    for extra in ("torch", "portfolio", "cli"):
        assert f"pip install 'lodl[{extra}]'" in hints


def test_importing_the_package_imports_no_framework():
    script = f"import sys, lodl; print([m for m in {FRAMEWORKS + EXTRAS} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented():
    for name in lodl.__all__:
        assert getattr(lodl, name).__doc__, name
