# Everything starts here; only Python (>= 3.11) and make are assumed. `make help` lists the targets.

PYTHON ?= python3
WORKERS ?= 2
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# A stamp is older than pyproject.toml exactly when the installed dependencies may be out of date.
STAMP := $(VENV)/.stamp

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint types contract docs format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /: /'

$(STAMP)-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "optdyn needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1)." \
	       "Name another one: make demo PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' lacks the venv module; install it (Debian and Ubuntu: python3-venv) and try again." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(STAMP)-viz: $(STAMP)-venv pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[viz]'
	@touch $@

$(STAMP)-dev: $(STAMP)-venv pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,viz,mjx]'
	@touch $@

$(STAMP)-docs: $(STAMP)-venv pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

demo: $(STAMP)-viz ## swing up the acrobot with joint limits; plot, animation and numbers go to out/
	$(BIN)/optdyn solve acrobot --variant joint_limits \
	  --plot out/acrobot.png --animate out/acrobot.gif --json out/acrobot.json

test: $(STAMP)-dev ## the default tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

test-slow: $(STAMP)-dev ## the tests marked slow
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'slow and not gpu' $(PYTEST_ARGS)

lint: $(STAMP)-dev ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)-dev ## rewrite files the way `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)-dev ## type check
	$(BIN)/pyright --pythonpath $(BIN)/python

contract: $(STAMP)-dev ## who may import whom
	$(BIN)/lint-imports

docs: $(STAMP)-docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove everything that was made here
	rm -rf $(VENV) build dist site out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
