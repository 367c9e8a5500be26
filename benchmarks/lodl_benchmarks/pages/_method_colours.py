"""One fixed colour per method, in every table and figure."""

from collections.abc import Iterable, Mapping

# After Okabe and Ito, which colour-blind readers can tell apart. Two families of one kind share a
# hue, the directed one darker; vermilion, the most salient, is ours; baselines are grey.
_METHOD_COLOURS: Mapping[str, str] = {
    "Random": "#a3a9b0",
    "Optimal": "#a3a9b0",
    "Constant": "#a3a9b0",
    "2-stage": "#7b828a",
    "DFL": "#c99700",
    "NN": "#cc79a7",
    "WeightedMSE": "#56b4e9",
    "DirectedWeightedMSE": "#0f7ac0",
    "Quadratic": "#5cc39a",
    "DirectedQuadratic": "#009e73",
    "ConvexDirectedQuadratic": "#d55e00",
    "DecisionHinges": "#8d6cc7",
    "DecisionRanking": "#5b3fa0",
}
_OTHER_COLOURS = ("#a8763e", "#4f9d9d", "#b3588a", "#7f9a2c", "#5f79c9")


def method_colours(methods: Iterable[str]) -> dict[str, str]:
    """Return a colour for each method, a fixed one for those that are well known."""
    names = list(dict.fromkeys(methods))
    others = [name for name in names if name not in _METHOD_COLOURS]
    spare = {name: _OTHER_COLOURS[i % len(_OTHER_COLOURS)] for i, name in enumerate(others)}
    return {name: _METHOD_COLOURS.get(name) or spare[name] for name in names}


def in_method_order(methods: Iterable[str]) -> list[str]:
    """Return well-known methods in their usual order, then the others as they come."""
    places = {name: place for place, name in enumerate(_METHOD_COLOURS)}
    return sorted(dict.fromkeys(methods), key=lambda name: places.get(name, len(places)))
