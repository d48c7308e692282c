# From nothing to a recommendation: make bench. Needs Python 3.11 or later, git and make.

PYTHON ?= python3
GRID ?= $(or $(BACKWARD_STRATEGIES_GRID),quick)
VENV := .venv
BIN := $(VENV)/bin
RESULTS := .asv/results
SUITES = $(basename $(notdir $(shell grep -l suite.Measured benchmarks/*.py)))
export BACKWARD_STRATEGIES_GRID := $(GRID)

.PHONY: help bench policy test test-all lint types modes docs readme clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

bench: $(VENV)/bench  ## measure the strategies and recommend one (GRID=tiny, quick, cpu or full; CONTINUE=1 after Ctrl-C)
	$(BIN)/python -m benchmarks.machine
	@# asv writes results when a run ends: by a run for each suite, Ctrl-C costs one suite at most.
	@# Exit status 2 says that some cells failed; they are in the results as failed.
	@trap 'printf "\n%s\n" "suites that ended are in $(RESULTS); make bench GRID=$(GRID) CONTINUE=1 \
	measures the others"; exit 130' INT; \
	for suite in $(SUITES); do \
		echo "== suite $$suite, of $(SUITES)"; \
		$(BIN)/asv run --environment existing:same --set-commit-hash HEAD --bench "^$$suite\." \
			$(if $(CONTINUE),--skip-existing-successful) || [ $$? -eq 2 ] || exit 1; \
	done
	$(BIN)/asv publish
	$(BIN)/python -m plots --results $(RESULTS) --out out/figures
	$(BIN)/backward-strategies recommend --results $(RESULTS) --out out/recommendation.json
	@echo
	@echo "recommendation  out/recommendation.json"
	@echo "figures         out/figures"
	@echo "dashboard       .asv/html  ($(BIN)/asv preview)"
	@echo "measurements    $(RESULTS)"

policy: $(VENV)/bench  ## measure what a policy rests on, and build one
	BACKWARD_STRATEGIES_GRID=cpu $(BIN)/python -m benchmarks.rounds out/rounds/rounds.json
	$(BIN)/backward-strategies policy build out/policy.json --results out/rounds --objective forward_backward

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
