import pytest

import lodl
from lodl.cli import _demo

pytestmark = pytest.mark.slow


@pytest.fixture
def demo(tmp_path, monkeypatch, run_lodl):
    monkeypatch.setattr(_demo, "_SIZES", {"web": (12, 3, 5), "path": (12, 3, 5)})
    monkeypatch.setattr(_demo, "_N_STEPS", 3)
    monkeypatch.setattr(_demo, "_N_TREES", 2)
    monkeypatch.chdir(tmp_path)
    return lambda: run_lodl("demo")


def test_the_demo_shows_what_was_gained_and_says_where_things_are(demo, tmp_path):
    code, said, err = demo()
    assert code == 0, err
    assert said.count(": 5 test instances, ") == 2
    assert "Regret per instance, in clicks per user: " in said.replace("\n", " ")
    assert max(map(len, said.splitlines())) <= 84
    for name, problem in [("web", "WebAdvertising"), ("path", "ShortestPath")]:
        assert f"report  lodl-demo/{name}.html\n" in said
        assert (tmp_path / "lodl-demo" / f"{name}.html").exists()
        assert f"model   lodl-demo/{name}\n" in said
        record = lodl.learning.load_result(tmp_path / "lodl-demo" / name)
        assert problem in record.problem
