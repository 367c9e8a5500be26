"""Damaged loss files: the values that were saved, or an error that says so; nothing else."""

import json
import tracemalloc

import numpy as np
import pytest

from lodl import losses
from lodl.errors import LossFileError

N_MUTATIONS = 2_400
MAX_BYTES = 8_000_000


def flip_bit(raw, rng):
    raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)


def overwrite(raw, rng):
    start = rng.integers(len(raw))
    end = min(len(raw), start + rng.integers(1, 64))
    raw[start:end] = rng.bytes(end - start)


def erase(raw, rng):
    start, end = np.sort(rng.integers(len(raw) + 1, size=2))
    raw[start:end] = bytes(end - start)


def insert(raw, rng):
    at = rng.integers(len(raw) + 1)
    raw[at:at] = rng.bytes(rng.integers(1, 64))


def delete(raw, rng):
    start = rng.integers(len(raw))
    del raw[start : start + rng.integers(1, 64)]


def truncate(raw, rng):
    del raw[rng.integers(len(raw)) :]


def append(raw, rng):
    raw.extend(rng.bytes(rng.integers(1, 64)))


def swap_blocks(raw, rng):
    size = int(rng.choice([8, 48, 512, 16_384]))
    size = min(size, len(raw) // 2)
    first, second = rng.integers(len(raw) - size + 1, size=2)
    block = raw[first : first + size]
    raw[first : first + size] = raw[second : second + size]
    raw[second : second + size] = block


def change_header_length(raw, rng):
    length = int.from_bytes(raw[:8], "little")
    choices = [0, length + 8, length - 8, length // 2, 2**31, 2**63, 2**64 - 1, len(raw)]
    raw[:8] = int(rng.choice(np.array(choices, dtype=np.uint64))).to_bytes(8, "little")


def edit_header(raw, rng):
    """Changes one number, text or name of the header, which stays valid JSON."""
    length = int.from_bytes(raw[:8], "little")
    fields = json.loads(raw[8 : 8 + length])
    name = rng.choice([key for key in fields if key != "__metadata__"])
    other = rng.choice([key for key in fields if key not in ("__metadata__", name)])
    number = [-1, 0, 1, 7, 2**31, 2**60, 2**63, 10**30, 1.5, None][rng.integers(10)]
    field = fields[name]
    edits = [
        lambda: field["shape"].__setitem__(0, number),
        lambda: field["shape"].append(number),
        lambda: field["shape"].reverse(),
        lambda: field["shape"].clear(),
        lambda: field["data_offsets"].__setitem__(int(rng.integers(2)), number),
        lambda: field["data_offsets"].reverse(),
        lambda: field.__setitem__("dtype", str(rng.choice(["F32", "I64", "BOOL", "F4", "?"]))),
        lambda: fields.update({name: fields[other], other: fields[name]}),
        lambda: fields.update({f"{name}.": fields.pop(name)}),
        lambda: fields.pop(name),
        lambda: fields.pop("__metadata__"),
        lambda: edit_metadata(fields["__metadata__"], rng, number),
    ]
    edits[rng.integers(len(edits))]()
    text = json.dumps(fields).encode()
    if rng.random() < 0.2:  # a name twice: the first of them says something else
        text = b'{"%s":%s,' % (name.encode(), json.dumps(field).encode()) + text[1:]
    raw[: 8 + length] = len(text).to_bytes(8, "little") + text


def edit_metadata(metadata, rng, number):
    key = rng.choice(list(metadata))
    metadata[key] = [json.dumps(number), "", "Quadratic", "[" * 500, number][rng.integers(5)]


OF_BYTES = [flip_bit, overwrite, erase, insert, delete, truncate, append, swap_blocks]
OF_HEADERS = [change_header_length, edit_header, edit_header]


def mutate(original, rng):
    """Returns a copy with one damage of any kind, at times with a second one of its bytes."""
    raw = bytearray(original)
    kinds = OF_BYTES + OF_HEADERS
    kinds[rng.integers(len(kinds))](raw, rng)
    if len(raw) > 1 and rng.random() < 0.3:
        OF_BYTES[rng.integers(len(OF_BYTES))](raw, rng)
    return raw


def write_anew(path, raw):
    """Writes a new file: some file systems flush one that is overwritten, which takes ms."""
    path.unlink()
    path.write_bytes(raw)


def read_all(loss):
    arrays = [loss.y, *loss.phi.values(), *loss.errors.arrays().values()]
    return loss.family, loss.provenance, [np.asarray(rows) for rows in arrays]


def is_same(actual, expected):
    return actual[:2] == expected[:2] and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(actual[2], expected[2], strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n_instances"),
    [(losses.Quadratic(rank=2), 4), (losses.WeightedMSE(), 900)],
    ids=["mostly header", "several blocks"],
)
def test_a_damaged_file_gives_the_saved_values_or_an_error(
    make_loss, tmp_path, family, n_instances
):
    path = tmp_path / "loss.safetensors"
    make_loss(family, n_instances=n_instances).save(path)
    original = path.read_bytes()
    expected = read_all(losses.load_loss(path))
    rng = np.random.default_rng(0)
    n_refused = 0
    tracemalloc.start()
    for _ in range(N_MUTATIONS // 2):
        write_anew(path, mutate(original, rng))
        try:
            assert is_same(read_all(losses.load_loss(path)), expected)
        except LossFileError:
            n_refused += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MAX_BYTES
    assert n_refused > 0.9 * N_MUTATIONS / 2


def test_every_single_byte_of_a_file_counts(make_loss, tmp_path):
    path = tmp_path / "loss.safetensors"
    make_loss(n_instances=2, label_shape=(1,)).save(path)
    original = path.read_bytes()
    for position in range(len(original)):
        raw = bytearray(original)
        raw[position] ^= 0x10
        write_anew(path, raw)
        with pytest.raises(LossFileError, match="cannot be used"):
            read_all(losses.load_loss(path))
