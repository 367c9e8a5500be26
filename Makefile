# Everything from nothing but Python 3.11+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test docs check lint bench mutants clean

demo: $(READY)  ## the main job: what the learner gains in Web Advertising and on a shortest path
	$(BIN)/lodl demo

test: lint  ## what CI runs: lint, types, import layers, tests
	$(BIN)/pytest --numprocesses 2 --ignore tests/oracle
	$(BIN)/pytest tests/oracle  # alone: they kill, stop and time workers

docs: $(READY)  ## the site, docs/_build/html/index.html; its examples run while it is built
	$(BIN)/sphinx-build -q -W --keep-going -j 2 docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

check: test  ## all of it: the tests, and both packages as they would be published
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir $(VENV)/wheel . ./benchmarks

lint: $(READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

bench: $(READY)  ## every speed claim, as ratios in one run
	@for script in speed/*.py; do echo; echo "== $$script"; $(BIN)/python $$script || exit 1; done

mutants: $(READY)  ## faults put into the code that chooses and reports: do the tests find them?
	$(BIN)/python tests/mutants.py

$(READY): pyproject.toml benchmarks/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("lodl needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(BIN)/pip install --quiet -c constraints.txt --editable '.[all]' --editable ./benchmarks --group dev --group docs
	touch $@

clean:
	rm -rf $(VENV)
