import dataclasses
import hashlib
import json
import os
import pickle
import subprocess
import sys
import zlib

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl import learn_loss, losses
from lodl.domains import TopK
from lodl.errors import InvalidInputError, LossFileError

FAMILIES = {
    "WeightedMSE": losses.WeightedMSE(min_weight=0.01),
    "DirectedWeightedMSE": losses.DirectedWeightedMSE(),
    "Quadratic": losses.Quadratic(),
    "DirectedQuadratic": losses.DirectedQuadratic(rank=2),
    "ConvexDirectedQuadratic": losses.ConvexDirectedQuadratic(rank=3),
    "NeuralLoss": losses.NeuralLoss(n_layers=3, n_units=2),
}


def arrays_of(loss):
    phi = {f"phi.{name}": rows for name, rows in loss.phi.items()}
    errors = {f"errors.{name}": rows for name, rows in loss.errors.arrays().items()}
    return {"y": loss.y, **phi, **errors}


def assert_same(found, expected):
    assert found.family == expected.family
    assert found.provenance == expected.provenance
    theirs = arrays_of(expected)
    for name, rows in arrays_of(found).items():
        np.testing.assert_array_equal(rows, theirs[name], err_msg=name)
        assert rows.dtype == theirs[name].dtype, name


def split(raw):
    """Splits a file into the fields of its header and its data."""
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def seal(fields, data):
    """Joins header and data with the checksums a writer would give them."""
    data = bytearray(data)
    text = json.dumps(fields).encode()
    header = len(text).to_bytes(8, "little") + text
    digest = hashlib.sha256(header)
    for name, field in fields.items():
        if f"crc32.{name}" not in fields:
            continue
        begin, end = field["data_offsets"]
        row_bytes = max(1, (end - begin) // field["shape"][0])
        block = max(1, 16_384 // row_bytes) * row_bytes
        crcs = [zlib.crc32(data[i : min(i + block, end)]) for i in range(begin, end, block)]
        at = slice(*fields[f"crc32.{name}"]["data_offsets"])
        data[at] = np.array(crcs, "<u4").tobytes()
        digest.update(data[at])
    data[slice(*fields["digest"]["data_offsets"])] = digest.digest()
    return header + bytes(data)


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
        and member is not losses.Family
    }
    assert concrete == set(FAMILIES)


def test_the_file_is_plain_safetensors_with_metadata(make_loss, path):
    loss = make_loss()
    loss.save(path)
    np.testing.assert_array_equal(safetensors.numpy.load_file(path)["phi.w"], loss.phi["w"])
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert metadata["family"] == "WeightedMSE"
    assert json.loads(metadata["settings"]) == {"min_weight": 1e-3}
    assert json.loads(metadata["label_shape"]) == [2, 3]
    assert json.loads(metadata["provenance"]) == loss.provenance
    assert metadata["version"] == "1"
    assert metadata["package_version"]


def test_numbers_lie_where_a_processor_reads_them_best(make_loss, path):
    make_loss(n_instances=3, dtype=np.float32).save(path)
    fields, _ = split(path.read_bytes())
    size = {"F64": 8, "I64": 8, "F32": 4, "U32": 4, "I8": 1, "U8": 1}
    assert int.from_bytes(path.read_bytes()[:8], "little") % 8 == 0
    for name, field in fields.items():
        if name != "__metadata__":
            assert field["data_offsets"][0] % size[field["dtype"]] == 0, name


def test_opening_reads_no_rows_and_a_batch_reads_only_its_blocks(make_loss, path):
    make_loss(n_instances=20_000).save(path)
    loss = losses.load_loss(path)
    everything = list(arrays_of(loss).values())
    assert sum(rows.verified.sum() for rows in everything) == 0
    loss.value(np.zeros((3, 2, 3)), [5, 19_999, 7])
    assert loss.y.verified.nonzero()[0].tolist() == [0, len(loss.y.verified) - 1]
    assert len(loss.y.verified) == 59  # 341 rows of 48 bytes a block
    assert sum(rows.verified.sum() for rows in everything) == 4


def test_damage_elsewhere_does_not_spoil_a_batch_and_never_passes(make_loss, path):
    make_loss(n_instances=20_000).save(path)
    raw = bytearray(path.read_bytes())
    fields, data = split(raw)
    raw[len(raw) - len(data) + fields["phi.w"]["data_offsets"][0] + 48 * 10_000] ^= 1
    path.write_bytes(raw)
    loss = losses.load_loss(path)
    loss.value(np.zeros((2, 2, 3)), [0, 19_999])
    for _ in range(2):  # an error is not remembered as a success
        with pytest.raises(LossFileError, match=r"rows 9889 to 10229 of 'phi.w' are damaged"):
            loss.rows([10_000])
    with pytest.raises(LossFileError, match="are damaged"):
        loss.subset(range(20_000))


def test_mapped_rows_behave_as_an_array(make_loss, path):
    loss = make_loss()
    loss.save(path)
    rows, array = losses.load_loss(path).y, loss.y
    np.testing.assert_array_equal(rows[2], array[2])
    np.testing.assert_array_equal(rows[-1], array[-1])
    np.testing.assert_array_equal(rows[5:2:-2], array[5:2:-2])
    np.testing.assert_array_equal(rows[[3, 3, 0]], array[[3, 3, 0]])
    np.testing.assert_array_equal(rows == array, np.ones(array.shape, bool))
    np.testing.assert_array_equal(1 - rows, 1 - array)
    assert np.asarray(rows, dtype=np.float32).dtype == np.float32
    with pytest.raises(IndexError, match="out of bounds"):
        rows[7]
    with pytest.raises(IndexError, match="array of integers"):
        rows[[True] * 7]


def test_a_loaded_loss_travels_without_its_file(make_loss, path):
    loss = make_loss()
    loss.save(path)
    data = pickle.dumps(losses.load_loss(path))
    path.unlink()
    assert_same(pickle.loads(data), loss)  # noqa: S301


def test_subset_and_concatenation_of_loaded_losses_are_those_of_the_saved(make_loss, path):
    loss = make_loss()
    loss.save(path)
    loaded = losses.load_loss(path)
    assert_same(loaded.subset([4, 1]), loss.subset([4, 1]))
    concatenate = losses.LearnedLoss.concatenate
    assert_same(concatenate([loaded, loss]), concatenate([loss, loss]))
    assert losses.compare_losses([loaded]) == losses.compare_losses([loss])


def test_a_loss_can_be_saved_over_the_file_it_is_read_from(make_loss, path):
    loss = make_loss(n_instances=2_000)
    loss.save(path)
    loaded = losses.load_loss(path)
    loaded.save(path)
    make_loss(seed=1).save(path)
    assert_same(loaded, loss)
    assert_same(losses.load_loss(path), make_loss(seed=1))
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_save_leaves_the_old_file_and_no_other(make_loss, path):
    loss = make_loss()
    loss.save(path)
    before = path.read_bytes()
    other = path.with_name("damaged")
    other.write_bytes(before)
    damaged = losses.load_loss(other)
    os.truncate(other, 100)
    with pytest.raises(LossFileError, match="changed on disk"):
        damaged.save(path)
    assert path.read_bytes() == before
    assert set(path.parent.iterdir()) == {other, path}


def test_a_file_that_shrinks_or_changes_after_opening_is_an_error(make_loss, path):
    make_loss().save(path)
    shrunk = losses.load_loss(path)
    shrunk.rows()
    os.truncate(path, 2_000)
    with pytest.raises(LossFileError, match="changed on disk after it was opened"):
        shrunk.rows([0])
    make_loss().save(path)
    overwritten = losses.load_loss(path)
    overwritten.rows()
    path.write_bytes(bytes(len(path.read_bytes())))
    os.utime(path, ns=(0, 0))
    with pytest.raises(LossFileError, match="changed on disk after it was opened"):
        overwritten.rows([0])


def test_labels_the_loss_was_not_learned_for_are_an_error(make_loss, path):
    loss = make_loss()
    loss.save(path)
    other = loss.y + 1
    with pytest.raises(LossFileError, match="instance 0 differs"):
        losses.load_loss(path, y=other)
    with pytest.raises(InvalidInputError, match="`y` must be finite"):
        losses.load_loss(path, y=other * np.nan)


def test_a_family_that_is_not_of_the_package_is_not_saved(make_loss, path):
    class Mine(losses.WeightedMSE):
        pass

    with pytest.raises(InvalidInputError, match="for a loss to be saved, got Mine"):
        make_loss(Mine()).save(path)
    assert not path.exists()


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

    def apply(fields, data):
        metadata = {**fields["__metadata__"], **changes}
        kept = {key: value for key, value in metadata.items() if value is not None}
        return {**fields, "__metadata__": kept}, data

    return apply


def reshape(name, shape, dtype=None):
    def apply(fields, data):
        field = {**fields[name], "shape": shape, "dtype": dtype or fields[name]["dtype"]}
        return {**fields, name: field}, data

    return apply


def rename(old, new):
    def apply(fields, data):
        names = {old: new, f"crc32.{old}": f"crc32.{new}"}
        return {names.get(name, name): field for name, field in fields.items()}, data

    return apply


def put_nan(fields, data):
    begin = fields["phi.w"]["data_offsets"][0]
    return fields, data[:begin] + np.float64("nan").tobytes() + data[begin + 8 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit(format="other"), "not written by `LearnedLoss.save`"),
        (edit(version="2"), "format version '2', this package reads '1'"),
        (edit(version=None), "format version None"),
        (edit(family="os.system"), "its family is 'os.system', known are WeightedMSE"),
        (edit(family="Quadratic"), r"must have the parameters \['L', 'floor'\], got \['w'\]"),
        (edit(family=None), "its family is ''"),
        (edit(settings="{"), "'settings' is missing or no JSON"),
        (edit(settings="[]"), "'settings' must be a JSON dict"),
        (edit(settings='{"min_weight": -1}'), "settings of WeightedMSE are not valid"),
        (edit(settings='{"min_weight": []}'), "settings of WeightedMSE are not valid"),
        (edit(settings='{"weight": 1}'), "settings of WeightedMSE are not valid"),
        (edit(provenance="3"), "'provenance' must be a JSON dict"),
        (edit(provenance="[" * 100_000), "'provenance' is missing or no JSON"),
        (edit(label_shape="[3, 2]"), r"labels of shape \(2, 3\), not \[3, 2\]"),
        (reshape("y", [42]), r"`y` must have shape .*, got \(42,\)"),
        (reshape("phi.w", [7, 3, 2]), r"`phi\['w'\]` must have shape \(7, 6\), got \(7, 3, 2\)"),
        (reshape("phi.w", [7, 6], "I64"), "must be float32 or float64, got int64"),
        (reshape("phi.w", [1] * 70 + [7, 6]), "'phi.w' has type F64 and shape"),
        (reshape("phi.w", [2**60, 6]), "no intact safetensors file"),
        (reshape("phi.w", [-7, 6]), "no intact safetensors file"),
        (reshape("phi.w", [7, 6], "BF16"), "no intact safetensors file"),
        (reshape("errors.n_fitted", [7], "F64"), "`errors.n_fitted` is float64, not int64"),
        (reshape("crc32.y", [1], "F32"), "checksums do not belong"),
        (rename("phi.w", "phi.v"), r"must have the parameters \['w'\], got \['v'\]"),
        (rename("errors.status", "errors.state"), "its arrays are"),
        (put_nan, "rows 0 to 6 of 'phi.w' are not finite"),
    ],
)
def test_a_sealed_file_of_other_content_is_refused_with_the_reason(
    make_loss, path, change, message
):
    make_loss().save(path)
    path.write_bytes(seal(*change(*split(path.read_bytes()))))
    with pytest.raises(LossFileError, match=message):
        losses.load_loss(path).rows()


def test_sealing_anew_without_a_change_keeps_the_file_valid(make_loss, path):
    make_loss().save(path)
    path.write_bytes(seal(*split(path.read_bytes())))
    assert_same(losses.load_loss(path), make_loss())


def test_what_is_no_loss_file_is_refused(path):
    with pytest.raises(FileNotFoundError, match=path.name):
        losses.load_loss(path)
    with pytest.raises(LossFileError, match=r"is a folder, not a loss file\. A store of samples"):
        losses.load_loss(path.parent)
    for content in (b"", b"PK\x03\x04 no loss", bytes(10_000)):
        path.write_bytes(content)
        with pytest.raises(LossFileError, match=r"cannot be read|no intact safetensors"):
            losses.load_loss(path)
    safetensors.numpy.save_file({"y": np.zeros((2, 2))}, path)
    with pytest.raises(LossFileError, match=r"not written by `LearnedLoss\.save`"):
        losses.load_loss(path)


@pytest.mark.parametrize("place", [".", "no/such/folder/loss.safetensors"])
def test_a_loss_is_saved_to_a_file_in_a_folder_that_exists(place, tmp_path):
    loss = learn_loss(TopK(1), np.eye(4), family=losses.WeightedMSE(), n_samples=50)
    with pytest.raises(InvalidInputError, match="`path` must be a file in a folder that exists"):
        loss.save(tmp_path / place)
