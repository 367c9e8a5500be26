import json

import numpy as np
import pytest

import lodl
from lodl.domains import TopK
from lodl.errors import InvalidInputError, OracleError
from lodl_benchmarks.domains import WebAdvertising
from lodl_benchmarks.slices import loss_slices


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(0).random((6, 5))


@pytest.fixture(scope="module")
def losses(y):
    families = {"weighted": lodl.WeightedMSE(), "directed": lodl.DirectedWeightedMSE()}
    sampler = lodl.AllPerturbed(scale=0.2)
    return {
        name: lodl.learn_loss(TopK(1), y, family=family, sampler=sampler, n_samples=100)
        for name, family in families.items()
    }


def test_a_slice_has_the_regret_and_every_loss_at_the_same_points(losses, y):
    info = loss_slices(losses, TopK(1), y, instances=[4, 2])
    assert info["kind"] == "slices"
    assert [one["instance"] for one in info["slices"]] == [4, 4, 2, 2]
    for one in info["slices"]:
        coordinate = int(one["direction"].removeprefix("coordinate "))
        label = y[one["instance"]]
        for k, offset in enumerate(one["offsets"]):
            point = label + offset * np.eye(5)[coordinate]
            assert one["regret"][k] == pytest.approx(label.max() - label[point.argmax()])
            for name, loss in losses.items():
                expected = loss.value(point[np.newaxis], [one["instance"]])[0]
                assert one["loss"][name][k] == pytest.approx(expected)


def test_slices_meet_at_the_label_where_nothing_is_lost(losses, y):
    for one in loss_slices(losses, TopK(1), y, y_hat=y + 0.1)["slices"]:
        middle = len(one["offsets"]) // 2
        assert one["offsets"][middle] == 0
        assert one["regret"][middle] == 0
        assert all(values[middle] == 0 for values in one["loss"].values())


def test_the_slice_towards_a_prediction_has_it_at_one(losses, y):
    y_hat = y[:, ::-1].copy()
    info = loss_slices(losses["directed"], TopK(1), y, y_hat=y_hat, instances=[3], n_points=31)
    one = info["slices"][-1]
    assert one["direction"] == "towards the prediction"
    at = int(np.argmin(np.abs(np.array(one["offsets"]) - 1)))
    assert one["offsets"][at] == pytest.approx(1)
    assert one["regret"][at] == pytest.approx(y[3].max() - y[3][y_hat[3].argmax()])
    assert one["loss"]["DirectedWeightedMSE"][at] == pytest.approx(
        losses["directed"].value(y_hat)[3]
    )


def test_without_a_choice_the_instances_of_largest_mean_regret_are_cut(losses, y):
    info = loss_slices(losses, TopK(1), y)
    largest = np.argsort(-losses["weighted"].errors.mean_regret)[:3]
    assert list(dict.fromkeys(one["instance"] for one in info["slices"])) == largest.tolist()


def test_the_coordinates_of_a_slice_are_those_in_which_the_true_regret_rises_most(losses, y):
    info = loss_slices(losses["weighted"], TopK(1), y, instances=[0])
    span = info["slices"][0]["offsets"][-1]
    ends = y[0] + span * np.stack([np.eye(5), -np.eye(5)])
    rise = (y[0].max() - y[0][ends.argmax(axis=-1)]).sum(axis=0)
    expected = [f"coordinate {i}" for i in np.argsort(-rise, kind="stable")[:2]]
    assert [one["direction"] for one in info["slices"]] == expected


def test_slices_are_json_and_count_their_oracle_calls(losses, y):
    calls = []

    class Counted(TopK):
        def solve_many(self, y_hats, context=None):
            calls.append(len(y_hats))
            return super().solve_many(y_hats, context)

    info = loss_slices(losses, Counted(1), y, y_hat=y + 0.1, n_points=11)
    assert json.loads(json.dumps(info, allow_nan=False)) == info
    assert info["oracle_calls"] == sum(calls) <= 3 * (2 * 5 + 1 + 3 * 11 + 1)


def test_points_of_a_slice_are_in_the_valid_range():
    y = np.random.default_rng(0).random((3, 2, 4)) * 0.1
    wide = lodl.AllPerturbed(scale=0.1)
    loss = lodl.learn_loss(
        WebAdvertising(1), y, family=lodl.WeightedMSE(), sampler=wide, n_samples=50
    )
    one = loss_slices(loss, WebAdvertising(1), y, instances=[1])["slices"][0]
    assert one["direction"].startswith("coordinate (")
    below = [
        value
        for offset, value in zip(one["offsets"], one["loss"]["WeightedMSE"], strict=True)
        if offset < -0.1
    ]
    assert len(below) > 1
    assert len(set(below)) == 1  # all are clipped to the same point


def test_each_instance_is_solved_in_its_own_context(y):
    pick = lodl.problem(
        lambda y_hat, allowed: int(np.argmax(np.where(allowed, y_hat, -np.inf))),
        lambda z, y, allowed: y[z],
        sense="max",
    )
    allowed = np.random.default_rng(1).random(y.shape) < 0.6
    allowed[:, :2] = True
    loss = lodl.learn_loss(pick, y, context=allowed, family=lodl.WeightedMSE(), n_samples=50)
    for one in loss_slices(loss, pick, y, context=allowed, y_hat=-y, instances=[5, 1])["slices"]:
        i = one["instance"]
        worst = np.where(allowed[i], y[i], np.inf).min()
        if one["direction"] == "towards the prediction":
            at_one = np.argmin(np.abs(np.array(one["offsets"]) - 1.05))
            assert one["regret"][at_one] == pytest.approx(y[i][allowed[i]].max() - worst)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_points": 10}, "`n_points` must be odd"),
        ({"n_points": 1}, "`n_points` must be a whole number of at least 3"),
        ({"instances": [6]}, "`index` must be from 0 to 5"),
        ({"loss": {}}, "`loss` must hold at least one learned loss"),
        ({"y": np.ones((6, 5))}, "instance 0 differs"),
        ({"y_hat": np.ones((5, 5))}, "`y_hat` must have the labels' shape"),
        ({"context": [1]}, "`context` must have one entry per instance"),
    ],
)
def test_what_does_not_fit_is_refused(losses, y, arguments, message):
    given = {"loss": losses, "problem": TopK(1), "y": y, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        loss_slices(**given)


def test_a_failed_call_says_among_which_instances_it_counts(losses, y):
    def solve(y_hat):
        raise RuntimeError("no licence")

    broken = lodl.problem(solve, lambda z, y: 0.0, sense="max")
    with pytest.raises(OracleError, match="no licence") as caught:
        loss_slices(losses, broken, y, instances=[4, 2])
    assert "numbered within [4, 2]" in caught.value.__notes__[0]
