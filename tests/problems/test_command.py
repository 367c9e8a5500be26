import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

from lodl import Oracle
from lodl.errors import InvalidInputError, OracleError, ProblemError
from lodl.problems.command import CommandProblem
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

RNG = np.random.default_rng(0)
PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    call = json.loads(line)
    context = call.get("context", {})
    if context.get("hang"):
        time.sleep(60)
    if context.get("die"):
        sys.exit("out of " + context["die"])
    bonus = context.get("bonus", [0.0, 0.0, 0.0])
    def best(values):
        sums = [v + b for v, b in zip(values, bonus)]
        return sums.index(max(sums))
    if "label" in call:
        z = call["decision"] if "decision" in call else best(call["prediction"])
        answer = {"objective": call["label"][z] + bonus[z]}
    else:
        answer = {"decision": context["pid"] and os.getpid() if "pid" in context else best(call["prediction"])}
    print(json.dumps(answer), flush=True)
"""  # noqa: E501
FORMS = pytest.mark.parametrize("persistent", [False, True], ids=["started anew", "persistent"])


def pick(program=PROGRAM, **options):
    # -S -E: starts in half the time.
    return CommandProblem([sys.executable, "-S", "-E", "-c", program], "max", **options)


def pid_of(problem):
    return problem.solve(np.ones(3), {"pid": True})


def has_ended(pid):
    until = time.monotonic() + 10
    while (
        pid is not None
        and psutil.pid_exists(pid)
        and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@FORMS
def test_a_program_decides_and_scores(persistent):
    problem = pick(persistent=persistent)
    y_hat, y = np.array([1.0, 3.0, 2.0]), np.array([5.0, 6.0, 7.0])
    assert problem.solve(y_hat) == 1
    assert problem.objective(1, y) == 6.0
    context = {"bonus": np.array([0.0, 0.0, 1.5])}
    assert problem.solve(y_hat, context) == 2
    assert problem.objective(2, y, context) == 8.5


@pytest.mark.parametrize(
    "objective", [lambda z, y, context: 10 * y[z], lambda z, y: 10 * y[z]], ids=["with", "without"]
)
def test_the_objective_may_be_a_function(objective):
    problem = pick(persistent=True, objective=objective)
    assert problem.objective(problem.solve(np.array([0.0, 1.0, 0.0])), np.arange(3.0)) == 10


def test_a_program_may_show_no_decision():
    problem = pick(persistent=True, one_call=True)
    z = problem.solve(np.array([1.0, 3.0, 2.0]))
    assert problem.objective(z, np.array([5.0, 6.0, 7.0])) == 6.0
    check_problem(problem, RNG.random((2, 3)))


@pytest.mark.slow
def test_a_persistent_program_runs_once_per_thread_and_ends_with_it():
    problem = pick(persistent=True)
    here = pid_of(problem)
    assert here == pid_of(problem)
    with ThreadPoolExecutor(1) as thread:
        there = thread.submit(pid_of, problem).result()
        assert there not in (here, os.getpid())
        assert there == thread.submit(pid_of, problem).result()
    gc.collect()
    assert has_ended(there)
    assert here == pid_of(problem)
    del problem
    gc.collect()
    assert has_ended(here)


@pytest.mark.slow
def test_a_persistent_program_ends_with_the_process_that_started_it():
    script = (
        "import sys, os, signal, numpy as np\n"
        "from lodl.problems.command import CommandProblem\n"
        f"problem = CommandProblem([sys.executable, '-c', {PROGRAM!r}], 'max', persistent=True)\n"
        "print(problem.solve(np.ones(3), {'pid': True}), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == 'killed' else None\n"
    )
    for how in ("ended", "killed"):
        done = subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True)
        assert has_ended(int(done.stdout)), done.stderr


@FORMS
def test_a_program_that_fails_is_named_with_its_exit_code_and_last_words(persistent):
    problem, y = pick(persistent=persistent), np.ones((1, 3))
    with pytest.raises(OracleError, match=r"the label itself.*exit code 1\. It wrote: out of luck"):
        Oracle(problem).sample(y, AllPerturbed(1), 1, context=[{"die": "luck"}])
    assert problem.solve(np.array([0.0, 1.0, 0.0])) == 1  # started again


@FORMS
def test_a_timeout_is_a_failed_call_and_the_next_one_works(persistent):
    problem = pick(persistent=persistent, timeout=1.0)
    with pytest.raises(ProblemError, match="took longer than its timeout of 1 second"):
        problem.solve(np.ones(3), {"hang": True})
    assert problem.solve(np.array([0.0, 1.0, 0.0])) == 1


def test_a_long_question_to_a_program_that_does_not_read_is_given_up_too():
    problem = pick("import time; time.sleep(60)", persistent=True, timeout=0.5)
    with pytest.raises(ProblemError, match="took longer"):
        problem.solve(np.ones(100_000))


@pytest.mark.slow
def test_a_call_that_the_oracle_gives_up_does_not_answer_the_next_one():
    problem = pick(persistent=True)
    how = {"n_jobs": 1, "timeout": 0.7, "on_failure": "skip", "max_failure_rate": 1.0}
    found = Oracle(problem, **how, progress=False).sample(
        np.array([[0.0, 1.0, 0.5], [0.0, 1.0, 0.5]]),
        AllPerturbed(0.1),
        2,
        context=[{"hang": True}, {"bonus": [0.0, 0.0, 0.0]}],
    )
    assert found.n_failures == 2
    assert np.isfinite(found[1].regret).all()


@FORMS
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; print('oops', file=sys.stderr); print('Hello')", r"must print JSON.*Hello"),
        ("print('{\"z\": 1}')", r'must print \{"decision": ...\}, got .*"z"'),
        ("print('[1]')", r'must print \{"decision": ...\}'),
        ("", r"must print JSON in UTF-8, got ''|exit code 0"),
    ],
)
def test_an_answer_of_another_form_is_shown(persistent, program, message):
    with pytest.raises(ProblemError, match=message):
        pick(program, persistent=persistent).solve(np.ones(3))


@FORMS
def test_a_program_that_is_not_there_is_named(persistent):
    problem = CommandProblem(["./no-such-solver"], "min", persistent=persistent)
    with pytest.raises(ProblemError, match=r"`./no-such-solver` cannot be started: .*No such file"):
        problem.solve(np.ones(3))


def test_a_wrong_argument_is_named():
    with pytest.raises(InvalidInputError, match="`command` must be a list of arguments"):
        CommandProblem("solver --fast", "min")
    with pytest.raises(ProblemError, match="`sense` of CommandProblem"):
        CommandProblem(["solver"], "less")
    with pytest.raises(InvalidInputError, match="no decision to score"):
        pick(one_call=True, objective=lambda z, y, context: 0.0)
    with pytest.raises(InvalidInputError, match=r"context for a program must be.*got a object"):
        pick().solve(np.ones(3), object())
    odd = pick('print(\'{"objective": "much"}\')')
    with pytest.raises(ProblemError, match="`objective` must be a number, got 'much'"):
        odd.objective(0, np.ones(3))


WRAPPER = """
import subprocess, sys
program = subprocess.Popen([sys.executable, "-S", "-E", "-c", {program!r}])
print(program.pid, file=open({pid_file!r}, "w"), flush=True)
sys.exit(program.wait())
"""


def wrapped(program, pid_file, **options):
    """A program that another one starts, as a shell script does; its number goes into a file."""
    return pick(WRAPPER.format(program=program, pid_file=str(pid_file)), **options)


def number_in(pid_file):
    """Return the number of the program, None if its wrapper was killed before it started one."""
    text = pid_file.read_text() if pid_file.exists() else ""
    return int(text) if text else None


@FORMS
def test_a_timeout_ends_a_wrapper_script_and_the_program_it_started_at_once(persistent, tmp_path):
    problem = wrapped(PROGRAM, tmp_path / "pid", persistent=persistent, timeout=1.0)
    began = time.monotonic()
    with pytest.raises(ProblemError, match="took longer than its timeout of 1 second"):
        problem.solve(np.ones(3), {"hang": True})
    assert time.monotonic() - began < 10  # the program sleeps for 60 seconds
    assert has_ended(number_in(tmp_path / "pid"))


@pytest.mark.slow
def test_a_wrapper_script_that_is_no_longer_needed_ends_with_its_program(tmp_path):
    problem = wrapped(PROGRAM + "time.sleep(60)", tmp_path / "pid", persistent=True)
    pid_of(problem)
    del problem
    gc.collect()
    assert has_ended(number_in(tmp_path / "pid"))


@pytest.mark.skipif(not hasattr(os, "setsid"), reason="needs sessions")
@FORMS
def test_a_timeout_does_not_wait_for_a_program_that_left_the_group(persistent, tmp_path):
    problem = wrapped(
        "import os; os.setsid()\n" + PROGRAM, tmp_path / "pid", persistent=persistent, timeout=1.0
    )
    began = time.monotonic()
    with pytest.raises(ProblemError, match="took longer"):
        problem.solve(np.ones(3), {"hang": True})
    assert time.monotonic() - began < 10
    if pid := number_in(tmp_path / "pid"):
        os.kill(pid, signal.SIGKILL)


@FORMS
def test_output_that_is_not_utf_8_is_an_error_and_not_a_hang(persistent):
    program = (
        'import sys; sys.stdin.readline(); sys.stdout.buffer.write(b\'{"decision": "\\xff"}\\n\')'
    )
    problem = pick(program, persistent=persistent)
    with pytest.raises(ProblemError, match=r"must print JSON in UTF-8, got '.*xff"):
        problem.solve(np.ones(3))
    odd = pick(
        "import sys; sys.stderr.buffer.write(b'caf\\xe9'); sys.exit(3)", persistent=persistent
    )
    with pytest.raises(ProblemError, match="exit code 3\\. It wrote: caf\ufffd"):
        odd.solve(np.ones(3))


@FORMS
def test_an_interrupted_call_ends_its_program(persistent, tmp_path):
    problem = wrapped(PROGRAM, tmp_path / "pid", persistent=persistent)

    def interrupt(*_):
        raise KeyboardInterrupt("stop")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt, match="stop"):
            problem.solve(np.ones(3), {"hang": True})
    finally:
        signal.signal(signal.SIGALRM, before)
    assert has_ended(number_in(tmp_path / "pid"))


def test_a_program_that_closes_its_output_and_runs_on_is_an_error_and_not_a_hang():
    problem = pick("import os, time; os.close(1); time.sleep(60)", persistent=True)
    with pytest.raises(ProblemError, match="ended with exit code"):
        problem.solve(np.ones(3))
