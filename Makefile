# `make demo` and `make test` set everything up: a virtual environment, the dependencies, Kafka's jars.
# Needed on the machine: Python >= 3.11 and Java >= 17. `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
# Options for the program behind the target: make demo ARGS=--keep, make test ARGS="-k admission"
ARGS ?=
# Sizes reach the programs through the environment: make bench RECORDS=200000, make crash KILLS=5 RECORDS=20000, make soak MINUTES=5

# Where it is set, every process compiles all that it imports: nearly 2 s CPU for each of hundreds that tests and demo start.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
DEMO_READY := $(VENV)/demo-ready
READY := $(VENV)/ready
RELEASE_READY := $(VENV)/release-ready
# Empty: the newest packages that the lower bounds of pyproject.toml allow, as users get them. LOCKED=1: those of
# requirements-dev.txt, to build an old commit as it was then.
LOCKED ?=
EXTRAS := target,worker,traces,sql,s3,msk,plot,dev
LOCK := requirements-dev.txt
# What the Dockerfile installs, in the same versions: packages, and what builds them.
IMAGE_EXTRAS := target worker traces sql s3 msk
LOCK_AS_DEV = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --quiet --no-config \
  --default-index https://pypi.org/simple --custom-compile-command "make lock" --constraint $(LOCK)

.DEFAULT_GOAL := help
.PHONY: demo quick unit test slow soak bench crash faults cluster-faults pauses lint types docs docs-site pictures jars lock release clean help

# The archives of Java's classes that `jars` makes cost more than they save at a first start.
demo: $(DEMO_READY) ## see it work: broker, target, an order stream, the sink, and the proof
	$(BIN)/python -m parquet_sink.addons.devkit.jars > /dev/null
	$(BIN)/parquet-sink demo $(ARGS)

unit: $(READY) ## unit tests only: no network, no Java; about three minutes on 2 cores
	$(BIN)/python -m pytest -n 2 --dist loadfile tests $(ARGS)

quick: $(READY) ## the unit tests of what differs from main, the nearest first, 30 s at most on 2 idle cores
	@$(BIN)/python -m tests.quick $(ARGS)

# Four processes, on 2 cores too: three wait for what they started, and one computes unit tests; each more costs 25 s of
# CPU. What the tests of a file share is made once; integration/conftest.py says which files come first, and to whom.
test: jars ## unit and integration tests
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder tests integration $(ARGS)

soak: jars ## an hour of mixed faults at half of the peak load: nothing lost, memory and files flat; MINUTES=
	$(BIN)/python -m integration.soak $(ARGS)

slow: jars ## tests that take long: 20,000 lives, all examples of property tests, crashes of everything at once
	THOROUGH=1 $(BIN)/python -m pytest -n 2 --dist loadfile tests $(ARGS)
	THOROUGH=1 $(BIN)/python -m pytest -m "slow or in_turn" tests/life integration $(ARGS)

bench: jars ## throughput, CPU, memory, freshness; parts by ONLY=; sizes by RECORDS=; MODE=raw; TARGET=directory or s3
	$(BIN)/python -m integration.bench $(ARGS)

crash: jars ## kill -9 under load, checked by an oracle; sizes by KILLS= and RECORDS=; MODE=raw, ARCHIVE=required|behind, TARGET=s3
	$(BIN)/python -m integration.crash $(ARGS)

faults: jars ## every fault of docs/explanation/reliability.md, judged by the oracle; parts by FAULTS=http,disk, rows by ONLY=
	$(BIN)/python -m integration.faults $(ARGS)

cluster-faults: jars ## three workers of a group are killed, frozen, cut off and stopped under load; MINUTES=, SEED=, CONNECTORS=, INTERVAL_MS=, CLIENTS=, PAUSE_S=
	$(BIN)/python -m integration.cluster_faults $(ARGS)

pauses: jars ## workers of groups are paused 1,000 times: uploads that began after their lease; PAUSES=, SCENES=, SEED=
	$(BIN)/python -m integration.cluster_faults.pauses

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy --strict
	$(BIN)/mypy

docs: $(READY) ## write the pages of docs/reference that are made of tables of keys, of parsers and of declared figures
	$(BIN)/python -m parquet_sink.connectors.documentation > docs/reference/configuration.md.new
	mv docs/reference/configuration.md.new docs/reference/configuration.md
	$(BIN)/python -m parquet_sink.cli.documentation > docs/reference/cli.md.new
	mv docs/reference/cli.md.new docs/reference/cli.md
	$(BIN)/python -m parquet_sink.worker.metrics.documentation > docs/reference/metrics.md.new
	mv docs/reference/metrics.md.new docs/reference/metrics.md

docs-site: $(VENV)/docs-ready ## build the pages as a site with search, in site/; look: python3 -m http.server -d site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir site

pictures: $(READY) ## take the pictures of docs/how-to/page.md, in Chromium (apt-get install chromium, or CHROMIUM=)
	$(BIN)/python -m tests.addons.page.pictures docs/pictures

jars: $(READY) ## fetch Kafka's jars into the user's cache, and make the CDS archives of Java's classes there, once
	@$(BIN)/python -m parquet_sink.addons.devkit.jars > /dev/null
	@$(BIN)/python -m parquet_sink.addons.devkit.make_kafka_archive > /dev/null || true # only starts are quicker with it
	@$(BIN)/python -m parquet_sink.spark.make_archive > /dev/null || true # likewise

# PySpark comes as 450 MB of source, of which pip makes a wheel: stored, not deflated, it takes a third less. Where pip
# knows no such setting, the next command makes it as ever. Kafka's jars come while it fetches all other packages.
PIP := $(BIN)/python -m pip install --disable-pip-version-check
STORED := --config-settings=--build-option=--compression=stored --no-compile
PYSPARK := $(shell sed -n 's/^ *"\(pyspark[^"]*\)".*/\1/p' pyproject.toml)
JARS_MEANWHILE := $(if $(filter demo,$(MAKECMDGOALS)),$(BIN)/python -m parquet_sink.addons.devkit.jars > /dev/null &)

# The checks stand here and not in Python, because they tell what is missing before there is a Python to tell it.
$(DEMO_READY): pyproject.toml parquet_sink/kafka/native_reader.c parquet_sink/convert/json/native_json.c parquet_sink/convert/native_memory.h \
  parquet_sink/addons/formats/protobuf/native_protobuf.c
	@command -v "$(PYTHON)" > /dev/null || { \
	  echo "Python 3.11 or newer is needed, and $(PYTHON) was not found. Install it, or name one: make PYTHON=/path/to/python3" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1). Name another: make PYTHON=/path/to/python3" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. Install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; exit 2; }
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; command -v "$$java" > /dev/null || { \
	  echo "Java 17 or newer is needed, and $$java was not found. Install it (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME." >&2; exit 2; }; \
	  version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1); \
	  [ "$${version:-0}" -ge 17 ] || { \
	  echo "Java 17 or newer is needed, and $$java is version $${version:-unknown}. Install a newer one, or set JAVA_HOME." >&2; exit 2; }
	"$(PYTHON)" -m venv "$(VENV)"
	$(if $(LOCKED),$(PIP) --require-hashes -r $(LOCK),-$(PIP) $(STORED) '$(PYSPARK)')
	$(if $(LOCKED),,$(JARS_MEANWHILE)) $(PIP) $(if $(LOCKED),--no-deps -e .,-e '.[target]'); status=$$?; wait; exit $$status
	@touch $@

$(READY): $(DEMO_READY)
	$(if $(LOCKED),,$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]')
	@touch $@

$(RELEASE_READY): $(READY)
	$(if $(LOCKED),,$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS),release]')
	@touch $@

lock: $(RELEASE_READY) ## write requirements-*.txt: the newest of all packages, with hashes, for each version of Python
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --all-extras --upgrade --quiet \
	  --no-config --default-index https://pypi.org/simple --custom-compile-command "make lock" pyproject.toml -o $(LOCK)
	$(LOCK_AS_DEV) $(IMAGE_EXTRAS:%=--extra %) pyproject.toml -o requirements-image.txt
	echo setuptools | $(LOCK_AS_DEV) - -o requirements-build.txt

release: $(RELEASE_READY) ## sdist, wheel and SBOM of this commit in dist/, built twice and compared; uploads nothing
	@$(BIN)/python -m integration.release

$(VENV)/docs-ready: $(DEMO_READY)
	$(if $(LOCKED),,$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]')
	@touch $@

clean: ## remove the virtual environment and all caches of tools in this folder
	rm -rf "$(VENV)" build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .grimp_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
