"""The examples in docstrings run, and the names a user meets first have one."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import lodl

pytestmark = pytest.mark.slow

FIRST_MET = [
    "lodl.AdjacentVertices",
    "lodl.AllPerturbed",
    "lodl.AtPredictions",
    "lodl.DecisionFocusedRegressor",
    "lodl.DecisionHinges",
    "lodl.DecisionRanking",
    "lodl.DirectedQuadratic",
    "lodl.DirectedWeightedMAE",
    "lodl.DirectedWeightedMSE",
    "lodl.LearnedLoss",
    "lodl.LinearProblem",
    "lodl.NeuralLoss",
    "lodl.OnePerturbed",
    "lodl.Problem",
    "lodl.Quadratic",
    "lodl.TwoPerturbed",
    "lodl.WeightedMSE",
    "lodl.learn_loss",
    "lodl.load_loss",
    "lodl.problem",
    "lodl.evaluation.decision_loss",
    "lodl.evaluation.diagnose",
    "lodl.evaluation.regret",
    "lodl.evaluation.summarise",
    "lodl.losses.fit",
    "lodl.losses.fit_pooled",
    "lodl.learning.learn_in_rounds",
    "lodl.losses.squared_error_loss",
    "lodl.oracle.Oracle",
    "lodl.problems.VectorisedProblem",
    "lodl.problems.cvxpy.CvxpyProblem",
    "lodl.problems.highs.LinearProgram",
    "lodl.problems.highs.RecourseProgram",
    "lodl.problems.ortools.OrtoolsLinearProblem",
    "lodl.problems.pyepo.PyepoProblem",
    "lodl.testing.check_family",
    "lodl.testing.check_problem",
    "lodl.training.learner_for",
    "lodl.training.sklearn.SklearnLearner",
    "lodl.training.torch.LearnedLossModule",
    "lodl.training.torch.TorchLearner",
]
ADAPTERS = (
    "cvxpy",
    "pyomo",
    "pyepo",
    "ortools",
    "highs",
)  # in problems/test_adapters.py


def public_examples():
    """Yield a docstring's example for every public name that has one, each object once."""
    seen = set()
    modules = [lodl.__name__, *(one.name for one in pkgutil.walk_packages(lodl.__path__, "lodl."))]
    for name in modules:
        if any(part.startswith("_") for part in name.split(".")) or name.startswith("lodl.cli"):
            continue
        if name.startswith("lodl.problems.") and name.split(".")[2] in ADAPTERS:
            continue
        module = importlib.import_module(name)
        for one in getattr(module, "__all__", ()):
            value = getattr(module, one)
            if id(value) not in seen and callable(value) and value.__doc__:
                seen.add(id(value))
                yield from doctest.DocTestFinder(recurse=True).find(value, f"{name}.{one}")


EXAMPLES = [example for example in public_examples() if example.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_says_what_happens(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example.globs |= {"np": np, "lodl": lodl}
    told: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(example, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("name", FIRST_MET)
def test_a_name_that_is_met_first_has_an_example(name):
    module, _, one = name.rpartition(".")
    assert ">>>" in inspect.getdoc(getattr(importlib.import_module(module), one))


@pytest.mark.parametrize("function", [lodl.learn_loss, lodl.evaluation.regret, lodl.Oracle.sample])
def test_signatures_are_short_enough_to_read(function):
    assert "_NestedSequence" not in str(inspect.signature(function))
