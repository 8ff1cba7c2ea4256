# The few commands that this project needs; `make` alone lists them.

VENV   := .venv
PYTHON := $(VENV)/bin/python
BIN    := $(VENV)/bin

# What does not wait for one another is made side by side. Programs below know nothing of this make's jobs.
MAKEFLAGS += --jobs=2
unexport MAKEFLAGS MFLAGS
# Tests start the command line a thousand times: where the environment says so, each time compiles every module again.
unexport PYTHONDONTWRITEBYTECODE
# One interpreter for every build, so that checks, tests and the extension share what cargo has compiled.
export PYO3_PYTHON := $(abspath $(PYTHON))
# The bindings link only into Python; they are tested from there. No examples, which `make check`
# compiles, and no documentation tests, which there are none of. In the same profile as the extension, of which it then
# uses all that cargo has compiled.
TEST_RUST = $(PROPERTIES) cargo test --quiet --no-fail-fast --workspace --exclude iolab-bindings --lib --tests $(LONG_RUST)
# Property tests draw the same cases each time, so that a change is never blamed for what was there before it;
# `make test-all` draws others.
PROPERTIES = PROPTEST_RNG_SEED=1
# More processes than CPUs: many tests wait for devices and programs. tests/conftest.py says which are alone. Threads of
# linear algebra would only spin beside them.
TEST_PYTHON = OPENBLAS_NUM_THREADS=1 $(PYTHON) -m pytest -n $(TEST_PROCESSES) --dist worksteal --durations=40 $(ARGS)
TEST_PROCESSES ?= $(shell echo $$(( $$(nproc) + 3 )))

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.toml') Cargo.toml $(wildcard Cargo.lock) pyproject.toml
COUNTER_SOURCES := $(wildcard python/iolab/machines/guest/counter/*)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-rust test-python test-both programs-demo programs-test programs-kernels \
        check check-rust check-python check-built bench reproduce golden attack wheel test-host clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/extension.stamp $(VENV)/runtime.stamp programs-demo ## a one-minute A/B on this machine: table, verdicts, report
	@$(BIN)/iolab demo $(ARGS)

test: ARGS += -m "not long and not source"
test: test-both ## tests, Rust and Python, in ten minutes (ARGS="-k name" goes to pytest)

test-all: PROPERTIES =
test-all: LONG_RUST = -- --include-ignored
test-all: test-both ## all tests: also attacks, clusters, kernels booted and built, stored reproductions, browsers
ifneq ($(filter test-all,$(MAKECMDGOALS)),)
test-both: programs-kernels
endif

# Both, whatever the first says: one run reports everything. Rust is compiled and tested beside the set-up of Python's
# tests and these, which wait more than they compute, and reports at the end.
test-both: $(VENV)/extension.stamp
	@status=0; \
	$(TEST_RUST) >target/rust-tests.txt 2>&1 & rust=$$!; \
	{ make --no-print-directory $(VENV)/dev.stamp programs-test && $(TEST_PYTHON); } || status=1; \
	wait $$rust || status=1; \
	grep -E '^(test result|error|failures|---- |thread )|panicked' target/rust-tests.txt; \
	[ $$status = 0 ] || echo "details of Rust's tests: target/rust-tests.txt"; \
	exit $$status

test-rust: $(VENV)/made.stamp
	$(TEST_RUST)

test-python: $(VENV)/extension.stamp $(VENV)/dev.stamp programs-test
	$(TEST_PYTHON)

# One after the other: only one can install at a time.
programs-kernels: programs-test
programs-demo programs-test programs-kernels: programs-%:
	@tools/setup.sh programs $*

check: check-rust check-python check-built ## format, lints, types, stubs, citations, golden tables

check-rust: $(VENV)/made.stamp
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo clippy --quiet --package iolab-bindings --no-default-features -- -D warnings

check-python: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	# Its cache knows nothing of modules that have come since.
	PYTHONPATH=python $(BIN)/lint-imports --no-cache
	PYTHONPATH=python $(PYTHON) -m pytest --noconftest --quiet $$(grep -l 'pytestmark = pytest.mark.source' tests/*.py)
	$(BIN)/mypy
	$(BIN)/mypy benches tools
	MYPYPATH=tests:attack:tools $(BIN)/mypy attack/*.py

check-built: $(VENV)/extension.stamp $(VENV)/dev.stamp
	$(PYTHON) -m mypy.stubtest iolab._native
	$(PYTHON) tools/golden.py --check

bench: $(VENV)/dev.stamp ## measure against the peers, write docs/reference/benchmarks.* (ONLY=name for one)
	@tools/setup.sh programs bench
	@tools/setup.sh extension release
	@rm -f $(VENV)/extension.stamp
	$(PYTHON) benches/run.py $(ONLY)

reproduce: $(VENV)/extension.stamp $(VENV)/runtime.stamp ## ask the published figures of the model again, write published/results (ONLY=name for one)
	$(PYTHON) tools/reproduce.py $(ONLY)
	$(PYTHON) tools/golden.py

golden: $(VENV)/extension.stamp $(VENV)/runtime.stamp ## rewrite the deterministic tables (docs, tests/golden)
	$(PYTHON) tools/golden.py

attack: $(VENV)/extension.stamp $(VENV)/dev.stamp ## kill, damage, plant, hang and count what is wrong (ONLY=kills COUNT=50 SEED=1 CASE=7)
	@tools/setup.sh programs test
	$(PYTHON) attack/run.py $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) $(ARGS) $(ONLY)

wheel: $(VENV)/wheel.stamp $(VENV)/extension.stamp ## wheels for x86-64 and arm64 in target/wheels, tried in an empty environment (ONLY=aarch64 for one)
	$(PYTHON) tools/build_wheels.py $(ONLY)

test-host: $(VENV)/wheel.stamp $(VENV)/extension.stamp ## a whole Debian under QEMU: the wheel is installed and tested there (SUITE=trixie WHEEL=file or built)
	@tools/setup.sh programs host
	$(PYTHON) tools/test_host.py $(if $(SUITE),--suite $(SUITE)) $(if $(WHEEL),--wheel $(WHEEL)) $(ARGS)

clean: ## remove what was built
	rm -rf target $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/made.stamp:
	@tools/setup.sh python
	@touch $@

$(VENV)/runtime.stamp: requirements.txt $(VENV)/made.stamp
	@tools/setup.sh environment $<
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt $(VENV)/made.stamp
	@tools/setup.sh environment $<
	@touch $@ $(VENV)/runtime.stamp

$(VENV)/wheel.stamp: requirements-wheel.txt $(VENV)/runtime.stamp
	@tools/setup.sh environment $<
	@touch $@

$(VENV)/extension.stamp: $(VENV)/made.stamp $(RUST_SOURCES) $(COUNTER_SOURCES)
	@tools/setup.sh extension dev
	@touch $@
