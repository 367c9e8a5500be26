"""The script behind `make mutants` puts in the faults it names, one at a time."""

import ast
import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).with_name("mutants.py")))

SOURCE = '''
Index = list[int]
_ROUNDING = 1e-9  # of the größte

@dataclass(frozen=True)
class Chooser:
    def choose(self, a: tuple[int, ...], b=True) -> list[int]:
        """Return 1."""
        if not a or self.is_late():
            raise ValueError(f"expected {a[0]}")
        a[0] += min(a[1:], -2)
        self.note(a, axis=0)
        if b is None:
            return None
        return [x for x in a if x < 0.5]
'''

FAULTS = {
    (3, "1e-9", "0.001"),
    (7, "True", "False"),
    (9, "not a or self.is_late()", "not a and self.is_late()"),
    (9, "not a", "a"),
    (11, "a[0] += min(a[1:], -2)", "pass"),
    (11, "0", "1"),
    (11, "min(a[1:], -2)", "max(a[1:], -2)"),
    (11, "min(a[1:], -2)", "a[1:]"),
    (11, "min(a[1:], -2)", "-2"),
    (11, "a[1:]", "a"),
    (11, "1", "2"),
    (11, "-2", "2"),
    (11, "2", "3"),
    (12, "self.note(a, axis=0)", "pass"),
    (12, "self.note(a, axis=0)", "self.note(a)"),
    (12, "0", "1"),
    (13, "b is None", "b is not None"),
    (15, "return [x for x in a if x < 0.5]", "return None"),
    (15, "x < 0.5", "x <= 0.5"),
    (15, "0.5", "1.0"),
}


def test_every_fault_is_named_and_types_texts_and_messages_are_left_alone():
    mutants = list(SCRIPT["mutants_of"]("module.py", SOURCE))
    assert {(mutant.line, mutant.old, mutant.new) for mutant in mutants} == FAULTS
    assert len(mutants) == len(FAULTS)


def test_a_mutant_differs_from_its_source_in_one_line():
    lines = SOURCE.splitlines()
    for mutant in SCRIPT["mutants_of"]("module.py", SOURCE):
        ast.parse(mutant.source)
        mutated = mutant.source.splitlines()
        changed = [
            n for n, (old, new) in enumerate(zip(lines, mutated, strict=True), 1) if old != new
        ]
        assert changed == [mutant.line]


@pytest.mark.parametrize("module", SCRIPT["TESTS"])
def test_modules_and_their_tests_exist(module):
    assert (SCRIPT["ROOT"] / "src" / "lodl" / module).exists()
    for name in SCRIPT["TESTS"][module]:
        assert (SCRIPT["ROOT"] / "tests" / name).exists()
