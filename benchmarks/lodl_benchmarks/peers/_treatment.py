"""The same treatment for every method: folds choose, all data is used, models are averaged.

Linear models begin at random or at the least-squares solution, whichever has the better held-out
decisions: our learner begins there too, it takes no oracle call, and with it every method can fall
back on 2-stage. From a random state early stopping regularises, which is often better for 2-stage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl_benchmarks.peers._counted import Ledger
from lodl_benchmarks.peers._evaluator import Evaluator, Index
from lodl_benchmarks.peers._loop import Choice, Criterion, Member, Settings, Start, train
from lodl_benchmarks.peers._network import Architecture, Networks

_USUAL_RATE = 0.01  # Adam's rate in PyEPO's tutorials

Criteria = Callable[[Sequence[Member]], Criterion]
"""Makes the loss of several models, each with its own value of the method's main parameter."""


@dataclass(frozen=True)
class Treatment:
    """The protocol that every method follows."""

    # Parts of the data, each held out once to choose learning rate, the method's main parameter and
    # the number of steps.
    n_folds: int = 3
    n_initialisations: int = 3  # models, whose predictions are averaged
    learning_rates: tuple[float, ...] = (0.01, 0.05)  # learning rates of Adam to choose from
    # Where linear models begin, to choose from; networks begin at random.
    starts: tuple[Start, ...] = ("random", "least squares")
    settings: Settings = field(default_factory=Settings)  # how long each model is trained


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs of a method: no test instances."""

    x: Array  # standardised features
    y: Array  # labels
    architecture: Architecture  # the model to train
    evaluator: Evaluator  # scores held-out decisions
    ledger: Ledger  # counts the solver's calls
    seed: int  # random seed of folds, batches and perturbations


@dataclass(frozen=True, eq=False)
class Chosen:
    """The models that a treatment ends with."""

    networks: Networks  # trained on all instances
    choice: Choice  # selected parameters
    n_steps: int  # how long they were trained
    held_out: float  # mean regret of held-out decisions
    calls_of_one: float  # oracle calls to train one of them, everything chosen


def treat(
    treatment: Treatment, data: Data, criteria: Criteria, parameters: Sequence[Any]
) -> Chosen:
    """Choose by cross-validation, then train on everything."""
    starts = ("random",) if data.architecture.hidden else treatment.starts
    choices = [Choice(*values) for values in product(treatment.learning_rates, starts, parameters)]
    best, held_out, n_steps = _cross_validate(treatment, data, criteria, choices)
    before = data.ledger.calls["training"]
    everything, nobody = np.arange(len(data.y)), np.empty(0, dtype=np.intp)
    members = _members(treatment, data, choices[best], [(everything, nobody)])
    settings = replace(treatment.settings, n_steps=n_steps, look_every=max(n_steps, 1))
    networks, _ = _train(treatment, data, criteria, members, settings)
    calls = data.ledger.calls["training"] - before
    return Chosen(networks, choices[best], n_steps, held_out, calls / treatment.n_initialisations)


def train_one(treatment: Treatment, data: Data, criteria: Criteria, *, n_epochs: int) -> Networks:
    """Train one model from a random state for some epochs, without folds, looks or averages."""
    everything, nobody = np.arange(len(data.y)), np.empty(0, dtype=np.intp)
    member = Member(
        everything, nobody, Choice(_USUAL_RATE, "random", None), seed=data.seed * 10_000
    )
    batch_size = min(treatment.settings.batch_size, len(data.y))
    n_steps = round(n_epochs * len(data.y) / batch_size)
    settings = replace(treatment.settings, n_steps=n_steps, look_every=n_steps, memory=0.0)
    alone = replace(treatment, n_initialisations=1)
    networks, _ = _train(alone, data, criteria, [member], settings)
    return networks


def folds_of(n: int, n_folds: int, seed: int) -> list[tuple[Index, Index]]:
    """Return the instances to train on and those held out, for each fold."""
    order = np.random.default_rng(seed).permutation(n)
    parts = [np.sort(part) for part in np.array_split(order, n_folds)]
    return [(np.setdiff1d(np.arange(n), part), part) for part in parts]


def _cross_validate(
    treatment: Treatment, data: Data, criteria: Criteria, choices: Sequence[Choice]
) -> tuple[int, float, int]:
    """Return the choice with the best held-out decisions, their regret, and its mean steps."""
    folds = folds_of(len(data.y), treatment.n_folds, data.seed)
    members = [member for choice in choices for member in _members(treatment, data, choice, folds)]
    networks, steps = _train(treatment, data, criteria, members, treatment.settings)
    shape = (len(choices), len(folds), treatment.n_initialisations)
    y_hat = networks.predict_all(data.x)
    y_hat = y_hat.reshape(*shape, *y_hat.shape[1:]).mean(axis=2)
    regret = [
        np.concatenate([_look(data, y_hat[c, f, part], part) for f, (_, part) in enumerate(folds)])
        for c in range(len(choices))
    ]
    means = [float(of_choice.mean()) for of_choice in regret]
    best = int(np.argmin(means))
    return best, means[best], round(float(np.reshape(steps, shape)[best].mean()))


def _members(
    treatment: Treatment,
    data: Data,
    choice: Choice,
    folds: Sequence[tuple[Index, Index]],
) -> list[Member]:
    """Return all initial states of all folds, with the same batches for every method."""
    return [
        Member(rows, held_out, choice, seed=(data.seed * 100 + f) * 100 + i)
        for f, (rows, held_out) in enumerate(folds)
        for i in range(treatment.n_initialisations)
    ]


def _train(
    treatment: Treatment,
    data: Data,
    criteria: Criteria,
    members: Sequence[Member],
    settings: Settings,
) -> tuple[Networks, list[int]]:
    labels = [data.y[member.train] for member in members]
    networks = Networks(
        data.architecture,
        [i % treatment.n_initialisations for i in range(len(members))],
        np.stack([y.mean(axis=0) for y in labels]),
        np.array([(y - y.mean(axis=0)).std() for y in labels]),
    )
    for m, member in enumerate(members):
        if member.choice.start == "least squares":
            networks.start_at_least_squares(m, data.x[member.train], labels[m])
    steps = train(
        networks,
        data.x,
        members,
        criteria(members),
        settings=settings,
        look=partial(_look, data),
    )
    return networks, steps


def _look(data: Data, y_hat: Array, rows: Index) -> Array:
    """Return the regrets of held-out predictions; the calls are booked apart."""
    with data.ledger.purpose("looks"):
        return data.evaluator.regret(y_hat, rows)
