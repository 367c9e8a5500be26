"""LightGBM's trees in a folder that somebody may have forged: LightGBM trusts what it reads."""

import random
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from lodl.errors import ModelFolderError
from lodl.losses import squared_error_loss
from lodl.training import learner_for, load_predictor

lightgbm = pytest.importorskip("lightgbm")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
FRAME = pd.DataFrame({"x": X[:, 0], "kind of": pd.Categorical(RNG.choice(list("uvw"), size=60))})
# The trees of the last number, a constant, have a single leaf.
Y = np.column_stack([X[:, 0] > 0, X[:, 0] * X[:, 1], FRAME["kind of"] == "v", 0 * X[:, 0]])
N_FORGED = 60
IN_A_CHILD = """
import sys
from pathlib import Path
import pandas as pd
from lodl.errors import ModelFolderError
from lodl.training import load_predictor
frame = pd.read_json(sys.argv[2]).astype({"kind of": "category"})
for folder in sorted(Path(sys.argv[1]).iterdir()):
    try:
        assert load_predictor(folder).predict(frame).shape == (60, 4)
        print("loaded")
    except ModelFolderError:
        print("refused")
"""


def saved(folder, x=FRAME, **parameters):
    estimator = lightgbm.LGBMRegressor(
        n_estimators=4, num_leaves=4, min_child_samples=3, **parameters
    )
    model = learner_for(estimator).train(x, squared_error_loss(Y))[0]
    model.save(folder)
    return model


@pytest.mark.parametrize(
    ("x", "parameters"),
    [
        (FRAME, {}),
        (X, {"linear_tree": True, "learning_rate": 0.5}),
        (X, {"monotone_constraints": [1, 0]}),
        (X, {"min_split_gain": 1e9}),
    ],
    ids=["categories", "linear leaves", "monotone", "no split"],
)
def test_every_kind_of_tree_predicts_the_same_bits_after_loading(x, parameters, tmp_path):
    model = saved(tmp_path, x, **parameters)
    np.testing.assert_array_equal(load_predictor(tmp_path).predict(x), model.predict(x))


def forged(text, rng):
    """Return a model's text with a number, a list or a line changed as an attacker might."""
    lines = text.splitlines(keepends=True)
    numbers = [i for i, line in enumerate(lines) if re.match(r"[a-z_]+=[-\d]", line)]
    at = rng.choice(numbers)
    name, _, values = lines[at].rstrip("\n").partition("=")
    values = values.split(" ")
    place = rng.randrange(len(values))
    match rng.randrange(5):
        case 0:
            values[place] = rng.choice(["-1", "7", "1000000", "-99999999", "2147483647", "nan", ""])
        case 1:
            del values[place]
        case 2:
            values *= 50
        case 3:
            rng.shuffle(values)
        case 4:
            values[place] = "9" * rng.choice([12, 400])
    lines[at] = f"{name}={' '.join(values)}\n"
    if rng.randrange(8) == 0:
        del lines[rng.choice(numbers)]
    return "".join(lines)


@pytest.mark.slow
def test_forged_trees_are_refused_or_predict_but_never_end_the_process(tmp_path):
    saved(tmp_path / "model")
    rng = random.Random(0)
    for i in range(N_FORGED):
        folder = shutil.copytree(tmp_path / "model", tmp_path / "forged" / str(i))
        file = folder / "trees_0.txt"
        file.write_text(forged(file.read_text(), rng))
    FRAME.to_json(tmp_path / "x.json")
    command = [sys.executable, "-c", IN_A_CHILD, tmp_path / "forged", tmp_path / "x.json"]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    outcomes = re.findall("^(?:loaded|refused)$", child.stdout, re.MULTILINE)
    assert len(outcomes) == N_FORGED
    assert outcomes.count("refused") > N_FORGED // 2


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (r"left_child=\S+", "left_child=0", "`left_child` and `right_child`"),
        (r"split_feature=\S+", "split_feature=2", "`split_feature`"),
        (r"num_leaves=\d+", "num_leaves=999999", "`split_feature` must have 999998"),
        (r"num_leaves=\d+", "num_leaves=0", "`num_leaves`"),
        (r"leaf_value=\S+", "leaf_value=x", "`leaf_value`"),
        (r"cat_boundaries=0", "cat_boundaries=5", "`cat_boundaries`"),
        (r"Tree=1", "Tree=9", "Tree=9"),
        (r"shrinkage=", "more=1\nshrinkage=", "`more` is not known"),
    ],
)
def test_a_forged_tree_is_refused_by_the_name_of_what_does_not_fit(old, new, match, tmp_path):
    saved(tmp_path)
    file = tmp_path / "trees_0.txt"
    text = file.read_text()
    assert re.search(old, text)
    file.write_text(re.sub(old, new, text, count=1))
    with pytest.raises(ModelFolderError, match=match):
        load_predictor(tmp_path)
