"""The domain: days with forecasts, and the demand that plants must meet."""

from lodl.domains import Domain, Split
from lodl.domains._domain import Sizes, check_sizes, split_in_order
from lodl_benchmarks.domains._power_days import power_days
from lodl_benchmarks.domains._unit_commitment._problem import UnitCommitment

_MEAN_LOAD = 3.0


def unit_commitment(
    seed: int = 0,
    *,
    sizes: Sizes = (200, 100, 400),
    n_periods: int = 24,
    spot: float = 200.0,
    noise: float = 0.1,
) -> Domain:
    """Unit commitment: decide which power plants run in each hour, by the predicted demand.

    Data. An instance is a day of 24 hours, made as in `dispatch`: forecasts of the load and of the
    speed of the wind and the time of day are known; the label is the demand that is left after
    wind power,

        y_t = (3 + load_t - wind_power_t) * e_t,

    with persistent noise e_t of logarithmic standard deviation `noise`. x has shape (n, 24, 4), y
    has shape (n, 24), and there is no context.

    Model. One linear model for all hours, from 4 features to a demand.

    Solver. `UnitCommitment`: four plants, from a slow and cheap one that must run for 6 hours once
    it was started to a quick and dear one. Dynamic programming over their states, for all
    predictions at once. Exact. In batches of 500 a call takes 0.1 ms, where a mixed-integer
    program of HiGHS takes 150 ms: `python speed/domains.py`.

    Objective. What running and starting the plants costs and, once demand is known, the power that
    they produce, what is bought on the spot market at 200 a unit, and what must be got rid of at
    10 a unit, to be minimised. It is piecewise linear in the label, with kinks where a plant
    reaches a limit. A demand predicted too low costs far more than one predicted too high.

    What is known. Which plants to run is a standard task of power systems; data and plants are
    ours, with the ingredients of the textbooks: start-up costs, least and largest power, least
    running times, and recourse by a market. It is the domain of a predicted right-hand side whose
    decision is combinatorial. The least-squares model has a relative test regret of 0.06 to 0.08,
    depending on the seed, 0.04 to 0.05 if it predicts 10% more.

    Args:
        seed: Random seed for the days.
        sizes: Number of training, validation and test days.
        n_periods: Periods of a day.
        spot: Price of a unit of power on the spot market.
        noise: Standard deviation of the logarithm of the noise.
    """
    sizes = check_sizes(sizes)
    days = power_days("unit commitment", seed, (sum(sizes), n_periods), noise)
    y = (_MEAN_LOAD + days.load - days.wind_power) * days.noise
    return Domain(UnitCommitment(spot=spot), split_in_order(Split(days.x, y), sizes))
