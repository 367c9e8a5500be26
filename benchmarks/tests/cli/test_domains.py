import re

from lodl_benchmarks import domains


def test_every_domain_is_listed_with_its_sizes_and_the_cost_of_a_call(run_lodl, monkeypatch):
    table = {name: domains.DOMAINS[name] for name in ("knapsack", "dispatch")}
    monkeypatch.setattr(domains, "DOMAINS", table)
    monkeypatch.setattr("lodl_benchmarks.cli._domains._N_CALLS", 2)
    code, out, _ = run_lodl("domains")
    assert code == 0
    assert re.search(r"knapsack +1000/250/1000 +16 +[\d.]+ [mµ]s +pack the items", out)
    assert re.search(r"dispatch +200/100/400 +24 +[\d.]+ [mµ]s +schedule the", out)


def test_one_domain_is_told_in_full(run_lodl):
    code, out, _ = run_lodl("domains", "unit_commitment")
    assert code == 0
    assert "Problem: `UnitCommitment`" in out


def test_an_unknown_domain_is_named(run_lodl):
    code, _, said = run_lodl("domains", "moon")
    assert code != 0
    assert "NAME must be one of linear_model" in said
