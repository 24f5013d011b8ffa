# Chimera. `make help` lists what there is; every target sets up what it needs, once.

# The first Python that is new enough; choose another one with `make test PYTHON=/path/to/python3.13`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

BIN := .venv/bin
RUN_READY := .venv/.ready-all
DEV_READY := .venv/.ready-dev
SETUP := pyproject.toml constraints.txt scripts/setup.sh

.DEFAULT_GOAL := help
.PHONY: help setup run test lint fix docs bench pin clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV_READY) ## set up .venv with everything that contributors need

run: $(RUN_READY) ## watch an agent work under policy on a small repository (offline)
	@$(BIN)/chimera demo

test: $(DEV_READY) ## lint, strict types, import floors, tests with coverage, examples in the docs
	@$(BIN)/python -m scripts.check lint tests

lint: $(DEV_READY) ## style, strict types and import floors
	@$(BIN)/python -m scripts.check lint

fix: $(DEV_READY) ## format, and repair what can be repaired
	@$(BIN)/ruff check --fix --quiet .; $(BIN)/ruff format .

docs: $(DEV_READY) ## regenerate help and coverage tables in the docs, then run the examples in the docs
	@$(BIN)/python -m scripts.update_cli_docs
	@$(BIN)/python -m tests.core.loops.coverage_table
	@$(BIN)/python -m pytest -q tests/docs

bench: $(DEV_READY) ## measure start-up, steps, chains, redaction and more, and write docs/performance.md
	@$(BIN)/python -m benchmarks

pin: $(DEV_READY) ## write the versions that are installed into constraints.txt
	@$(BIN)/python -m scripts.pin

clean: ## remove .venv, caches and build products
	rm -rf .venv build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_READY): $(SETUP)
	@sh scripts/setup.sh all "$(PYTHON)"

$(DEV_READY): $(SETUP)
	@sh scripts/setup.sh dev "$(PYTHON)"
