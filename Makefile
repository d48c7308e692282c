# From nothing to a recommendation: make bench. Needs Python 3.11 or later, git and make.

PYTHON ?= python3
GRID ?= $(or $(BACKWARD_STRATEGIES_GRID),quick)
VENV := .venv
BIN := $(VENV)/bin
RESULTS := .asv/results
export BACKWARD_STRATEGIES_GRID := $(GRID)

.PHONY: help bench test test-all lint types modes docs readme clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

bench: $(VENV)/bench  ## measure the strategies and recommend one (GRID=tiny, quick or full)
	$(BIN)/python -m benchmarks.machine
	@# Exit status 2 says that some cells failed; they are in the results as failed.
	$(BIN)/asv run --environment existing:same --set-commit-hash HEAD || [ $$? -eq 2 ]
	$(BIN)/asv publish
	$(BIN)/python -m plots --results $(RESULTS) --out out/figures
	$(BIN)/backward-strategies recommend --results $(RESULTS) --out out/recommendation.json
	@echo
	@echo "recommendation  out/recommendation.json"
	@echo "figures         out/figures"
	@echo "dashboard       .asv/html  ($(BIN)/asv preview)"
	@echo "measurements    $(RESULTS)"

test: $(VENV)/dev  ## run the tests
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(VENV)/dev  ## run the tests, the exhaustive matrices of derivatives included
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/dev  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev  ## check types
	$(BIN)/mypy

modes: $(VENV)/dev  ## run every operation in every mode of differentiation, and write docs/modes.md
	$(BIN)/python -m pytest tests/linalg -n 2 -m mode --modes-table docs/modes.md

docs: $(VENV)/docs  ## build the documentation into site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

readme: $(VENV)/bench  ## put the results in RESULTS into README.md and docs/figures
	$(BIN)/backward-strategies recommend --results $(RESULTS) --dtype float64 --markdown README.md
	$(BIN)/python -m plots --results $(RESULTS) --out docs/figures

clean:  ## remove the environment and everything that was measured or drawn
	rm -rf $(VENV) .asv out site

# A file for each extra that is installed; dev includes bench.
$(VENV)/%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[$*]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
