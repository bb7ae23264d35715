# Everything runs in a virtual environment of its own, made on first use from pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DOCS := $(VENV)/.ready-docs

SHARE := 1
TORTURE := kill faults damage hostile forget states

.PHONY: demo test test-browser torture lint bench tables pictures docs clean

demo: $(READY)  ## four learners on MNIST-Rotations, a table and a picture, in less than two minutes
	@$(BIN)/python -m recollect.lab.demo

test: lint  ## lint, types, layers, then every test and documented example
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist loadfile

test-browser: $(READY)  ## the report in a headless Chromium, which is installed if there is none
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[browser]"
	command -v chromium || $(BIN)/python -m playwright install --with-deps chromium || apt-get install --yes chromium
	RECOLLECT_BROWSER=needed $(BIN)/python -m pytest -q -m browser

torture: $(READY)  ## the durable file at length: 10,000 kills, 100,000 damages and so on; SHARE=0.1 for a tenth of it
	RECOLLECT_TORTURE=$(SHARE) $(BIN)/python -m pytest -q --timeout 0 $(addprefix tests/test_,$(addsuffix .py,$(TORTURE)))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(READY)  ## speed, as ratios
	for name in packing memory entropy replay gem codec commit checkpoint; do $(BIN)/python -m benchmarks.$$name || exit 1; done

tables: $(READY)  ## the tables of README and docs from the recorded runs
	$(BIN)/python -m recollect.lab.tables

pictures: $(READY)  ## the pictures of the docs, from a codec that is trained for them; some minutes
	$(BIN)/python -m recollect.lab.illustrations

docs: $(READY_DOCS)  ## the site of the docs, in site/
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet

$(READY_DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) recollect-demo site
