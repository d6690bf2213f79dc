# Everything a developer does here. `make` alone lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
# Written after the last package: an install that was interrupted is done again.
READY := .venv/.ready
PEERS := .tools/peers/.ready

.PHONY: help setup setup-tests demo check format test soak bench bench-quick clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what Floodmark needs: Java, and the Python packages into .venv
	@scripts/setup-system.sh python java
	@$(MAKE) -s $(READY)

setup-tests: setup ## The same, and the servers that the tests start
	@scripts/setup-system.sh postgres mariadb faketime

$(READY): pyproject.toml uv.lock scripts/setup-python.sh scripts/uv.sh
	@scripts/setup-python.sh
	@touch $@

demo: setup ## See the whole story on embedded parts
	@$(BIN)/floodmark demo

check: $(READY) ## Format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Rewrite the code in the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: setup-tests ## Check, then run all tests; ARGS="-k name" picks some
	@$(MAKE) check
	$(BIN)/pytest $(ARGS)

soak: setup-tests ## Load for a long time under writers and crashes, and prove that nothing is lost
	$(BIN)/python benchmarks/soak.py $(ARGS)

bench: setup-tests ## Measure first loads, small merges, bulk loads, what a commit costs on each store, quiet runs, table care, growing tables, memory
	$(BIN)/python benchmarks/first_load.py $(ARGS)
	$(BIN)/python benchmarks/merge.py
	$(BIN)/python benchmarks/bulk.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/quiet.py
	$(BIN)/python benchmarks/care.py
	$(BIN)/python benchmarks/care.py --target iceberg
	$(BIN)/python benchmarks/growth.py --sizes 200000 1000000
	$(BIN)/python benchmarks/memory.py --base 200000 --rows 1000000

bench-quick: setup-tests $(PEERS) ## Compare small changes with dlt, side by side; see docs/speed.md
	$(BIN)/python benchmarks/quick.py $(ARGS)

$(PEERS): scripts/setup-peers.sh scripts/uv.sh
	@scripts/setup-peers.sh
	@touch $@

clean: ## Remove all that can be made again
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
