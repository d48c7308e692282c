# From nothing to a recommendation: make bench. Needs Python 3.11 or later, git and make.

SHELL := bash -o pipefail
PYTHON ?= python3
GRID ?= $(or $(BACKWARD_STRATEGIES_GRID),quick)
VENV := .venv
BIN := $(VENV)/bin
CLIENTS := .venv-clients
RESULTS := out/results
# What README and the documentation say is from these measurements.
KEPT := results/epyc-2cores
# What `make matrix` runs, and with which releases.
TORCH ?= 2.9.1 2.11.0 2.13.0 2.15.0
INTERFACES = $(addprefix tests/,autograd builtin factors integration kernels linalg operations)
OPERATIONS = $(shell $(BIN)/python -c "from strategies import operations; print(*operations.measured())")
# What the kernel library is built from, when the package is installed.
NATIVE = $(wildcard CMakeLists.txt csrc/*.* csrc/*/*.*)
# Exit status 2 says that some cells failed; they are in the results as failed.
ASV_RUN := $(BIN)/asv run --environment existing:same --set-commit-hash HEAD
# A file for what asv has recorded: its own --skip-existing would leave out the cells that a slice leaves out.
RECORDED = .asv/recorded/$(GRID)-$(shell git rev-parse HEAD)
export BACKWARD_STRATEGIES_GRID := $(GRID)
# Byte code is written when a module is first imported: of all modules it takes as long as the installation.
INSTALL = $(BIN)/python -m pip install --no-compile -c constraints.txt
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help bench dashboard history policy stability peers programs clients test test-all matrix lint types modes docs readme release-check wheel clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

bench: $(VENV)/bench  ## measure the strategies and recommend one (GRID=tiny, quick, cpu or full; CONTINUE=1 after Ctrl-C)
	$(if $(CONTINUE),,rm -f $(RESULTS)/$(GRID).json)
	@trap 'printf "%s\n" "make bench GRID=$(GRID) CONTINUE=1 resumes"; exit 130' INT; \
	$(BIN)/backward-strategies measure $(RESULTS)/$(GRID).json
	$(BIN)/backward-strategies recommend --results $(RESULTS) --out out/recommendation.json
	$(BIN)/python -m plots --results $(RESULTS) --out out/figures
	@$(MAKE) --no-print-directory dashboard
	@echo
	@$(BIN)/python -m plots.inverse_or_solve --results $(RESULTS)
	@echo
	@echo "recommendation  out/recommendation.json"
	@echo "figures         out/figures"
	@echo "dashboard       .asv/html  ($(BIN)/asv preview; make history records the rest of its graphs)"
	@echo "measurements    $(RESULTS)"

dashboard: $(VENV)/bench  ## record a few graphs of this commit with asv, in some minutes, and publish the dashboard
	$(BIN)/python -m benchmarks.machine
	$(if $(CONTINUE),,rm -f $(RECORDED)/slice)
	@mkdir -p $(RECORDED)
	@trap 'printf "\n%s\n" "make bench GRID=$(GRID) CONTINUE=1 resumes"; exit 130' INT; \
	[ -e $(RECORDED)/slice ] || $(ASV_RUN) --bench "$$($(BIN)/python -m benchmarks.slice $(GRID))" || [ $$? -eq 2 ]
	@touch $(RECORDED)/slice
	$(BIN)/asv publish

history: $(VENV)/bench  ## record this commit with asv, all of GRID, and publish the dashboard (CONTINUE=1 after Ctrl-C)
	$(BIN)/python -m benchmarks.machine
	$(if $(CONTINUE),,rm -rf $(RECORDED))
	@mkdir -p $(RECORDED)
	@# asv writes results when a run ends: by a run for each operation, Ctrl-C costs one of them at most.
	@trap 'printf "\n%s\n" "make history GRID=$(GRID) CONTINUE=1 resumes"; exit 130' INT; \
	for operation in $(OPERATIONS); do \
		[ -e $(RECORDED)/$$operation ] && continue; \
		echo "== asv: $$operation, of $(OPERATIONS)"; \
		$(ASV_RUN) --bench "^$$operation\." || [ $$? -eq 2 ] || exit 1; \
		touch $(RECORDED)/$$operation; \
	done
	$(BIN)/asv publish

policy: $(VENV)/bench  ## measure what a policy rests on, and build one
	$(BIN)/backward-strategies measure out/policy/cpu.json --grid cpu --objective forward_backward
	$(BIN)/backward-strategies stability --cases 4000 --out out/policy/stability.json
	$(BIN)/backward-strategies policy build out/policy.json --results out/policy

stability: $(VENV)/bench  ## judge the stability of every strategy, and of "auto", on hard cases
	$(BIN)/backward-strategies stability --out $(RESULTS)/stability.json

peers: $(VENV)/peers  ## measure beside JAX and lineax
	$(BIN)/python -m benchmarks.peers $(RESULTS)/peers.json --grid full
	$(BIN)/python -m benchmarks.peers.stability $(RESULTS)/peer_stability.json

programs: $(VENV)/bench $(VENV)/peers  ## measure training steps of programs, and keep them for docs/programs.md; resumes
	$(BIN)/python -m benchmarks.training docs/data/programs

clients: $(CLIENTS)/clients  ## run test suites of libraries with torch's functions replaced, and write docs/clients.md (CONTINUE=1 after Ctrl-C)
	@$(CLIENTS)/bin/backward-strategies warmup
	$(if $(CONTINUE),,rm -rf out/clients/reports)
	$(CLIENTS)/bin/python -m tests.clients out/clients --page docs/clients.md

test: $(VENV)/dev  ## run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not slurm" $(PYTEST_OPTIONS)

test-all: test  ## run the tests, then the exhaustive matrices of cases, then what needs Slurm's daemons
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow tests
	$(BIN)/python -m pytest -m slurm tests/sweeps

lint: $(VENV)/dev  ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror csrc/*.cpp csrc/*/*.cpp csrc/*/*.hpp csrc/*/*.h upstream/*.h upstream/*/*.h upstream/*/*.cpp

types: $(VENV)/dev  ## check types
	$(BIN)/mypy

matrix: $(TORCH:%=matrix-%)  ## run the tests of interfaces with other releases of torch (TORCH="2.9.1 2.15.0", PYTHON=python3.13)

# In an environment for that release and that Python, with the other requirements as pinned, but those that releases of
# torch limit themselves. In a build folder of its own, which each environment empties.
matrix-%: ENVIRONMENT = $(VENV)-torch-$*-$(shell $(PYTHON) -c "import sysconfig; print(sysconfig.get_python_version())")
matrix-%:
	[ -e $(ENVIRONMENT) ] || $(PYTHON) -m venv $(ENVIRONMENT)
	grep -v '^torch==\|^triton==\|^setuptools==' constraints.txt >$(ENVIRONMENT)/constraints.txt
	$(ENVIRONMENT)/bin/python -m pip install -qq --no-compile -c $(ENVIRONMENT)/constraints.txt torch==$* scikit-build-core cmake ninja setuptools
	$(ENVIRONMENT)/bin/python -m pip install -qq --no-compile --no-build-isolation -C build-dir=build/matrix -c $(ENVIRONMENT)/constraints.txt -e '.[dev]' torch==$*
	$(ENVIRONMENT)/bin/backward-strategies warmup
	$(ENVIRONMENT)/bin/python -c "from strategies.kernels import extension; assert extension.load(), 'there is no fast path'"
	$(ENVIRONMENT)/bin/python -m pytest -n 2 --dist worksteal -m "not slow and not slurm" $(INTERFACES)

modes: $(VENV)/dev  ## run every operation in every mode of differentiation, and keep what is found for docs/modes.md
	$(BIN)/python -m pytest tests/linalg -n 2 --dist worksteal -m mode --modes-table docs/data/modes.json.gz

docs: $(VENV)/docs $(VENV)/bench  ## build the documentation into site, with tables and figures from results/ and docs/data/
	rm -rf out/docs
	mkdir -p out
	cp -r docs out/docs
	$(BIN)/backward-strategies recommend --results $(KEPT) --markdown out/docs/results.md >/dev/null
	$(BIN)/python -m plots.machines out/docs/machines.md --results results --figures out/docs/figures
	$(BIN)/python -m plots.inverse_or_solve out/docs/answer.md --results $(KEPT)
	$(BIN)/python -m plots.cuda out/docs/cuda.md
	$(BIN)/python -m plots.stability_table out/docs/stability.md --results $(KEPT)
	$(BIN)/python -m plots.programs out/docs/programs.md --full docs/data/programs-full --figures out/docs/figures
	$(BIN)/python -m plots.coverage out/docs/coverage.md
	$(BIN)/python -m plots.modes out/docs/modes.md
	$(BIN)/python -m plots.oracle out/docs/oracle.md --figures out/docs/figures
	$(BIN)/python -m plots.accuracy_study draw docs/data/accuracy.json.gz --figures out/docs/figures >/dev/null
	$(BIN)/python -m plots --results $(KEPT) --out out/docs/figures peers regret_distribution stability memory_of_tall \
		time_against_size time_against_error error_against_conditioning >/dev/null
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

readme: $(VENV)/bench  ## put what results/ says into README.md
	$(BIN)/backward-strategies recommend --results $(KEPT) --markdown README.md
	$(BIN)/python -m plots.inverse_or_solve README.md --results $(KEPT)
	$(BIN)/python -m plots --results $(KEPT) --out docs/figures inverse_over_solve

release-check: $(VENV)/dev lint types test-all docs  ## build and test what a release would upload, and list it
	rm -rf dist
	.ci/wheel dist
	@for file in dist/*.whl; do $(BIN)/python -m zipfile --list $$file; done
	@tar --list --gzip --file dist/*.tar.gz
	@ls -l dist

wheel: $(VENV)/dev  ## build a wheel for this platform and every Python, with the kernels
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## remove the environment and everything that was measured or drawn
	rm -rf $(VENV) $(VENV)-* .asv build out site

# A file for each extra that is installed; dev includes bench. Without isolation, in which each of them would
# compile all kernels again.
$(VENV)/%: pyproject.toml constraints.txt $(NATIVE) | $(VENV)/.build-tools
	@echo "installing the $* requirements and the package, whose kernels are compiled the first time: two minutes"
	@NINJA_STATUS="compiled %f of %t kernel files, %W left|" $(INSTALL) -v --no-build-isolation -e '.[$*]' 2>&1 \
		| tee $(VENV)/$*.log | { grep --line-buffered -o 'compiled [^|]* left' || :; } \
		|| { tail -40 $(VENV)/$*.log; exit 1; }
	@# Else calls on small matrices would take the path in Python, as they do without a compiler.
	@$(BIN)/backward-strategies warmup || :
	@touch $@

# setuptools builds the dashboard's scripts, which have no wheels.
$(VENV)/.build-tools: | $(BIN)/python
	@$(INSTALL) -qq scikit-build-core cmake ninja setuptools
	@touch $@

# Of its own: the libraries have requirements of their own.
$(CLIENTS)/clients: pyproject.toml constraints.txt $(NATIVE) tests/clients/constraints.txt
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install -qq --no-compile -c constraints.txt -c tests/clients/constraints.txt -e '.[clients]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
