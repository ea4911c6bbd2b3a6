# `make` lists the targets. `make lint test` is what everybody runs; CI adds test-all.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
HEAVY := .venv-heavy
FRAMEWORKS := .venv-frameworks
DATASETS := .venv-datasets
CLUSTER := .venv-cluster
DOCS := .venv-docs
CHROMIUM := $(or $(BYTEWELD_CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))
# Rust sources: a change here rebuilds the extension, nothing else does.
RUST := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -path crates/byteweld-wasm -prune -o \( -name '*.rs' -o -name 'Cargo.toml' \) -print 2>/dev/null)

# Cached bytecode saves each process that a test starts from compiling the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help quickstart build check test test-rust test-python test-all test-wheel test-transformers test-frameworks test-browser test-page test-cluster test-long test-harness fuzz-encode fuzz-files fuzz-cost fuzz-specials fuzz-rust mutate-seeds kill hostile-fs memory allocations soak lint format bench bench-train bench-encode bench-dataset bench-table docs pictures vocabularies page wheel clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

quickstart: $(VENV)/.built ## build, then train a first tokenizer on Python's own sources
	@$(BIN)/byteweld quickstart

build: $(VENV)/.built ## make .venv and build the release extension into it

# What needs no compiler, no browser and no long-running processes, with the fewest random examples.
check: $(VENV)/.built $(VENV)/.test $(VENV)/.lint ## lint Python and run the quick tests of modules, in less than a minute
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	BYTEWELD_EXAMPLES=0 $(BIN)/python -m pytest -q -n auto --dist worksteal tests/unit tests/property tests/test_*.py \
		-m "not slow and not browser and not heavy"

test: test-rust test-python ## run all tests with light peers, in minutes

test-rust:
	cargo test --workspace --quiet

test-python: $(VENV)/.built $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto --dist worksteal

test-all: docs test-wheel test-transformers test-browser test-page test-cluster test-harness ## build the docs; test the wheel, the heavy peers, the browser pages, Ray and a slice of the harness

test-wheel: $(VENV)/.built ## test the wheel in a clean environment
	scripts/test_wheel.sh

test-transformers: $(VENV)/.built $(HEAVY)/.installed ## test what transformers reads of our files
	PYTHONPATH=src $(HEAVY)/bin/python -m pytest -q tests/unit/formats/test_hf_config.py
	PYTHONPATH=$(CURDIR)/src $(HEAVY)/bin/python -m pytest -q tests/docs/test_examples.py \
		-k "quickstart or train or tokenizers or tasks" -o filterwarnings=default

test-frameworks: $(VENV)/.built $(FRAMEWORKS)/.installed ## test what training frameworks read of our datasets (7 GB of packages; not in CI)
	PYTHONPATH=src $(FRAMEWORKS)/bin/python -m pytest -q tests/frameworks -o filterwarnings=default

# Without it, as on machines for which Ray has no wheel, the tests are skipped.
test-cluster: $(VENV)/.built $(CLUSTER)/.installed ## test counting, training and datasets on Ray, Ray Data and Spark
	@if $(CLUSTER)/bin/python -c "import ray" 2> /dev/null; then \
		PYTHONPATH=$(CURDIR)/src $(CLUSTER)/bin/python -m pytest -q tests/cluster -o filterwarnings=default; \
	else \
		echo "skipped: tests on a cluster (Ray cannot be installed here)"; \
	fi

ifdef CHROMIUM
test-browser: $(VENV)/.built $(VENV)/.test $(VENV)/.browser ## test the studio and the reports in Chromium
	$(BIN)/python -m pytest -q -n 2 -m browser tests/studio tests/cli tests/docs
else
test-browser:
	@echo "skipped: the studio and the reports in a browser (no Chromium; install one, or set BYTEWELD_CHROMIUM)"
endif

# Without a compiler for WebAssembly, the browser's tests are skipped with a message.
ifdef CHROMIUM
test-page: $(VENV)/.built $(VENV)/.test $(VENV)/.browser ## build the static page and test it in Chromium
	cargo test --manifest-path crates/byteweld-wasm/Cargo.toml --target-dir target/wasm-lint --locked --quiet
	$(BIN)/python -m pytest -q -n 2 -m browser tests/page --timeout 1200
else
test-page:
	@echo "skipped: the static page in a browser (no Chromium; install one, or set BYTEWELD_CHROMIUM)"
endif

test-long: $(VENV)/.built $(VENV)/.test ## also run the slow tests, with many more random examples
	BYTEWELD_EXAMPLES=20 cargo test --workspace --quiet
	BYTEWELD_EXAMPLES=20 $(BIN)/python -m pytest -q -m "slow or not slow" --timeout 3600

# ARGS="--seconds 900 --seed 7", ARGS="--vocab 'hf/*'"; the same seed draws the same strings.
fuzz-encode: $(VENV)/.built $(VENV)/.test ## compare encoding with the reference and the peers on hostile input, for a minute or ARGS="--seconds 900"
	$(BIN)/python -m tests.fuzz $(ARGS)

# The rest of the harness; all take ARGS="--seconds N --seed S". docs/design/trust.md says what each attacks.
fuzz-files fuzz-cost fuzz-specials kill hostile-fs memory allocations soak: $(VENV)/.built $(VENV)/.test
	$(BIN)/python -m tests.harness.$(subst -,_,$(@:fuzz-%=%)) $(ARGS)

fuzz-files: ## load mutated files of every format, in watched child processes
fuzz-cost: ## measure hostile vocabularies, patterns and texts at n, 2n and 4n
fuzz-specials: ## check that untrusted spans never become special ids
kill: ## kill every writer before each of its file-system calls
hostile-fs: ## FIFOs, devices, links, full disks, closed descriptors
memory: ## measure peak memory by format, compression and policy, within a budget
allocations: ## run every operation with less memory than it needs
soak: ## 64 threads, forks, and the memory of millions of calls

mutate-seeds: $(VENV)/.built $(VENV)/.test ## break the readers of the seeds' formats, one check at a time, and see that a test notices
	$(BIN)/python -m tests.harness.mutants $(ARGS)

fuzz-rust: ## fuzz the scanners, SIMD tiers, encoder, trainer and readers of the engine
	cargo run --quiet --release --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz -- $(ARGS)

# A slice of each, with the same cases every time.
test-harness: $(VENV)/.built $(VENV)/.test
	@for name in files cost specials kill hostile_fs memory allocations soak; do \
		echo "== $$name" && $(BIN)/python -m tests.harness.$$name --seconds 10 || exit 1; \
	done
	@echo "== encode" && $(BIN)/python -m tests.fuzz --seconds 10
	@echo "== rust" && $(MAKE) --no-print-directory fuzz-rust ARGS="--seconds 3"

lint: $(VENV)/.built $(VENV)/.test $(VENV)/.lint ## check formatting, lints, types, stubs
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo fmt --manifest-path benches/recount/Cargo.toml -- --check
	cargo clippy --manifest-path benches/recount/Cargo.toml --target-dir target/recount --quiet -- -D warnings
	cargo fmt --manifest-path benches/stages/Cargo.toml -- --check
	cargo clippy --manifest-path benches/stages/Cargo.toml --target-dir target/stages --quiet -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml -- --check
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --quiet -- -D warnings
	cargo fmt --manifest-path crates/byteweld-wasm/Cargo.toml -- --check
	cargo clippy --manifest-path crates/byteweld-wasm/Cargo.toml --target-dir target/wasm-lint --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/python -m mypy.stubtest byteweld._native --concise

format: $(VENV)/.lint ## format the code in place
	cargo fmt --all
	cargo fmt --manifest-path benches/recount/Cargo.toml
	cargo fmt --manifest-path benches/stages/Cargo.toml
	cargo fmt --manifest-path fuzz/Cargo.toml
	cargo fmt --manifest-path crates/byteweld-wasm/Cargo.toml
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

bench: bench-train bench-encode ## benchmark training and encoding with the peers; appends to benches/record

# ARGS are run.py's: `make bench-train ARGS="--only mixed-1000MB"`, `ARGS=--quick`.
bench-train: $(VENV)/.built $(VENV)/.test $(VENV)/.bench ## benchmark counting and training, and show which targets are met
	$(BIN)/python benches/run.py count train --targets $(ARGS)

# The peers have a separate environment. `ARGS=--quick` takes three minutes, ARGS="--only zh-ja" runs a part.
bench-encode: $(VENV)/.built $(PEERS)/.installed ## benchmark encoding and decoding, and show which targets are met
	$(BIN)/python benches/run.py --definitions benches/encoding.toml --peers $(PEERS) --targets $(ARGS)

# ARGS="--only parquet --only gpt2"; about two hours, 8 GB of disk.
bench-dataset: $(VENV)/.built $(DATASETS)/.installed ## benchmark making datasets from a 1 GB corpus, and show which targets are met
	$(BIN)/python benches/dataset.py --peers $(DATASETS) $(ARGS)
	$(BIN)/python benches/targets.py --definitions benches/datasets.toml

bench-table: ## write the tables of README.md and docs/benchmarks.md, and their chart, from the newest record
	$(PYTHON) benches/table.py
	$(PYTHON) benches/speeds.py

# Warnings are errors, and so are links that lead nowhere and assets from elsewhere.
docs: $(VENV)/.built $(DOCS)/.installed ## write docs/reference/cli.md, and build the docs into site/
	$(BIN)/python -m byteweld.cli._docs
	@NO_COLOR=1 $(DOCS)/bin/zensical build --strict --clean
	@$(BIN)/python scripts/check_site.py

pictures: $(VENV)/.built $(VENV)/.test $(VENV)/.browser ## take the pictures of docs/ anew, in Chromium
	BYTEWELD_PICTURES=docs/pictures $(BIN)/python -m pytest -q -m browser tests/docs/test_pictures.py

vocabularies: $(VENV)/.built ## write docs/reference/vocabularies.md from the test data next to the clone
	$(BIN)/python scripts/make_vocabularies_table.py

page: $(VENV)/.built ## make dist/byteweld.html: the Tokens view as one static page, with the engine as WebAssembly
	$(BIN)/python scripts/make_page.py

wheel: $(VENV)/.tools ## build a wheel into dist/
	$(BIN)/maturin build --release --locked --out dist

clean: ## remove everything that was built
	rm -rf $(VENV) $(PEERS) $(HEAVY) $(FRAMEWORKS) $(DATASETS) $(CLUSTER) $(DOCS) target dist site .cache

# ---------------------------------------------------------------------------- the environment

.PHONY: environments
environments: $(HEAVY)/.installed $(CLUSTER)/.installed $(DOCS)/.installed # those of test-all

$(VENV)/.tools:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip 'maturin==1.16.0'
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(RUST)
	source $(BIN)/activate && PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 maturin develop --release --locked --quiet
	@touch $@

$(VENV)/.test: $(VENV)/.tools pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.tools pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --group lint
	@touch $@

$(VENV)/.bench: $(VENV)/.tools pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --group bench
	@touch $@

$(VENV)/.browser: $(VENV)/.tools pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --group browser
	@touch $@

$(HEAVY)/.installed: pyproject.toml
	$(PYTHON) -m venv $(HEAVY)
	$(HEAVY)/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	$(HEAVY)/bin/pip install --quiet --disable-pip-version-check --group heavy
	@touch $@

# One by one: a peer without a wheel for this machine is left out, and the bench says so.
$(PEERS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	@for peer in $$($(PYTHON) scripts/dependency_group.py peers); do \
		$(PEERS)/bin/pip install --quiet --disable-pip-version-check --only-binary=:all: $$peer \
			|| echo "not installed: $$peer"; \
	done
	@touch $@

$(DATASETS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DATASETS)
	$(DATASETS)/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	$(DATASETS)/bin/pip install --quiet --disable-pip-version-check --group datasets-bench
	@touch $@

$(CLUSTER)/.installed: pyproject.toml
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	@$(CLUSTER)/bin/pip install --quiet --disable-pip-version-check --group cluster \
		|| echo "not installed: the group cluster of pyproject.toml"
	@touch $@

$(DOCS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --group docs
	@touch $@

# One by one: the tests of a framework that cannot be installed here are skipped, and say so.
$(FRAMEWORKS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(FRAMEWORKS)
	@for package in $$($(PYTHON) scripts/dependency_group.py frameworks); do \
		$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check $$package \
			|| echo "not installed: $$package"; \
	done
	@touch $@
