"""
scikit-learn: a pipeline and a grid search
==========================================

You can train any scikit-learn regressor or pipeline on a learned loss. A linear model, like the one
at the end of this pipeline, is fitted as usual and then goes on, on the learned loss itself. For
any other model the labels are shifted to where the loss wants the predictions to be, so it needs
neither gradients nor a custom objective. The result is again a regressor with ``fit``, ``predict``
and ``score``, and ``GridSearchCV`` can tune it, with decisions as the score.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import lodl
from lodl.domains import knapsack
from lodl.evaluation import decision_loss, regret

domain = knapsack(sizes=(150, 1, 1000), degree=6, noise=0.2)
problem, train, test = domain.problem, domain.splits.train, domain.splits.test

pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(), Ridge())
model = lodl.DecisionFocusedRegressor(
    problem, pipeline, families=[lodl.DecisionHinges()], n_rounds=1, n_samples=10
)

# %%
# Parameters of the pipeline keep their usual names, with ``estimator__`` in front.

grid = {"estimator__polynomialfeatures__degree": [1, 2]}
search = GridSearchCV(model, grid, cv=KFold(2, shuffle=True, random_state=0))
search.fit(train.x, train.y)
for degree, score in zip((1, 2), search.cv_results_["mean_test_score"], strict=True):
    print(f"degree {degree}: score {score:.3f}")
print("best:", search.best_params_)

# %%
# A score of 1 is perfect, and 0 is no better than always predicting the mean. How much a learned
# loss gains depends on the model: the better it can follow the truth, the less there is to gain.

optimum = -decision_loss(problem, test.y, test.y).mean()
bars = {}
for degree in (1, 2, 3):
    pipeline.set_params(polynomialfeatures__degree=degree, ridge__alpha=10.0)
    plain = pipeline.fit(train.x, train.y).predict(test.x)
    before = regret(problem, plain, test.y).mean() / optimum
    after = model.fit(train.x, train.y).regret(test.x, test.y).mean() / optimum
    bars[degree] = 100 * before, 100 * after
    print(f"degree {degree}: value lost {before:.1%} -> {after:.1%}")

fig, ax = plt.subplots()
place = np.arange(len(bars))
for k, name in enumerate(("squared error", "learned loss")):
    ax.bar(place + 0.38 * k - 0.19, [both[k] for both in bars.values()], 0.36, label=name)
ax.set_xticks(place, [f"polynomial of degree {degree}" for degree in bars])
ax.set(ylabel="value lost on new knapsacks, %", title="The simpler the model, the larger the gain")
ax.legend()
plt.show()
