# dibs: what can be done with this repository. `make` alone prints this list.

PYTHON ?= python3.11
PYTHON := $(shell command -v $(PYTHON) || command -v python3)
BIN := .venv/bin

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/ready ## see eight agents and two people share forty tasks, with kills and a zombie
	@$(BIN)/dibs demo

test: .venv/ready ## run every test
	@$(BIN)/pytest

quick: .venv/ready ## lint, and the tests that start no process: for every save
	@$(BIN)/ruff check --quiet --output-format concise .
	@DIBS_QUICK=1 $(BIN)/pytest

check: .venv/ready ## lint, format, types, layers, and whether the reference pages are current
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/reference.py --check

fix: .venv/ready ## repair what ruff can repair, then format
	@$(BIN)/ruff check --quiet --fix --output-format concise .
	@$(BIN)/ruff format --quiet .

coverage: .venv/ready ## run every test and report the lines of src that none executed
	@rm -rf .coverage && mkdir .coverage
	@$(BIN)/coverage run -m pytest $(TESTS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

mutants: .venv/ready ## break the code in every known way: a named test must go red for each
	@$(BIN)/python scripts/mutants.py

soak: .venv/ready ## new examples and the long forms of the fault tests: make soak MINUTES=10 [SEED=...]
	@$(BIN)/python scripts/soak.py $(or $(MINUTES),10) $(SEED)

bench: .venv/ready ## measure against a floor in the same run
	@$(BIN)/python bench/run.py

docs: .venv/ready ## write the reference pages and the output of the sessions anew
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python scripts/sessions.py

lock: ## pin the newest versions of what development needs: writes requirements.lock
	@test -x .venv/lock/bin/uv || { $(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip install --quiet uv; }
	@.venv/lock/bin/uv pip compile pyproject.toml --quiet --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-header --upgrade --output-file requirements.lock

.venv/ready: pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: help demo test quick check fix coverage mutants soak bench docs lock
