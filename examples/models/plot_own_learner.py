"""
A learner for another framework
===============================

A learner has one method, ``train``, which returns a predictor with one method, ``predict``, for
each model. The loss gives values and gradients as NumPy arrays, so any framework that can pull a
gradient back through a model will do. This learner is a small network in plain NumPy, written the
way you would in JAX: the parameters are a dict of arrays, a step returns new ones, and
``pull_back`` does what ``jax.vjp`` does. :doc:`/how-to/own-learner` has the same learner in JAX.
"""

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.domains import shortest_path
from lodl.report import plots
from lodl.testing import check_learner
from lodl.training import Learner, Predictor


def network(w, x):
    return np.tanh(x @ w["in"] + w["bend"]) @ w["out"] + w["constant"]


def pull_back(w, x, g):
    hidden = np.tanh(x @ w["in"] + w["bend"])
    g_hidden = (g @ w["out"].T) * (1 - hidden**2)
    return {
        "in": x.T @ g_hidden,
        "bend": g_hidden.sum(0),
        "out": hidden.T @ g,
        "constant": g.sum(0),
    }


@dataclass(frozen=True)
class NetworkPredictor(Predictor):
    w: dict[str, Any]
    centre: Any
    spread: Any
    n_steps: int

    def predict(self, x):
        return self.centre + self.spread * network(self.w, x)


@dataclass(frozen=True)
class NetworkLearner(Learner):
    n_hidden: int = 8
    max_steps: int = 300
    rate: float = 0.3
    stops_early = True

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        masks = np.ones((1, len(x)), dtype=bool) if masks is None else masks
        return [self.train_model(x, loss, mask, n_steps) for mask in masks]

    def train_model(self, x, loss, mask, n_steps):
        rng, (n, n_labels) = np.random.default_rng(0), loss.y.shape
        centre, spread = loss.y[mask].mean(0), loss.y[mask].std(0)
        unit = loss.value(np.tile(centre, (n, 1)))[mask].sum()  # so that steps do not depend on it
        w = {
            "in": rng.normal(size=(x.shape[1], self.n_hidden)) / np.sqrt(x.shape[1]),
            "bend": np.zeros(self.n_hidden),
            "out": np.zeros((self.n_hidden, n_labels)),
            "constant": np.zeros(n_labels),
        }
        best, best_score = None, np.inf
        for step in range((self.max_steps if n_steps is None else n_steps) + 1):
            model = NetworkPredictor(w, centre, spread, step)
            y_hat = model.predict(x)
            score = -step  # if nothing stops it, the last step is the best
            if n_steps is None and not mask.all():
                score = loss.value(y_hat)[~mask].mean()
            if score < best_score:
                best, best_score = model, score
            g = loss.gradient(y_hat) * spread / unit
            g[~mask] = 0  # the other instances do not train the model
            w = {name: w[name] - self.rate * part for name, part in pull_back(w, x, g).items()}
        return best


# %%
# A few short training runs check that the learner does what `lodl` expects of it.

check_learner(NetworkLearner())

# %%
# Now it is a model like any other.

domain = shortest_path(sizes=(90, 10, 200), grid=(4, 4))
train, test = domain.splits.train_and_validation, domain.splits.test
model = lodl.DecisionFocusedRegressor(
    domain.problem, NetworkLearner(), families=[lodl.DecisionHinges()], n_rounds=1
)
model.fit(train.x, train.y)
print(model.summary())
print(f"score on new instances: {model.score(test.x, test.y):.3f}")

# %%
# The regret that it avoids on validation instances, compared with squared error:

plots.gain(model)
plt.show()
