"""LightGBM's model text, checked before LightGBM reads it.

LightGBM trusts a model's text: an index out of range, or a wrong length, ends the process. Here
every list must have its length, every number its form, and every index its range. The header is
written anew, so that nothing in it can disagree with the trees.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_FORMS = {
    "whole": re.compile(r"-?\d{1,9}"),  # within 32 bits
    "bits": re.compile(r"\d{1,10}"),
    "real": re.compile(r"-?(\d{1,40}(\.\d{0,40})?(e[-+]?\d{1,4})?|inf|nan)"),
}
_COUNTS = ("num_leaves", "num_cat", "is_linear")
_NODES = {  # lists with one value per inner node, by the form of its numbers
    "whole": ("split_feature", "decision_type", "left_child", "right_child", "internal_count"),
    "real": ("split_gain", "threshold", "internal_value", "internal_weight"),
}
_LEAVES = {"whole": ("leaf_count",), "real": ("leaf_value", "leaf_weight")}
_LINEAR_LEAVES = {"whole": ("num_features",), "real": ("leaf_const",)}
_LINEAR_TERMS = {"whole": ("leaf_features",), "real": ("leaf_coeff",)}
_CATEGORICAL, _MAX_DECISION_TYPE = 1, 11  # bits: 1 categorical, 2 default left, 4 and 8 missing
_MAX_BITS = 2**32 - 1

_Tree = dict[str, list[float]]


def checked_text(
    text: str, *, n_features: int, n_outputs: int, categories: Mapping[str, Sequence[Any]]
) -> str:
    """Return the trees of a model file under a new header, or raise `ValueError`."""
    body = text.partition("\nend of trees\n")[0] + "\n"
    header, *blocks = re.split(r"^(?=Tree=)", body, flags=re.M)
    if not blocks or len(blocks) % n_outputs:
        raise ValueError(f"it has {len(blocks)} trees for {n_outputs} outputs")
    names = re.findall(r"^feature_names=(.*)$", header, re.M)
    if len(names) != 1 or len(names[0].split()) != n_features:
        raise ValueError(f"`feature_names` must have {n_features} names")
    trees = [_checked_tree(block, i, n_features) for i, block in enumerate(blocks)]
    values = {
        "version": "v4",
        "num_class": n_outputs,
        "num_tree_per_iteration": n_outputs,
        "label_index": 0,
        "max_feature_idx": n_features - 1,
        "feature_names": names[0],
        "feature_infos": " ".join(["none"] * n_features),
        "tree_sizes": " ".join(str(len(tree)) for tree in trees),
    }
    lines = "".join(f"{name}={value}\n" for name, value in values.items())
    known = json.dumps([list(names) for names in categories.values()] or None)
    return f"tree\n{lines}\n{''.join(trees)}end of trees\n\npandas_categorical:{known}\n"


def _checked_tree(block: str, number: int, n_features: int) -> str:
    first, *lines = block.split("\n")
    if first != f"Tree={number}":
        raise ValueError(f"tree {number} begins with {first[:40]!r}")
    fields = dict(line.split("=", 1) for line in lines if line)
    try:
        tree = _numbers(fields)
        _check_nodes(tree, n_features)
        _check_categories(tree)
    except ValueError as error:
        raise ValueError(f"in tree {number}, {error}") from error
    kept = "".join(f"{name}={values}\n" for name, values in fields.items())
    return f"Tree={number}\n{kept}\n\n"


def _numbers(fields: Mapping[str, str]) -> _Tree:
    """Return every list of a tree, each of the right length."""
    tree = {name: _values(fields, name, "whole", 1) for name in _COUNTS}
    (n_leaves,), (n_sets,), (is_linear,) = tree.values()
    if n_leaves < 1 or n_sets < 0:
        raise ValueError("`num_leaves` must be at least 1 and `num_cat` at least 0")

    def take(names_by_form: Mapping[str, Sequence[str]], n: float) -> None:
        for form, names in names_by_form.items():
            tree.update({name: _values(fields, name, form, int(n)) for name in names})

    take(_NODES, n_leaves - 1)
    take(_LEAVES, n_leaves)
    take({"real": ["shrinkage"]}, 1)
    if is_linear:
        take(_LINEAR_LEAVES, n_leaves)
        take(_LINEAR_TERMS, sum(tree["num_features"]))
    if n_sets:
        take({"whole": ["cat_boundaries"]}, n_sets + 1)
        take({"bits": ["cat_threshold"]}, tree["cat_boundaries"][-1])
    if unknown := fields.keys() - tree.keys():
        raise ValueError(f"`{min(unknown)[:40]}` is not known")
    return tree


def _values(fields: Mapping[str, str], name: str, form: str, n: int) -> list[float]:
    values = fields.get(name, "").split()
    if len(values) != n or not all(map(_FORMS[form].fullmatch, values)):
        raise ValueError(f"`{name}` must have {n} {form} numbers")
    return [float(value) for value in values]


def _check_nodes(tree: _Tree, n_features: int) -> None:
    n_leaves = int(tree["num_leaves"][0])
    sides = (tree["left_child"], tree["right_child"])
    children = [*sides[0], *sides[1]]
    # Each node is the child of one before it, each leaf (-1, -2, ...) of any: there is no cycle.
    come_later = all(c < 0 or c > node for side in sides for node, c in enumerate(side))
    expected = [*range(-n_leaves, 0), *range(1, n_leaves - 1)] if n_leaves > 1 else []
    if not come_later or sorted(children) != expected:
        raise ValueError("`left_child` and `right_child` are not those of a tree")
    for name in ("split_feature", "leaf_features"):
        if not all(0 <= feature < n_features for feature in tree.get(name, ())):
            raise ValueError(f"`{name}` must be from 0 to {n_features - 1}")
    if not all(0 <= kind <= _MAX_DECISION_TYPE for kind in tree["decision_type"]):
        raise ValueError(f"`decision_type` must be from 0 to {_MAX_DECISION_TYPE}")
    if min(tree.get("num_features", [0])) < 0:
        raise ValueError("`num_features` must be at least 0")


def _check_categories(tree: _Tree) -> None:
    (n_sets,), ends = tree["num_cat"], tree.get("cat_boundaries", [0])
    if ends[0] or ends != sorted(ends):
        raise ValueError("`cat_boundaries` must rise from 0")
    if max(tree.get("cat_threshold", ()), default=0) > _MAX_BITS:
        raise ValueError(f"`cat_threshold` must be at most {_MAX_BITS}")
    for kind, threshold in zip(tree["decision_type"], tree["threshold"], strict=True):
        is_set = int(kind) & _CATEGORICAL
        if is_set and not (0 <= threshold < n_sets and threshold % 1 == 0):
            raise ValueError("`threshold` of a categorical split must be the number of a set")
