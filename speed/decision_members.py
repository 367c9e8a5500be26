"""Further losses made of decisions, beside those of the package: do they earn their place?

    python speed/decision_members.py > results/decision_members.md

Losses of 20 samples at labels, data seeds 1001 and 1002, which no table shows. Regret of the test
instances, as a share of the cost of the best decisions. Paths, knapsacks and newsvendors have the
linear models of `LinearLearner`, from least squares on; Web Advertising has the network and the
short training of speed/min_weight.py, three initialisations averaged. Names of tasks may follow the
command. It takes some ten minutes.

With r_k the regret and s_k the slope of decision k, u_k = r_k - 2 (r_k + s_k . d) its hinge, c the
mean regret of the decisions and t = 0.3 c, the members are, all with the same `min_weight`:

- squared hinge: max(0, max_k u_k)^2 / c
- smoothed hinge: t log(1 + sum_k exp(u_k / t))
- Fenchel-Young: t log(1 + sum_k exp(-(r_k + s_k . d) / t)), that of Gumbel noise on decisions
- NCE: mean_k(-s_k . d), as Mulamba et al. have it with the error d for the prediction; it has no
  minimum of its own, so a squared error of weight 1 is added. Their MAP takes the largest instead
  of the mean: that is `DecisionHinges(margin=1)`.
"""

import sys
from dataclasses import dataclass

from decision_summaries import train, unseen_regret
from lodl.domains import Domain
from lodl.losses import DecisionHinges, DecisionRanking, Family, fit, squared_error_loss
from lodl.losses._family import Parameters, Tensor, largest, log_sum_exp, softmax
from lodl.oracle import Oracle
from lodl_benchmarks.rounds import TASKS
from min_weight import Data, tasks

SEEDS = (1001, 1002)
LINEAR = ("path", "knapsack", "newsvendor")


def mean_regret(phi: Parameters) -> Tensor:
    """Return c, shape (n, 1); 1 where an instance has no decision."""
    is_there = (phi["regret"] > 0) + 0 * phi["regret"]
    total = phi["regret"].sum(-1)
    return ((total + (total == 0)) / is_there.sum(-1).clip(min=1))[:, None]


def floor(phi: Parameters, d: Tensor) -> Tensor:
    return (phi["w"][:, None] * d * d).sum(-1)


@dataclass(frozen=True)
class SquaredHinge(DecisionHinges):
    """The square of the largest hinge, over the mean regret."""

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        highest = largest(self._hinges(phi, d)).clip(min=0)
        return highest * highest / mean_regret(phi) + floor(phi, d)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        highest = largest(self._hinges(phi, d)).clip(min=0)
        of_floor = 2 * phi["w"][:, None] * d
        of_hinge = super().gradient(phi, d) - of_floor
        return 2 * (highest / mean_regret(phi))[..., None] * of_hinge + of_floor


@dataclass(frozen=True)
class FenchelYoung(DecisionRanking):
    """A Fenchel-Young loss; parameters are over t and hold the label's own decision, of score 0."""

    margin: float = 1.0

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return phi["t"] * log_sum_exp(self.scores(phi, d)) + floor(phi, d)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        moved = softmax(self.scores(phi, d)) @ phi["slope"]
        return 2 * phi["w"][:, None] * d - self.margin * phi["t"][:, None] * moved

    def scores(self, phi: Parameters, d: Tensor) -> Tensor:
        return -(phi["regret"][:, None] + d @ phi["slope"].swapaxes(-1, -2))


@dataclass(frozen=True)
class SmoothedHinge(FenchelYoung):
    """The log-sum-exp of all hinges."""

    margin: float = 2.0

    def scores(self, phi: Parameters, d: Tensor) -> Tensor:
        return phi["regret"][:, None] + self.margin * super().scores(phi, d)


@dataclass(frozen=True)
class Contrastive(DecisionHinges):
    """NCE: the mean over decisions instead of the largest."""

    squared_error: float = 1.0

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return -(d * self._mean_slope(phi)).sum(-1) + floor(phi, d)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        return 2 * phi["w"][:, None] * d - self._mean_slope(phi)

    def _mean_slope(self, phi: Parameters) -> Tensor:
        is_there = (phi["regret"] > 0) + 0 * phi["regret"]
        return (phi["slope"].sum(-2) / is_there.sum(-1).clip(min=1)[:, None])[:, None]


MEMBERS: dict[str, Family] = {
    "DecisionHinges": DecisionHinges(),
    "DecisionHinges, margin 1": DecisionHinges(margin=1.0),
    "DecisionRanking": DecisionRanking(),
    "squared hinge": SquaredHinge(),
    "smoothed hinge": SmoothedHinge(),
    "Fenchel-Young": FenchelYoung(),
    "NCE": Contrastive(),
}


def linear_regrets(domain: Domain) -> list[float]:
    """Return the regret of linear models of squared error, then of each member."""
    part = domain.splits.train_and_validation
    samples = Oracle(domain.problem, progress=False).sample(
        part.y, TASKS["path"].sampler, 20, context=part.context, slopes=True
    )
    losses = [fit(samples, member, progress=False) for member in MEMBERS.values()]
    every = [squared_error_loss(part.y), *losses]
    return [unseen_regret(domain, train(domain, loss)) for loss in every]


def network_regrets(data: Data) -> list[float]:
    """Return the same of networks."""
    return [data.of_squared_error(), *(data.of_family(one) for one in MEMBERS.values())]


def main() -> None:
    names = sys.argv[1:] or [*LINEAR, "web"]
    sys.argv[1:] = [name for name in names if name not in LINEAR]
    columns = {
        name: [linear_regrets(TASKS[name].build(seed)) for seed in SEEDS]
        for name in names
        if name in LINEAR
    }
    if sys.argv[1:]:
        columns |= {n: [network_regrets(Data(t, seed)) for seed in SEEDS] for n, t in tasks()}
    print(f"# Further losses made of decisions\n\n{__doc__}")
    print("| loss |", " | ".join(columns), "|\n" + "|---" * (len(columns) + 1) + "|")
    for i, loss in enumerate(["squared error", *MEMBERS]):
        cells = (" | ".join(f"{seed[i]:.4f}" for seed in found) for found in columns.values())
        print(f"| {loss} |", " | ".join(cell.replace(" | ", ", ") for cell in cells), "|")


if __name__ == "__main__":
    main()
