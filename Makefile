# Everything below works in an empty checkout: the environment is made first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help quickstart test parity lint bench clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

quickstart: $(VENV)/.test ## Train, evaluate, export and search, all on this machine
	$(BIN)/python -m tf_samtone.trainers.quickstart_main --overwrite

# Two processes, each with whole files: those share compiled models.
test: $(VENV)/.test ## Run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

parity: $(VENV)/.test $(VENV)/.bench ## Run the tests against torch's libraries
	$(BIN)/python -m pytest -m parity

lint: $(VENV)/.lint ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" ./.ci/typecheck

bench: $(VENV)/.bench ## Run every program of benchmarks/
	set -e; for program in loss_memory step_memory gradient_cache training_speed; do \
	  $(BIN)/python "benchmarks/$$program.py"; done

clean: ## Remove the environment and the caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	  echo "Expected Python 3.11, 3.12 or 3.13. Received: $(PYTHON), $$($(PYTHON) --version 2>&1)." \
	       "Pass another one, e.g. make PYTHON=python3.12 test" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per extra: installed again only when the metadata changes.
$(VENV)/.%: setup.cfg pyproject.toml | $(BIN)/python
	@echo "Installing tf_samtone[$*] into $(VENV); the first time takes some minutes."
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@
