# Everything from nothing but Python 3.11+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo
LOWEST := .venv-lowest
EMPTY := .venv-wheel
QUICK := --quiet --numprocesses 2 --dist worksteal -m 'not slow and not browser and not dask' tests

.PHONY: demo quick test docs check wheel lowest lint coverage bench mutants clean

demo: $(DEMO)  ## the main job: what the learner gains in a knapsack and on a shortest path
	$(BIN)/lodl demo

quick: $(READY)  ## the library's quick tests, to run while you work
	$(BIN)/pytest $(QUICK)

test: lint  ## what CI runs: lint, types, import layers, tests
	$(BIN)/pytest --numprocesses 2 --dist worksteal -m 'not alone'
	$(BIN)/pytest -m alone tests/oracle

docs: $(READY)  ## the site, docs/_build/html/index.html; its examples run while it is built
	$(BIN)/sphinx-build -q -W --keep-going -j 2 docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

check: test wheel  ## all of it: the tests, and both packages as they would be published

wheel:  ## builds both packages and installs them into an empty environment
	$(PYTHON) -m venv --clear $(EMPTY)
	$(EMPTY)/bin/pip wheel --quiet --no-deps --wheel-dir $(EMPTY)/wheels . ./benchmarks
	$(EMPTY)/bin/pip install --quiet -c constraints.txt $(EMPTY)/wheels/lodl-*.whl
	cd $(EMPTY) && bin/python -c 'import lodl; print("lodl", lodl.__version__)'
	$(EMPTY)/bin/pip install --quiet -c constraints.txt 'lodl[cli]'  # the wheel above, and the packages of this extra
	$(EMPTY)/bin/pip install --quiet --no-deps $(EMPTY)/wheels/lodl_benchmarks-*.whl
	cd $(EMPTY) && bin/lodl --help

lowest:  ## the quick tests of the library with the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(LOWEST)/bin/pip install --quiet -c constraints-lowest.txt --editable '.[all]' --group test
	# Old packages next to new ones raise deprecation warnings, so warnings are no errors here.
	$(LOWEST)/bin/pytest $(QUICK) --override-ini filterwarnings=default --disable-warnings

lint: $(READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/tests  # by itself: its modules have the names of the library's tests
	$(BIN)/lint-imports --no-cache --no-logo

coverage: $(READY)  ## lines and branches that no test reaches; worker processes are not measured
	$(BIN)/coverage run -m pytest --quiet -m 'not browser' tests
	$(BIN)/coverage report --skip-covered --show-missing

bench: $(READY)  ## every speed claim, as ratios in one run
	@for script in speed/*.py; do echo; echo "== $$script"; $(BIN)/python $$script || exit 1; done

mutants: $(READY)  ## faults put into the code that chooses and reports: do the tests find them?
	$(BIN)/python tests/mutants.py

# Two stamps in one environment: the demo needs neither torch nor solvers other than HiGHS.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("lodl needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(BIN)/pip install --quiet -c constraints.txt --editable '.[cli,report]'
	touch $@

$(READY): $(DEMO) benchmarks/pyproject.toml
	$(BIN)/pip install --quiet -c constraints.txt --editable '.[all,onnx,mlflow]' --editable ./benchmarks --group dev --group docs
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(EMPTY)
