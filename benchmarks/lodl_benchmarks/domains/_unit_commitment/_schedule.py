"""The cheapest schedule of plants, by dynamic programming over their states.

A plant is off (state 0) or has been running for 1, 2, ... periods, where `min_up` stands for that
many or more. From one period to the next

    off -> off,   off -> 1 (a start),   j -> j + 1,   min_up -> min_up,   min_up -> off

independently of the other plants. So a period is one pass per plant, over all states of the others
and all predictions at once; a pass has two ways into `off` and two into `min_up`.
"""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array

_Flags = npt.NDArray[np.bool_]


def cheapest_schedules(running: Array, start: tuple[float, ...], min_up: tuple[int, ...]) -> Array:
    """Return the schedule of least cost for each prediction, shape (k, G, T).

    Args:
        running: Cost of running each set of plants, shape (k, T, 2^G); the first plant is the
            highest bit of a set.
        start: Cost of starting each plant.
        min_up: Periods that each plant must run once it was started.
    """
    running = np.ascontiguousarray(np.moveaxis(running, 0, 2))  # predictions side by side
    value = np.full((*(periods + 1 for periods in min_up), running.shape[2]), np.inf)
    value[(0,) * len(min_up)] = 0.0
    set_of = _sets_of_states(min_up)
    passes: list[list[tuple[_Flags, _Flags]]] = []
    for costs in running:
        passes.append([])
        for plant, cost in enumerate(start):
            value, came = _pass(value, plant, cost)
            passes[-1].append(came)
        value += costs[set_of]
    return _traced_back(value, passes, min_up)


def _sets_of_states(min_up: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the set of plants that run in each state."""
    states = np.indices([periods + 1 for periods in min_up]) > 0
    bits = 2 ** np.arange(len(min_up))[::-1]
    return np.tensordot(bits, states, axes=1)


def _pass(value: Array, axis: int, start: float) -> tuple[Array, tuple[_Flags, _Flags]]:
    """Move one plant on by a period.

    Returns:
        Costs after the pass, and of each state of the others whether the plant's way into `off`
        came from `min_up`, and its way into `min_up` from `min_up`.
    """
    old = np.moveaxis(value, axis, 0)
    new = np.empty_like(value)
    out = np.moveaxis(new, axis, 0)
    begins = old[0] + start
    out[1:] = old[:-1]
    out[1] = begins
    stops, stays = old[-1] < old[0], old[-1] <= out[-1]
    out[0] = np.where(stops, old[-1], old[0])
    out[-1] = np.where(stays, old[-1], out[-1])
    return new, (stops, stays)


def _traced_back(
    value: Array, passes: list[list[tuple[_Flags, _Flags]]], min_up: tuple[int, ...]
) -> Array:
    """Follow the cheapest way back from the end of the day."""
    n, n_plants = value.shape[-1], len(min_up)
    each = np.arange(n)
    last = value.reshape(-1, n).argmin(axis=0)
    state = np.array(np.unravel_index(last, value.shape[:-1]))  # (G, k)
    zs = np.empty((n, n_plants, len(passes)))
    for period in reversed(range(len(passes))):
        zs[:, :, period] = (state > 0).T
        for plant in reversed(range(n_plants)):
            stops, stays = passes[period][plant]
            others = (*np.delete(state, plant, axis=0), each)
            here, top = state[plant], min_up[plant]
            before = np.where(here == 0, 0, here - 1)
            before = np.where((here == 0) & stops[others], top, before)
            state[plant] = np.where((here == top) & stays[others], top, before)
    return zs
