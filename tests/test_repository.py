"""The files around the code agree with each other: versions, commands, workflows, constraints."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BENCHMARKS = tomllib.loads((ROOT / "benchmarks" / "pyproject.toml").read_text())
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
JOB = WORKFLOW["jobs"]["checks"]
FORMS = ["bug.yml", "feature.yml"]
VERSION = PROJECT["project"]["version"]


def make_targets():
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def pins(name):
    """Returns the versions of a file of constraints."""
    lines = (ROOT / name).read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(package): Version(version) for package, version in pairs}


def lower_bounds():
    """Returns the lowest version of every package that the library allows."""
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [
        *PROJECT["project"]["dependencies"],
        *(line for name in extras for line in extras[name]),
    ]
    bounds = {}
    for requirement in map(Requirement, lines):
        for bound in requirement.specifier:
            if bound.operator == ">=":
                bounds[canonicalize_name(requirement.name)] = Version(bound.version)
    return bounds


# Versions --------------------------------------------------------------------------------------


def test_both_packages_have_one_version_and_need_each_other_in_it():
    assert BENCHMARKS["project"]["version"] == VERSION
    assert f"lodl[all]=={VERSION}" in BENCHMARKS["project"]["dependencies"]


def test_the_citation_names_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION


def test_the_changelog_begins_with_this_version_or_with_unreleased_changes_to_it():
    titles = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(title for title in titles if title != "Unreleased") == VERSION
    assert "Unreleased" not in titles[1:]


def test_supported_pythons_are_the_ones_that_ci_tests_and_the_policy_lists():
    name = "Programming Language :: Python :: 3."
    declared = PROJECT["project"]["classifiers"]
    supported = [line.split(" :: ")[-1] for line in declared if line.startswith(name)]
    tested = [
        row["python"] for row in JOB["strategy"]["matrix"]["include"] if row["target"] == "test"
    ]
    assert tested == supported
    assert PROJECT["project"]["requires-python"] == f">={supported[0]}"
    policy = (ROOT / "docs" / "reference" / "policy.md").read_text()
    assert f"| Python | {', '.join(supported)} |" in policy


# Commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "README.md", ".ci/run"])
def test_commands_that_a_document_names_exist(document):
    text = (ROOT / document).read_text()
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", text, re.MULTILINE))
    named = {first or second for first, second in named}
    assert "test" in named
    assert named <= make_targets()


def test_contributing_names_every_command():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for target in make_targets():
        assert f"make {target} " in text, target


def test_every_command_that_makes_no_file_is_phony():
    phony = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert set(phony) == make_targets()


# The CI workflow -------------------------------------------------------------------------------


def test_the_workflow_runs_every_kind_of_check_by_commands_that_exist():
    targets = {row["target"] for row in JOB["strategy"]["matrix"]["include"]}
    assert targets == {"lint", "test", "lowest", "docs", "wheel"}
    assert targets <= make_targets()
    assert "make ${{ matrix.target }} PYTHON=python" in [step.get("run") for step in JOB["steps"]]


def test_the_workflow_reads_only_and_pins_its_actions():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "group" in WORKFLOW["concurrency"]
    actions = [step["uses"] for step in JOB["steps"] if "uses" in step]
    assert len(actions) == 2
    for action in actions:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action), action


# Constraints -----------------------------------------------------------------------------------


def test_the_lowest_versions_are_the_lower_bounds():
    assert pins("constraints-lowest.txt") == lower_bounds()


def test_every_package_that_is_installed_by_name_is_pinned():
    groups = [line for lines in PROJECT["dependency-groups"].values() for line in lines]
    named = [Requirement(line).name for line in groups if isinstance(line, str)]
    assert {*map(canonicalize_name, named), *lower_bounds()} <= pins("constraints.txt").keys()


def test_pre_commit_needs_no_path_outside_the_repository_and_has_the_pinned_ruff():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for repo in hooks if repo["repo"] == "local" for hook in repo["hooks"]]
    assert entries
    assert all(entry.startswith(".venv/bin/") for entry in entries)
    [ruff] = [repo for repo in hooks if repo["repo"].endswith("/ruff-pre-commit")]
    assert Version(ruff["rev"]) == pins("constraints.txt")["ruff"]


# Issues and pull requests ----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_issue_forms_have_what_a_form_needs(name):
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text())
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    names = [field["id"] for field in fields]
    assert len(set(names)) == len(names)
    assert any(field.get("validations", {}).get("required") for field in fields)
    assert all(field["attributes"]["label"] for field in fields)
