# Everything happens in .venv; nothing outside this folder is changed.
# Another Python: make test PYTHON=python3.12

PYTHON ?= python3
PYTEST_ARGS ?=
APP_ARGS ?=
BENCH_ARGS ?=
ARENA_ARGS ?= --out docs $(if $(SIGMASCALE_SETS),--audit "$(SIGMASCALE_SETS)")

VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
NEWEST := .venv-newest
OUT := demo-output
SITE := docs/_build/html
EMPTY := .venv-empty
ARENA := .venv-arena
CLIENTS := .venv-clients
SCHEMA := $(BIN)/check-jsonschema --builtin-schema
BENCH_OUT := bench-output
STUDIES := benchmarks/studies
# what people fill in for a release
FORMS := pyproject.toml CITATION.cff CHANGELOG.md conda/recipe.yaml joss/paper.md

# One thread per worker: the test run has its own parallelism, and two workers
# whose numerical libraries start a thread per core get in each other's way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	VECLIB_MAXIMUM_THREADS=1 NUMEXPR_NUM_THREADS=1 POLARS_MAX_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help app demo test test-slow test-oldest test-newest test-clients \
	test-spark lint docs paper review filled-in release-check package-check bench \
	bench-gpu arena studies clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@echo "sigmascale: what make can do"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile \
		| awk -F'|' '{ printf "%-22s%s\n", $$1, $$2 }'

demo: $(VENV)/.installed-cli  ## install and run a complete example on built-in data
	@echo "== demo: a complete example on built-in data"
	@$(BIN)/sigmascale demo --out $(OUT)
	@echo "== demo: done; the output is in $(CURDIR)/$(OUT)"

app: $(VENV)/.installed-app  ## install and open the app in the browser
	@$(BIN)/sigmascale app $(APP_ARGS)

test: lint  ## install and run the checks: ruff, mypy, tests and doctests; minutes
	@if [ -n "$$SIGMASCALE_QM9" ]; then \
		echo "== test: pytest, with the QM9 data in $$SIGMASCALE_QM9"; \
	else \
		echo "== test: pytest; SIGMASCALE_QM9 is not set, so the QM9 tests are skipped"; \
	fi
	@$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)
	@echo "== test: done; ruff, mypy, tests and doctests passed"

test-slow: $(VENV)/.installed-dev  ## check statistical claims on small sets; minutes
	@echo "== test-slow: pytest, what statistics, examples and kills show"
	@$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow tests $(PYTEST_ARGS)
	@echo "== test-slow: done"

test-oldest: $(OLDEST)/.installed  ## install the oldest versions allowed and run the tests
	@echo "== test-oldest: pytest, with the lower bounds of pyproject.toml"
	@# newer packages that the old ones depend on deprecate what these call; ASE of old
	@# leaves its log of dynamics open
	@$(ONE_THREAD) $(OLDEST)/bin/python -m pytest -n 2 --dist loadgroup -W ignore::DeprecationWarning \
		-W "ignore:unclosed file:ResourceWarning" $(PYTEST_ARGS)
	@echo "== test-oldest: done"

test-newest:  ## install the newest versions of all dependencies and run the tests
	@echo "== test-newest: pytest, with the newest releases"
	@$(PYTHON) -m venv --clear $(NEWEST)
	@$(NEWEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(NEWEST)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager \
		--editable ".[app]" --group test
	@$(ONE_THREAD) $(NEWEST)/bin/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)
	@echo "== test-newest: done"

test-clients: $(CLIENTS)/.installed  ## install packages whose uncertainties are read, and run their tests
	@$(ONE_THREAD) $(CLIENTS)/bin/python -m pytest tests/clients $(PYTEST_ARGS)
	@echo "== test-clients: done"

test-spark: $(VENV)/.installed-dev  ## install PySpark and run its tests (needs Java)
	@command -v java >/dev/null || { \
		echo "Spark needs Java, which was not found."; \
		echo "On Debian and Ubuntu: sudo apt install default-jre-headless"; \
		exit 1; } >&2
	@$(BIN)/python -m pip install --quiet --editable ".[spark]"
	@SIGMASCALE_SPARK=1 $(ONE_THREAD) $(BIN)/python -m pytest -m spark $(PYTEST_ARGS)
	@echo "== test-spark: done"

lint: $(VENV)/.installed-dev  ## install and run the static checks only: ruff and mypy
	@echo "== lint: ruff check"
	@$(BIN)/python -m ruff check .
	@echo "== lint: ruff format --check"
	@$(BIN)/python -m ruff format --check .
	@echo "== lint: mypy"
	@$(BIN)/python -m mypy

docs: $(VENV)/.installed-docs  ## install and build the documentation, examples and all
	@echo "== docs: sphinx, with warnings as errors"
	@rm -rf docs/api/generated  # or names that are gone would stay
	@$(ONE_THREAD) $(BIN)/python -m sphinx -E -W --keep-going -n -q docs $(SITE)
	@echo "== docs: done; open $(CURDIR)/$(SITE)/index.html"

paper: $(VENV)/.installed-cli  ## compute the page of the paper anew; needs SIGMASCALE_QM9
	@$(ONE_THREAD) $(BIN)/python -m paper \
		--data "$${SIGMASCALE_QM9:?names no folder with the QM9 files}" --out paper/results

review: $(VENV)/.installed-dev  ## install and check the repository, and the forms of its files
	@$(BIN)/python -m repo_review .
	@$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	@$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	@$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@$(SCHEMA) vendor.github-issue-forms \
		$(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@$(SCHEMA) vendor.dependabot .github/dependabot.yml
	@$(SCHEMA) vendor.citation-file-format CITATION.cff

filled-in:
	@filled=true; \
	grep -q '^repository = "https://[^"]*[^/"]"' pyproject.toml || { filled=false; \
		echo "The address of the repository is unset: fill in, for example," \
			"repository = \"https://github.com/NAME/sigmascale\" in pyproject.toml."; }; \
	! grep -n FILL-IN $(FORMS) || { filled=false; \
		echo "Fill in these lines, too, and remove their comments FILL-IN."; }; \
	$$filled

release-check: filled-in  ## check that a release is filled in, then package-check
	@$(MAKE) --no-print-directory package-check

# What is installed is imported from elsewhere (-I), or the checkout would be found.
package-check: $(VENV)/.made  ## build wheel and sdist, install and try them; minutes
	@echo "== package-check: building into dist"
	@$(BIN)/python -m pip install --quiet "build>=1.2" "twine>=6.1"
	@rm -rf dist
	@$(PYTHON) -m venv --clear $(EMPTY)
	@$(BIN)/python -m build --quiet --wheel --outdir $(EMPTY)/from-checkout
	@$(BIN)/python -m build --quiet  # the wheel by way of the sdist
	@cmp dist/*.whl $(EMPTY)/from-checkout/*.whl
	@$(BIN)/python -m twine check --strict dist/*
	@echo "== package-check: the README's first lines, with the wheel in an empty environment"
	@$(EMPTY)/bin/python -m pip install --quiet dist/*.whl
	@awk '/^```python/ { on = 1; next } /^```/ && on { exit } on' README.md \
		| $(EMPTY)/bin/python -I -W error -
	@echo "== package-check: sigmascale demo, with the wheel and its extra cli"
	@$(EMPTY)/bin/python -m pip install --quiet "$$(ls dist/*.whl)[cli]"
	@$(EMPTY)/bin/sigmascale demo --out $(EMPTY)/demo
	@rm -rf $(EMPTY)
	@echo "== package-check: done; wheel and sdist are in $(CURDIR)/dist"

bench: $(VENV)/.installed-bench  ## install and measure speed (BENCH_ARGS=--quick: less)
	@echo "== bench: ratios of times within this run, and growth with the number of rows"
	@$(ONE_THREAD) $(BIN)/python benchmarks/speed.py --out $(BENCH_OUT)/speed.json \
		$(BENCH_ARGS)

arena: $(ARENA)/.installed  ## install rivals, compete, write docs/arena/*.csv; half an hour (ARENA_ARGS=--small: less)
	@$(ONE_THREAD) $(ARENA)/bin/python -m benchmarks.arena $(ARENA_ARGS)

studies: $(VENV)/.installed-bench  ## compute the tables in benchmarks/studies anew; hours
	@mkdir -p $(STUDIES)
	$(ONE_THREAD) $(BIN)/python benchmarks/verdicts.py --seed 4754 --workers 2 \
		--out $(STUDIES)/verdicts.md
	$(ONE_THREAD) $(BIN)/python benchmarks/monitor.py --streams 200 \
		> $(STUDIES)/monitor.md
	$(ONE_THREAD) $(BIN)/python benchmarks/paired.py > $(STUDIES)/paired.md
	$(ONE_THREAD) $(BIN)/python benchmarks/few_rows.py > $(STUDIES)/few_rows.md
	$(ONE_THREAD) $(BIN)/python benchmarks/honest_md.py --out $(STUDIES)/honest_md.md
	@echo "== studies: done; see $(STUDIES)"

bench-gpu:  ## measure speed on a GPU, with the packages at hand; else skip it
	@PYTHONPATH=src$${PYTHONPATH:+:$$PYTHONPATH} $(PYTHON) benchmarks/gpu.py --out $(STUDIES)/gpu.md $(BENCH_ARGS)

clean:  ## remove environments, all output, the built documentation and all caches
	rm -rf $(VENV) $(OLDEST) $(NEWEST) $(EMPTY) $(ARENA) $(CLIENTS) $(OUT) $(BENCH_OUT) docs/_build docs/api/generated build dist .coverage .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache htmlcov
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below keep a second run from installing again.

$(VENV)/.installed-cli: pyproject.toml $(VENV)/.made
	@echo "== install: sigmascale and its extra cli into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[cli]"
	@touch $@

$(VENV)/.installed-app: pyproject.toml $(VENV)/.made
	@echo "== install: sigmascale and its extra app into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[app]"
	@touch $@ $(VENV)/.installed-cli

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.made
	@echo "== install: sigmascale and its development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[app]" --group dev
	@touch $@ $(VENV)/.installed-cli $(VENV)/.installed-app

$(VENV)/.installed-docs: pyproject.toml $(VENV)/.made
	@echo "== install: sigmascale and what builds its documentation into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[cli]" --group docs
	@touch $@ $(VENV)/.installed-cli

$(VENV)/.installed-bench: pyproject.toml $(VENV)/.made
	@echo "== install: sigmascale and what it is measured against into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[cli]" --group bench
	@touch $@ $(VENV)/.installed-cli

# Of their own: opponents ask for older versions than we do.
$(ARENA)/.installed: pyproject.toml benchmarks/arena/requirements.txt
	@echo "== install: sigmascale and its opponents into $(ARENA)"
	@$(PYTHON) -m venv $(ARENA)
	@$(ARENA)/bin/python -m pip install --quiet --editable ".[cli]" \
		--requirement benchmarks/arena/requirements.txt
	@touch $@

# Of their own: some clients ask for older versions than the other tests.
$(CLIENTS)/.installed: pyproject.toml
	@echo "== install: sigmascale and packages whose uncertainties it reads into $(CLIENTS)"
	@$(PYTHON) -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(CLIENTS)/bin/python -m pip install --quiet --editable ".[cli]" \
		--group test --group clients
	@touch $@

# uv finds the lowest versions that fit together; those of the dependencies' own
# dependencies are the newest.
$(OLDEST)/.installed: pyproject.toml $(VENV)/.made
	@echo "== install: sigmascale and the oldest versions of all it needs into $(OLDEST)"
	@$(BIN)/python -m pip install --quiet "uv>=0.8"
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(BIN)/python -m uv pip install --quiet --python $(OLDEST)/bin/python \
		--resolution lowest-direct --editable ".[cli]" --group test
	@touch $@

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { \
		echo "$(PYTHON) was not found. sigmascale needs Python 3.11 or newer;"; \
		echo "install it, or name yours: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; \
		exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "sigmascale needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version)."; \
		echo "Name a newer one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; \
		exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) lacks the module venv or ensurepip, which make $(VENV)."; \
		echo "On Debian and Ubuntu: sudo apt install python3-venv"; \
		exit 1; } >&2
	@echo "== install: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"  # knows --group
	@touch $@
