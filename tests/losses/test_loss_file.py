import dataclasses
import importlib
import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl import learn_loss, losses
from lodl.domains import TopK
from lodl.errors import InvalidInputError, LossFileError
from lodl.losses._loss_file import _digest

FAMILIES = {
    "WeightedMSE": losses.WeightedMSE(min_weight=0.01),
    "DirectedWeightedMSE": losses.DirectedWeightedMSE(),
    "DirectedWeightedMAE": losses.DirectedWeightedMAE(squares=True),
    "Quadratic": losses.Quadratic(),
    "DirectedQuadratic": losses.DirectedQuadratic(rank=1),
    "DecisionHinges": losses.DecisionHinges(margin=1.5, max_decisions=3),
    "DecisionRanking": losses.DecisionRanking(max_decisions=3),
    "NeuralLoss": losses.NeuralLoss(n_layers=3, n_units=2),
}


def arrays_of(loss):
    phi = {f"phi.{name}": rows for name, rows in loss.phi.items()}
    errors = {f"errors.{name}": rows for name, rows in loss.errors.arrays().items()}
    return {"y": loss.y, **phi, **errors}


def assert_same(actual, expected):
    assert actual.family == expected.family
    assert actual.provenance == expected.provenance
    theirs = arrays_of(expected)
    for name, rows in arrays_of(actual).items():
        np.testing.assert_array_equal(rows, theirs[name], err_msg=name)
        assert rows.dtype == theirs[name].dtype, name


def rewrite(path, change):
    """Changes the arrays and the metadata of a file, and seals it as a writer would."""
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del metadata["sha256"]
    change(metadata, arrays)
    metadata["sha256"] = _digest(arrays, metadata)
    safetensors.numpy.save_file(arrays, path, metadata)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loss.safetensors"


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    label_shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    n_instances=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_loaded_loss_is_the_saved_loss(
    make_loss, tmp_path_factory, family, label_shape, n_instances, dtype
):
    loss = make_loss(
        FAMILIES[family], n_instances=n_instances, label_shape=label_shape, dtype=dtype
    )
    path = tmp_path_factory.mktemp("round_trip") / "loss.safetensors"
    loss.save(path)
    loaded = losses.load_loss(path, y=loss.y)
    assert_same(loaded, loss)
    y_hat = np.random.default_rng(0).normal(size=loss.y.shape)
    for method in ("value", "gradient", "curvature"):
        np.testing.assert_array_equal(getattr(loaded, method)(y_hat), getattr(loss, method)(y_hat))


def test_every_family_of_the_package_can_be_saved():
    members = (getattr(losses, name) for name in losses.__all__)
    concrete = {
        member.__name__
        for member in members
        if isinstance(member, type)
        and issubclass(member, losses.Family)
        and not inspect.isabstract(member)
    }
    assert concrete == set(FAMILIES)


def test_the_file_is_plain_safetensors_with_metadata(make_loss, path):
    loss = make_loss()
    loss.save(path)
    np.testing.assert_array_equal(safetensors.numpy.load_file(path)["phi.w"], loss.phi["w"])
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert metadata["family"] == "WeightedMSE"
    assert json.loads(metadata["settings"]) == dataclasses.asdict(loss.family)
    assert json.loads(metadata["provenance"]) == loss.provenance
    assert metadata["version"] == "4"
    assert metadata["package_version"]


def test_numbers_lie_where_a_processor_reads_them_best(make_loss, path):
    make_loss(n_instances=3, dtype=np.float32).save(path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    size = {"F64": 8, "I64": 8, "F32": 4, "I8": 1}
    for name, field in json.loads(raw[8 : 8 + length]).items():
        if name != "__metadata__":
            assert field["data_offsets"][0] % size[field["dtype"]] == 0, name


def test_a_loss_can_be_saved_over_the_file_it_was_read_from(make_loss, path):
    loss = make_loss(n_instances=2_000)
    loss.save(path)
    loaded = losses.load_loss(path)
    loaded.save(path)
    make_loss(seed=1).save(path)
    assert_same(loaded, loss)
    assert_same(losses.load_loss(path), make_loss(seed=1))
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_save_leaves_the_old_file_and_no_other(make_loss, path, monkeypatch):
    make_loss().save(path)
    before = path.read_bytes()

    def disk_full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        make_loss(seed=1).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_labels_the_loss_was_not_learned_for_are_an_error(make_loss, path):
    loss = make_loss()
    loss.save(path)
    other = loss.y + 1
    with pytest.raises(LossFileError, match="instance 0 differs"):
        losses.load_loss(path, y=other)
    with pytest.raises(InvalidInputError, match="`y` must be finite"):
        losses.load_loss(path, y=other * np.nan)


MY_FAMILY = """
from dataclasses import dataclass
from lodl.losses import WeightedMSE

@dataclass(frozen=True)
class MyWeights(WeightedMSE):
    power: float = 2.0
"""


@pytest.mark.slow
def test_a_family_of_ones_own_is_saved_and_loaded_once_its_module_is_imported(
    make_loss, path, monkeypatch
):
    path.with_name("my_losses.py").write_text(MY_FAMILY)
    monkeypatch.syspath_prepend(path.parent)
    my_losses = importlib.import_module("my_losses")
    loss = make_loss(my_losses.MyWeights(power=3.0))
    loss.save(path)
    assert_same(losses.load_loss(path), loss)
    load = f"from lodl.losses import load_loss; print(load_loss({str(path)!r}).family)"
    unaware, aware = (
        subprocess.run(
            [sys.executable, "-c", code], cwd=path.parent, capture_output=True, text=True
        )
        for code in (load, f"import my_losses; {load}")
    )
    assert "LossFileError" in unaware.stderr
    assert "its family 'MyWeights' is unknown" in unaware.stderr
    assert "'my_losses': import that module before you load the file" in unaware.stderr
    assert aware.stdout == f"{loss.family}\n"


def test_a_family_that_cannot_be_made_again_is_not_saved(make_loss, path):
    class NoDataclass(losses.WeightedMSE):
        def __init__(self, power):
            super().__init__()
            object.__setattr__(self, "power", power)

    with pytest.raises(InvalidInputError, match="`family` must be a dataclass whose settings"):
        make_loss(NoDataclass(3)).save(path)
    assert not path.exists()


def test_a_family_cannot_take_the_name_of_another():
    with pytest.raises(InvalidInputError, match="already defines a family named WeightedMSE"):
        type("WeightedMSE", (losses.Family,), {})
    assert losses._family.family_named("WeightedMSE") is losses.WeightedMSE


@pytest.mark.parametrize("entry", [float("nan"), object(), np.float64("inf")])
def test_provenance_that_is_no_json_is_not_saved(make_loss, path, entry):
    loss = dataclasses.replace(make_loss(), provenance={"scale": entry})
    with pytest.raises(InvalidInputError, match="`provenance` must be plain JSON"):
        loss.save(path)


def test_a_loss_loads_and_computes_where_torch_cannot_be_imported(make_loss, path):
    make_loss(losses.NeuralLoss(n_units=4)).save(path)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np; from lodl.losses import load_loss\n"
        f"loss = load_loss({str(path)!r})\n"
        "assert np.isfinite(loss.value(np.zeros((1, 2, 3)), [0])).all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def edit(**changes):
    """An edit of a file's metadata; None removes an entry."""

    def apply(metadata, arrays):
        for key, value in changes.items():
            metadata.pop(key) if value is None else metadata.update({key: value})

    return apply


def put(name, change):
    def apply(metadata, arrays):
        arrays[name] = change(arrays[name])

    return apply


def rename(old, new):
    return lambda metadata, arrays: arrays.update({new: arrays.pop(old)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit(format="other"), "not written by `LearnedLoss.save`"),
        (edit(version="2"), "format version is '2', and this package reads '4'"),
        (edit(version=None), "format version is None"),
        (edit(family="os.system"), "its family 'os.system' is unknown"),
        (edit(family="Quadratic"), r"must have the parameters \['L', 'floor'\], got \['w'\]"),
        (edit(family=None), "its family '' is unknown"),
        (edit(settings="{"), "'settings' is not a JSON dict"),
        (edit(settings="[]"), "'settings' is not a JSON dict"),
        (edit(settings=None), "'settings' is not a JSON dict"),
        (edit(settings='{"min_weight": -1}'), "`min_weight` must be a number of at least 0"),
        (edit(settings='{"min_weight": []}'), "`min_weight` must be a number of at least 0"),
        (edit(settings='{"weight": 1}'), "WeightedMSE.* unexpected keyword argument 'weight'"),
        (edit(provenance="3"), "'provenance' is not a JSON dict"),
        (edit(provenance="[" * 100_000), "'provenance' is not a JSON dict"),
        (put("y", np.ravel), r"`y` must have shape .*, got \(42,\)"),
        (
            put("phi.w", lambda w: w.reshape(7, 3, 2)),
            r"`phi\['w'\]` must have shape \(7, 6\), got \(7, 3, 2\)",
        ),
        (put("phi.w", lambda w: w.view(np.int64)), "must be float32 or float64, got int64"),
        (put("phi.w", lambda w: w * np.nan), r"`phi\['w'\]` must be finite"),
        (put("phi.w", lambda w: -w), r"`phi\['w'\]` of WeightedMSE.* must not be negative"),
        (
            put("errors.n_fitted", lambda n: n.astype(np.float64)),
            "`errors.n_fitted` is float64, not int64",
        ),
        (rename("phi.w", "phi.v"), r"must have the parameters \['w'\], got \['v'\]"),
        (rename("errors.status", "errors.state"), "its arrays are"),
    ],
)
def test_a_sealed_file_of_other_content_is_refused_with_the_reason(
    make_loss, path, change, message
):
    make_loss().save(path)
    rewrite(path, change)
    with pytest.raises(LossFileError, match=message):
        losses.load_loss(path)


def test_sealing_anew_without_a_change_keeps_the_file_valid(make_loss, path):
    make_loss().save(path)
    rewrite(path, lambda metadata, arrays: None)
    assert_same(losses.load_loss(path), make_loss())


def test_what_is_no_loss_file_is_refused(path):
    with pytest.raises(FileNotFoundError, match=path.name):
        losses.load_loss(path)
    with pytest.raises(LossFileError, match=r"is a folder, not a loss file\. A store is"):
        losses.load_loss(path.parent)
    for content in (b"", b"PK\x03\x04 no loss", bytes(10_000)):
        path.write_bytes(content)
        with pytest.raises(LossFileError, match="not an intact safetensors"):
            losses.load_loss(path)
    safetensors.numpy.save_file({"y": np.zeros((2, 2))}, path)
    with pytest.raises(LossFileError, match=r"not written by `LearnedLoss\.save`"):
        losses.load_loss(path)


@pytest.mark.parametrize("place", [".", "no/such/folder/loss.safetensors"])
def test_a_loss_is_saved_to_a_file_in_a_folder_that_exists(place, tmp_path):
    loss = learn_loss(TopK(1), np.eye(4), family=losses.WeightedMSE(), n_samples=50)
    with pytest.raises(InvalidInputError, match="`path` must be a file in a folder that exists"):
        loss.save(tmp_path / place)
