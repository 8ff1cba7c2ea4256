# The few commands that this project needs; `make` alone lists them.

VENV   := .venv
PYTHON := $(VENV)/bin/python
BIN    := $(VENV)/bin

# Programs below know nothing of this make's jobs.
unexport MAKEFLAGS MFLAGS
# Tests start the command line a thousand times: where the environment says so, each time compiles every module again.
unexport PYTHONDONTWRITEBYTECODE
# One interpreter for every build, so that checks, tests and the extension share what cargo has compiled.
export PYO3_PYTHON := $(abspath $(PYTHON))
# The bindings hold no logic and link only into Python; they are tested from there. No examples, which `make check`
# compiles, and no documentation tests, which there are none of.
TEST_RUST = cargo test --quiet --no-fail-fast --workspace --exclude iolab-bindings --lib --tests
# On all cores, though tests that change the machine still run one at a time: tests/conftest.py.
TEST_PYTHON = $(PYTHON) -m pytest -n auto --dist worksteal $(ARGS)

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.toml') Cargo.toml $(wildcard Cargo.lock) pyproject.toml
COUNTER_SOURCES := $(wildcard python/iolab/adapters/guest/counter/*)

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python check check-rust check-python check-built bench reproduce golden attack wheel clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/extension.stamp ## a one-minute A/B on this machine: table, verdicts, report
	@tools/setup.sh programs demo
	@$(BIN)/iolab demo $(ARGS)

test: $(VENV)/extension.stamp $(VENV)/dev.stamp ## all tests, Rust then Python (ARGS="-k name" goes to pytest)
	@tools/setup.sh programs test
	@# Both, whatever the first says: one run tells everything.
	@status=0; \
	$(TEST_RUST) || status=1; \
	$(TEST_PYTHON) || status=1; \
	exit $$status

test-rust: $(VENV)/runtime.stamp
	$(TEST_RUST)

test-python: $(VENV)/extension.stamp $(VENV)/dev.stamp
	$(TEST_PYTHON)

check: check-rust check-python check-built ## format, lints, types, stubs, citations, golden tables (make -j3 check is quicker)

check-rust: $(VENV)/runtime.stamp
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings

check-python: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PYTHONPATH=python $(BIN)/lint-imports
	$(PYTHON) -m pytest --noconftest --quiet tests/test_citations.py
	$(BIN)/mypy
	$(BIN)/mypy benches tools
	MYPYPATH=tests:attack:tools $(BIN)/mypy attack/*.py

check-built: $(VENV)/extension.stamp $(VENV)/dev.stamp
	$(PYTHON) -m mypy.stubtest iolab._native
	$(PYTHON) tools/golden.py --check

bench: $(VENV)/extension.stamp $(VENV)/dev.stamp ## measure against the peers, write docs/reference/benchmarks.* (ONLY=name for one)
	@tools/setup.sh programs bench
	$(PYTHON) benches/run.py $(ONLY)

reproduce: $(VENV)/extension.stamp ## ask the published figures of the model again, write published/results (ONLY=name for one)
	$(PYTHON) tools/reproduce.py $(ONLY)
	$(PYTHON) tools/golden.py

golden: $(VENV)/extension.stamp ## rewrite the deterministic tables (docs, tests/golden)
	$(PYTHON) tools/golden.py

attack: $(VENV)/extension.stamp $(VENV)/dev.stamp ## kill, damage, plant, hang and count what is wrong (ONLY=kills COUNT=50 SEED=1 CASE=7)
	@tools/setup.sh programs test
	$(PYTHON) attack/run.py $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) $(ARGS) $(ONLY)

wheel: $(VENV)/wheel.stamp ## wheels for x86-64 and arm64 in target/wheels, tried in an empty environment (ONLY=aarch64 for one)
	$(PYTHON) tools/build_wheels.py $(ONLY)

clean: ## remove what was built
	rm -rf target $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/runtime.stamp: requirements.txt
	@tools/setup.sh environment $<
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt $(VENV)/runtime.stamp
	@tools/setup.sh environment $<
	@touch $@

$(VENV)/wheel.stamp: requirements-wheel.txt $(VENV)/runtime.stamp
	@tools/setup.sh environment $<
	@touch $@

$(VENV)/extension.stamp: $(VENV)/runtime.stamp $(RUST_SOURCES) $(COUNTER_SOURCES)
	@tools/setup.sh extension
	@touch $@
