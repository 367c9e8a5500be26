"""Pickles that are what they should be, and pickles that are out for harm."""

import copyreg
import os
import pickle
import struct
import subprocess

import numpy as np
import pytest

from lodl.errors import DataError
from lodl_benchmarks.domains import read_click_matrices

PROTOCOLS = pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))


class Call:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __call__(self):
        """Only what is callable can be pickled as a function; never called."""

    def __reduce__(self):
        return self.function, self.arguments


class BuiltWith:
    """Pickles as an object of `function(*arguments)` whose state is then set."""

    def __init__(self, state, function, *arguments):
        self.state, self.function, self.arguments = state, function, arguments

    def __reduce__(self):
        return self.function, self.arguments, self.state


@pytest.fixture
def write(tmp_path):
    def write(content, protocol=4):
        path = tmp_path / "clicks.pkl"
        is_raw = isinstance(content, bytes)
        path.write_bytes(content if is_raw else pickle.dumps(content, protocol=protocol))
        return path

    return write


@pytest.fixture
def canary(tmp_path):
    """A file that an attack creates if it gets to run anything."""
    path = tmp_path / "pwned"
    yield path
    assert not path.exists(), "the pickle ran code"


def rates(dtype=np.float32, n_matrices=3):
    rng = np.random.default_rng(0)
    return [rng.uniform(0, 0.2, size=(4, 6)).astype(dtype) for _ in range(n_matrices)]


@PROTOCOLS
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2"])
@pytest.mark.parametrize("weights", [[1.0, 2.0], np.ones(3), None], ids=["list", "array", "none"])
def test_matrices_are_read_as_they_were_written(write, protocol, dtype, weights):
    matrices = rates(dtype)
    read = read_click_matrices(write((matrices, weights), protocol)).matrices
    assert len(read) == len(matrices)
    for actual, expected in zip(read, matrices, strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype


@PROTOCOLS
def test_column_major_and_strided_matrices_are_read_right(write, protocol):
    plain, other, third = rates()
    matrices = [plain, np.asfortranarray(other), third[::-1]]
    read = read_click_matrices(write((matrices, None), protocol)).matrices
    np.testing.assert_array_equal(np.stack(read), np.stack(matrices))


@PROTOCOLS
def test_names_of_numpy_before_version_2_are_known(write, protocol):
    content = pickle.dumps((rates(), None), protocol=protocol)
    # The older name is one letter shorter; framed strings carry their length in front.
    for module in (b"multiarray", b"numeric"):
        new, old = b"numpy._core." + module, b"numpy.core." + module
        content = content.replace(bytes([len(new)]) + new, bytes([len(old)]) + old)
        content = content.replace(b"c" + new + b"\n", b"c" + old + b"\n")
    assert b"_core" not in content
    if protocol >= 4:  # a frame tells how long it is
        content = _without_frames(content)
    read = read_click_matrices(write(content)).matrices
    np.testing.assert_array_equal(np.stack(read), np.stack(rates()))


def _without_frames(content):
    """Drops the frame headers of a pickle, which are optional."""
    frames = b"\x95"
    start = content.index(frames, 2)
    assert start == 2
    return content[:2] + content[11:]


def test_a_pickle_of_python_2_is_read(write):
    matrix = np.arange(6, dtype="<f4").reshape(2, 3) / 10
    raw = matrix.tobytes()
    content = (
        b"\x80\x02]cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R("
        b"K\x01K\x02K\x03\x86cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb\x89U" + bytes([len(raw)]) + raw + b"tbaN\x86."
    )
    (read,) = read_click_matrices(write(content)).matrices
    np.testing.assert_array_equal(read, matrix)


def attacks(canary):
    shell = f"touch {canary}"
    python = f"open({str(canary)!r}, 'w')"
    return {
        "os.system": Call(os.system, shell),
        "os.popen": Call(os.popen, shell),
        "subprocess": Call(subprocess.getoutput, shell),
        "eval": Call(eval, python),
        "exec": Call(exec, python),
        "builtins.open": Call(open, str(canary), "w"),
        "getattr": Call(getattr, "", "join"),
        "getattr chain": Call(Call(getattr, Call(__import__, "os"), "system"), shell),
        "import": Call(__import__, "os"),
        "pickle in pickle": Call(pickle.loads, pickle.dumps(Call(os.system, shell))),
        "copyreg": Call(copyreg._reconstructor, object, object, None),
        "numpy.load": Call(np.load, str(canary)),
        "numpy.save": Call(np.save, str(canary), np.zeros(2)),
        "numpy.fromfile": Call(np.fromfile, "/etc/hostname"),
        "numpy.savetxt": Call(np.savetxt, str(canary), np.zeros(2)),
        "numpy.memmap": Call(np.memmap, str(canary), "u1", "w+", 0, (1,)),
        "numpy method": Call(np.ndarray.tofile, np.zeros(2), str(canary)),
        "numpy.vectorize": Call(np.vectorize, os.system),
        "array of objects": np.array([Call(os.system, shell)], dtype=object),
        "array subclass": np.zeros(2).view(np.matrix),
    }


ATTACKS = list(attacks("anywhere"))


@PROTOCOLS
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_before_it_runs(write, canary, protocol, name):
    harmful = attacks(canary)[name]
    for content in (harmful, ([harmful], None), (rates(), {"w": [harmful]}), [(harmful,)]):
        path = write(content, protocol)
        with pytest.raises(DataError, match=r"clicks\.pkl (cannot be read|is not a pickle)"):
            read_click_matrices(path)


@pytest.mark.parametrize(
    "harmful",
    [
        "cos\nsystem\n(S'touch {canary}'\ntR.",  # GLOBAL, REDUCE
        "(S'touch {canary}'\nios\nsystem\n.",  # INST
        "(cos\nsystem\nS'touch {canary}'\no.",  # OBJ
        "\x80\x02cos\nsystem\nS'touch {canary}'\n\x85\x81.",  # NEWOBJ
        "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.",  # STACK_GLOBAL
        "\x80\x04\x8c\x05numpy\x8c\x0ff2py.os.system__\x93.",  # a dotted path
        "cnumpy\ndtype.__class__\n.",
        "cnumpy\nos\n.",
        "cnumpy.core.multiarray\nos\n.",
        "Pos.system\n.",  # PERSID
        "cnumpy\ndtype\n}S'__setstate__'\ncos\nsystem\nsb.",  # BUILD on a stand-in
    ],
)
def test_a_hand_written_attack_is_refused(write, canary, harmful):
    path = write(harmful.replace("{canary}", str(canary)).encode("latin1"))
    with pytest.raises(DataError, match=r"clicks\.pkl (cannot be read|is not a pickle)"):
        read_click_matrices(path)


@pytest.mark.parametrize(
    "state",
    [
        {"__class__": os._Environ},
        (None, {"arguments": ("f4",)}),
        (1, (2, 3), np.dtype("O"), False, [os.sep] * 6),
        (1, (2, 3), np.dtype("f4"), False, b"short"),
        (1, (2**62, 2**62), np.dtype("f4"), False, b""),
        (1, (-1, -1), np.dtype("f4"), False, bytes(24)),
        (1, "shape", np.dtype("f4"), False, bytes(24)),
        (1, (2, 3), "f4", False, bytes(24)),
        (1, (2, 3), np.dtype("i4"), False, bytes(24)),
        (1, (2, 3), np.dtype([("a", "f4")]), False, bytes(24)),
        (1, (2, 3), np.dtype("f4"), False, 24),
        (1,),
        None,
    ],
)
def test_a_forged_array_is_refused(write, state):
    empty = np.zeros(0).__reduce__()
    forged = BuiltWith(state, empty[0], *empty[1])
    with pytest.raises(DataError, match=r"clicks\.pkl (cannot be read|is not a pickle)"):
        read_click_matrices(write(([forged], None)))


def test_setting_the_state_of_a_stand_in_class_leaves_no_trace(write):
    content = b"(lp0\ncnumpy\ndtype\n}S'state'\nI1\nsb."
    with pytest.raises(DataError, match=r"clicks\.pkl"):
        read_click_matrices(write(content))
    assert len(read_click_matrices(write((rates(), None))).matrices) == 3


@pytest.mark.parametrize("content", [{"a": 1}, rates(), [rates()], (), (rates()[0], None), "text"])
def test_a_pickle_of_another_form_is_refused(write, content):
    with pytest.raises(DataError, match="a tuple whose first member is a list of arrays"):
        read_click_matrices(write(content))


def test_a_list_of_other_things_is_refused(write):
    with pytest.raises(DataError, match="the list must hold float arrays only, got float"):
        read_click_matrices(write(([1.0, 2.0], None)))


@pytest.mark.parametrize("keep", [0, 1, 10, 60, 200])
def test_a_torn_file_is_refused(write, keep):
    whole = pickle.dumps((rates(), None), protocol=4)
    with pytest.raises(DataError, match=r"clicks\.pkl is not a pickle of NumPy arrays"):
        read_click_matrices(write(whole[:keep]))


def test_every_single_changed_byte_is_read_or_refused_but_nothing_else(write):
    whole = pickle.dumps((rates(n_matrices=1), None), protocol=2)
    rng = np.random.default_rng(0)
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] = rng.integers(256)
        try:
            read_click_matrices(write(bytes(changed)))
        except DataError:
            continue


def test_a_claimed_length_beyond_the_file_is_refused(write):
    content = b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"abc."
    with pytest.raises(DataError, match=r"clicks\.pkl is not a pickle"):
        read_click_matrices(write(content))
