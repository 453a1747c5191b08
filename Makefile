# Two commands matter: `make demo` and `make test`. Each does all of its own set-up in .venv/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(shell find core/src -name '*.rs') core/Cargo.toml core/Cargo.lock
EXTRAS := server,kafka,postgres,fhir,audit,excel,stats
# One more than there are cores, since tests wait for brokers, browsers and disks; files in their order, which has the short ones last.
WORKERS = $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# Rust and a linker of the project's own, where the machine has none.
export PATH := $(CURDIR)/$(VENV)/toolchain:$(PATH)
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Hundreds of processes of the tests would compile the package anew where the machine asks for no bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo check test mutants stress bench lint format docs screenshots sbom hashes wheels vulnerabilities serve clean
.DEFAULT_GOAL := setup

setup: $(VENV)/.core $(VENV)/.deps

$(VENV)/.maturin: pyproject.toml constraints.txt
	@scripts/toolchain python $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet "maturin>=1.9,<2"
	@touch $@

# What the tests, the linters and the documentation need; the demo does without.
$(VENV)/.deps: $(VENV)/.maturin
	$(BIN)/python -m pip install --quiet --group tools
	$(BIN)/python -m pip install --quiet --no-deps --group peer
	@touch $@

$(VENV)/.core: $(VENV)/.maturin $(CORE)
	@scripts/toolchain rust $(VENV)
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet --release --extras $(EXTRAS)
	@touch $@

# Half a gigabyte that only the tests and the linters need.
$(VENV)/.spark: $(VENV)/.deps
	@test -f $@ || echo "fetching Spark for the tests (about 450 MB, once)"
	$(BIN)/python -m pip install --quiet --group spark
	@touch $@

# Only where it installs: the tests that need it are skipped elsewhere.
$(VENV)/.fuzz: $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --only-binary :all: --group fuzz || echo "atheris does not install here: fuzzing is left to hypothesis"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/reticent demo

test: setup $(VENV)/.spark $(VENV)/.fuzz
	scripts/install-test-services
	cargo test --quiet --manifest-path core/Cargo.toml --no-default-features --lib
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Old words in file names, names, prose and public names; functions named by a participle.
WORDS := $(BIN)/python scripts/words && $(BIN)/python scripts/words --participles

# For use after every change; it prints its time. No Spark, Kafka, PostgreSQL or browser.
QUICK := tests/unit tests/laws tests/docs/test_site.py --ignore tests/unit/reproduce
check: setup
	@started=$$(date +%s) && $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports \
	&& $(WORDS) \
	&& $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow" $(QUICK) \
	&& echo "make check: $$(($$(date +%s) - started)) s"

# Planted bugs: each must make the tests it names fail.
mutants: setup
	$(BIN)/python tests/mutants/run.py

# Many bit flips, torn writes, kills and restored backups; `make test` runs a few of each.
stress: setup
	RETICENT_FLIPS=1000 RETICENT_TORN=1000 RETICENT_FAULTS=0 RETICENT_KILLS=100 RETICENT_HTTP_KILLS=60 RETICENT_STREAM_KILLS=200 \
	RETICENT_EVOLVE_KILLS=100 RETICENT_RESTORES=100 RETICENT_HOSTILE=200 RETICENT_SERIES=1000 $(BIN)/python -m pytest -q -s \
	  tests/integration/test_bit_flips.py tests/integration/test_faults.py tests/integration/test_store_epochs.py tests/integration/test_mllp.py \
	  tests/integration/test_stream_crash.py tests/integration/test_evolve_store.py tests/service/test_streams_api.py tests/browser/test_hostile.py \
	  tests/property/test_series_intersections.py

bench: setup $(VENV)/.spark
	cargo bench --quiet --manifest-path core/Cargo.toml --no-default-features
	$(BIN)/python -m bench

lint: setup $(VENV)/.spark
	$(BIN)/ruff check .
	$(BIN)/ruff check --quiet --preview --select PLW1514 src   # without an encoding Windows reads and writes in its own
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(WORDS)
	cargo fmt --check --manifest-path core/Cargo.toml
	cargo clippy --quiet --manifest-path core/Cargo.toml --all-targets -- -D warnings
	cargo clippy --quiet --manifest-path core/Cargo.toml --all-targets --no-default-features -- -D warnings

format: setup
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	cargo fmt --manifest-path core/Cargo.toml

docs: setup
	$(BIN)/python scripts/reference
	$(BIN)/mkdocs build --strict

# Asks a vulnerability service, so it needs the network; a package that cannot be looked up is a failure.
vulnerabilities: setup
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

# Every package with its checksums, for `pip install --require-hashes -r requirements.txt`; made anew, never committed.
hashes: setup
	$(BIN)/python scripts/hashes constraints.txt > requirements.txt

# For Linux with glibc 2.28 and with musl, on x86_64 and aarch64, into dist/; the release workflow builds the others.
wheels: setup
	scripts/wheels $(VENV)

sbom: setup
	$(BIN)/python scripts/sbom > sbom.json

screenshots: setup
	$(BIN)/python scripts/screenshots docs/images

serve: $(VENV)/.core
	$(BIN)/reticent serve --demo

clean:
	rm -rf $(VENV) core/target site dist demo-out .pytest_cache .mypy_cache .ruff_cache
