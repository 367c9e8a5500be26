"""Mutation testing of the code that chooses models and reports regrets: `make mutants`.

A mutant is a module with one small fault. The module's tests run against a copy of the package
with that fault, and a mutant that passes them survives. At most `--most` mutants of each module
are drawn, with a fixed seed, because all of them take hours.

Results are kept in `.mutants.jsonl`, so an interrupted run resumes. A survivor runs again when the
tests of its module have changed. Delete the file after changes to the rest of the package.

mutmut mutates functions only, not the constants at the top of a module. Hence this script.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".mutants.jsonl"
GOAL = 0.85  # share of mutants that the tests must kill
SEED = 0
TESTS = {  # the tests of each module, the fastest first
    "losses/_fit_shared.py": [
        "losses/test_fit_shared_units.py",
        "losses/test_fit_shared_errors.py",
        "losses/test_fit_shared.py",
    ],
    "learning/_folds.py": [
        "learning/test_folds.py",
        "learning/test_data.py",
        "learning/test_bad_data.py",
    ],
    "learning/_search.py": [
        "learning/test_search.py",
        "learning/test_curvature.py",
        "learning/test_regressor.py",
    ],
    "report/_result.py": ["report/test_result.py", "report/test_text.py"],
    "problems/_regret.py": [
        "problems/test_problem.py",
        "problems/test_regret.py",
        "problems/test_linear_problem.py",
        "evaluation/test_decision_loss.py",
    ],
    "samplers.py": ["samplers/test_samplers.py", "oracle/test_neighbours.py"],
}

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
PAIRS = [
    ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"),
    ("nansum", "nanmean"), ("sum", "mean"), ("zeros", "ones"),
]  # fmt: skip
SWAPPED = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
Node = ast.expr | ast.stmt


@dataclass(frozen=True)
class Mutant:
    """One fault: `old` becomes `new` in a line of a module."""

    module: str
    line: int
    old: str
    new: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}  {self.old}  ->  {self.new}"


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its lines."""
    data = source.encode()  # positions of nodes are in bytes
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in sorted(_mutable(ast.parse(source)), key=lambda node: node.lineno):
        place = node.test if isinstance(node, ast.If | ast.While) else node
        first = starts[place.lineno - 1] + place.col_offset
        last = starts[place.end_lineno - 1] + place.end_col_offset
        old = " ".join(data[first:last].decode().split())
        for new in dict.fromkeys(_faults(node)):
            if " ".join(new.split()) == old:  # `return None`, whose value is taken away
                continue
            text = new if isinstance(place, ast.stmt) else f"({new})"
            mutated = (data[:first] + text.encode() + data[last:]).decode()
            yield Mutant(module, place.lineno, old, new, mutated)


def _mutable(node: ast.AST) -> Iterator[Node]:
    """Yield the nodes that behaviour depends on: no types, decorators, texts or messages."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name in ("annotation", "returns", "decorator_list") or _is_inert(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _mutable(child)


def _is_inert(node: object) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name[0].isupper() and not name.isupper()  # the name of a type
        case ast.JoinedStr() | ast.Raise():
            return True
    return not isinstance(node, ast.AST)


def _faults(node: Node) -> Iterator[str]:
    """Yield the source of each fault that can replace a node."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            yield repr(_other_number(value))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield _text(ast.Compare(left, [COMPARISONS[type(op)]()], [right]))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            yield _text(ast.BinOp(left, ARITHMETIC[type(op)](), right))
        case ast.BoolOp(op=op, values=values):
            yield _text(ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values))
        case ast.Call():
            yield from _other_calls(node)
        case _:
            yield from _omissions(node)


def _omissions(node: Node) -> Iterator[str]:
    """Yield a node without a part of it: a sign, an index, an entry, a result, an effect."""
    match node:
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield _text(operand)
        case ast.If(test=ast.Call() | ast.Name() | ast.Attribute() as test):
            yield _text(ast.UnaryOp(ast.Not(), test))
        case ast.IfExp(test=test, body=body, orelse=other):
            yield _text(ast.IfExp(test, other, body))
        case ast.Subscript(value=value, ctx=ast.Load()):
            yield _text(value)
        case ast.List(elts=[_, _, *_] as entries, ctx=ast.Load()):
            yield _text(ast.List(entries[:-1], ast.Load()))
        case ast.Return(value=ast.expr()):
            yield "return None"
        case (
            ast.AugAssign()
            | ast.Assign(targets=[ast.Subscript() | ast.Attribute()])
            | ast.Expr(value=ast.Call())
            | ast.Break()
            | ast.Continue()
        ):
            yield "pass"


def _other_number(value: float) -> float:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) or not value:
        return value + 1
    return value * (1e6 if abs(value) < 1e-3 else 2)  # a tolerance is known by its power of ten


def _other_calls(node: ast.Call) -> Iterator[str]:
    """Yield a call with another function, swapped arguments, or one argument in its place."""
    function, arguments = node.func, node.args
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name in SWAPPED:
        swapped: ast.expr = ast.Name(SWAPPED[name])
        if isinstance(function, ast.Attribute):
            swapped = ast.Attribute(function.value, SWAPPED[name])
        yield _text(ast.Call(swapped, arguments, node.keywords))
    if len(arguments) == 2 and not any(isinstance(one, ast.Starred) for one in arguments):
        if name in ("min", "max", "minimum", "maximum"):
            yield from map(_text, arguments)
        else:
            yield _text(ast.Call(function, arguments[::-1], node.keywords))
    for keyword in node.keywords:
        others = [one for one in node.keywords if one is not keyword]
        yield _text(ast.Call(function, arguments, others))


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


def run_tests(copy: Path, module: str, source: str, timeout: float | None = None) -> str:
    """Return "survived", or how the tests of a module found out about a source."""
    (copy / "lodl" / module).write_text(source)
    files = [str(Path("tests") / name) for name in TESTS[module]]
    plugins = ["-p", "pytest_timeout", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *files]
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # halves the time
        "PYTHONDONTWRITEBYTECODE": "1",  # a stale file could hide the fault
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis"),
        "OMP_NUM_THREADS": "1",
    }
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return "timeout"
    if process.returncode == 0:
        return "survived"
    if process.returncode == 5:  # no test was found
        raise RuntimeError(f"pytest could not run {files}:\n{said}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return failed[1] if failed else "not collected"


def check_tests(copy: Path, module: str) -> float:
    """Return the seconds of a module's tests, which must pass, and fail if the module is broken."""
    source = (ROOT / "src" / "lodl" / module).read_text()
    started = time.perf_counter()
    result = run_tests(copy, module, source)
    seconds = time.perf_counter() - started
    if result != "survived":
        raise SystemExit(f"The tests of {module} must pass without a fault, got {result}.")
    if run_tests(copy, module, "raise ImportError") == "survived":
        raise SystemExit(f"The tests of {module} do not import it from {copy}.")
    return seconds


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def judge(module: str, mutants: list[Mutant], copies: list[Path]) -> dict[Mutant, str]:
    """Return the result of each mutant, from the results file where it is known."""
    tested = _digest(*((ROOT / "tests" / name).read_text() for name in TESTS[module]))
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    known = {row["mutant"]: row for row in map(json.loads, lines)}
    results = {}
    for mutant in mutants:
        row = known.get(_digest(mutant.source), {"result": "survived", "tests": ""})
        if row["result"] != "survived" or row["tests"] == tested:
            results[mutant] = row["result"]
    left = [mutant for mutant in mutants if mutant not in results]
    if not left:
        return results
    limit = 30 + 5 * check_tests(copies[0], module)
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def test(mutant: Mutant) -> str:
        copy = free.get()
        result = run_tests(copy, module, mutant.source, limit)
        free.put(copy)
        row = {"mutant": _digest(mutant.source), "result": result, "tests": tested}
        with RESULTS.open("a") as file:
            file.write(json.dumps({**row, "fault": str(mutant)}) + "\n")
        print("s" if result == "survived" else ".", end="", flush=True)
        return result

    with ThreadPoolExecutor(len(copies)) as pool:
        results |= zip(left, pool.map(test, left), strict=True)
    print()
    for copy in copies:
        shutil.copy2(ROOT / "src" / "lodl" / module, copy / "lodl" / module)
    return results


def copy_package(copy: Path) -> None:
    """Copy the package, compiled but for the modules that will change."""
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", copy], check=True)
    for module in map(Path, TESTS):
        for path in (copy / "lodl" / module.parent / "__pycache__").glob(f"{module.stem}.*"):
            path.unlink()


def main() -> None:
    """Judge the mutants of all modules, or of those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=list(TESTS), help="as in `TESTS`")
    parser.add_argument("--most", type=int, default=60, help="mutants per module, 0 for all")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    survivors, n_tested = [], 0
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder) / str(number) for number in range(options.jobs)]
        for copy in copies:
            copy_package(copy)
        for module in options.modules:
            every = list(mutants_of(module, (ROOT / "src" / "lodl" / module).read_text()))
            n_drawn = min(options.most or len(every), len(every))
            mutants = random.Random(SEED).sample(every, n_drawn)
            print(f"{module}: {n_drawn} of {len(every)} mutants", flush=True)
            results = judge(module, mutants, copies)
            alive = [mutant for mutant in mutants if results[mutant] == "survived"]
            print(f"{module}: {1 - len(alive) / n_drawn:.0%} killed", flush=True)
            survivors += alive
            n_tested += n_drawn
    for mutant in sorted(survivors, key=lambda mutant: (mutant.module, mutant.line)):
        print(mutant)
    share = 1 - len(survivors) / n_tested
    print(f"{share:.0%} of {n_tested} mutants killed, the goal is {GOAL:.0%}.")
    sys.exit(share < GOAL)


if __name__ == "__main__":
    main()
