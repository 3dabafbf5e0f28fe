# Two commands do all the set-up: `make run` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ottla-data
PORT ?= 9092
SOURCES := pyproject.toml setup.py $(shell find src -name "*.pyx" -o -name "*.pxi" -o -name "*.h")
COMPILED := $(shell sed -n 's/^    "\(ottla\.[a-z_.]*\)",$$/\1/p' setup.py | sed 's|\.|/|g; s|^|src/|; s|$$|.py|')

.PHONY: help setup peers run java broker test check compat bench fuzz soak clean

# One target after the other, whatever `-j` says: several of them install into the same place.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif

help: ## List what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 10

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Ottla needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python has no venv module: install it (Debian: apt-get install python3-venv)"; exit 1; }

# An editable install leaves out what pip does otherwise: compile the sources to byte code.
$(VENV)/.installed: $(SOURCES) $(COMPILED) | $(VENV)/bin/python
	@echo "Installing Ottla into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@$(BIN)/python -m compileall -q src/ottla
	@touch $@

# For development: compiling takes the processor, and packages and peers the network and the disk, so all three run
# side by side. The packages come without what is compiled; that lies beside the sources.
$(VENV)/.compiled: $(SOURCES) $(COMPILED) | $(VENV)/bin/python
	@echo "Compiling the hot modules ..."
	@mkdir -p build
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		> build/requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target build/tools -r build/requirements.txt
	@PYTHONPATH=build/tools $(BIN)/python setup.py build_ext --inplace > build/compile.log 2>&1 || \
		{ tail -n 40 build/compile.log; exit 1; }
	@touch $@

$(VENV)/.packages: pyproject.toml | $(VENV)/bin/python
	@echo "Installing what the tests need into $(VENV) (Spark alone is 450 MB) ..."
	@OTTLA_PURE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,compat,bench]'
	@touch $@

$(VENV)/.ready: $(VENV)/.compiled $(VENV)/.packages
	@$(BIN)/python -m compileall -q src/ottla
	@touch $(VENV)/.installed $@

setup: | $(VENV)/bin/python ## Install everything that development needs, peers included
	@$(MAKE) --silent --no-print-directory -j3 $(VENV)/.ready peers

peers: | $(VENV)/bin/python
	@$(BIN)/python -m tests.peers.install all

# The screen comes first: plain Python is enough for it. Spark, and what is compiled, come beside it.
$(VENV)/.installed-run: pyproject.toml | $(VENV)/bin/python
	@if [ ! $(VENV)/.installed -nt pyproject.toml ]; then \
		echo "Installing Ottla into $(VENV); Spark follows while the screen shows ..."; \
		OTTLA_PURE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[events]' || exit 1; fi
	@touch $@

run: java $(VENV)/.installed-run ## Show it all: broker, events, pipelines on Spark (ARGS="--for 60s --only campaign")
	@$(BIN)/python -m checkout.place
	@$(BIN)/ottla pipeline demo --data $(DATA) --port $(PORT) \
		--beside "$(BIN)/python -m checkout.prepare pipelines $(if $(findstring --page,$(ARGS)),page)" $(ARGS)

java:
	@command -v java >/dev/null || { echo "Spark needs Java 17 or newer: install it (Debian: apt-get install default-jre-headless)"; exit 1; }

broker: $(VENV)/.installed ## Start the broker alone, without Spark (DATA=ottla-data PORT=9092)
	@$(BIN)/ottla broker --data $(DATA) --port $(PORT)

test: setup ## Run the checks and all tests
	@$(BIN)/python -m tests.together

check: $(VENV)/.ready ## Lint, format, types, imports, tidiness
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q -p no:randomly tests/unit/test_tidy.py

compat: setup ## Client tests and clients' own suites on Ottla, then on Apache Kafka; writes docs/CLIENT_SUITES.md
	@$(BIN)/python -m pytest tests/compat/clients --target=ottla
	@$(BIN)/python -m pytest tests/compat/clients --target=kafka
	@$(BIN)/python -m tests.compat.suites

bench: setup ## Measure Ottla beside Apache Kafka; writes docs/BENCHMARKS.md
	@$(BIN)/python -m compileall -q src/ottla
	@$(BIN)/python -m bench

fuzz: setup ## A guided search beside an attack on a running broker, for FUZZ_SECONDS (600)
	@$(BIN)/python -m tests.fuzz

soak: setup ## The long form of the crash tests, and of the questions to Ottla and Apache Kafka
	@$(BIN)/python -m tests.soak
	@$(BIN)/python -m tests.compat.questions --long

clean: ## Remove what was built and installed
	@rm -rf $(VENV) .cache build
	@find src -name '*.so' -delete
