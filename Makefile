# One command sets up and runs the main job: make verify. One sets up and passes the tests: make test.

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that is new enough.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: verify test lint bench results clean

verify: $(VENV)/ready
	$(BIN)/elfmem-sim verify adr-0004

test: lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/ready
	$(BIN)/python tests/bench.py

# Rebuild the committed evidence (about two hours on two cores).
FIXED := --arm baseline --arm architecture_m --arm model_c --arm model_d
PUBLISHED := adr-0003/stable adr-0003/slow_drift adr-0003/regime_change adr-0003/quiet_burst \
	adr-0003/adversarial
results: $(VENV)/ready
	$(BIN)/elfmem-sim verify adr-0003 --seeds 1000 --out results/adr-0003 --overwrite
	$(BIN)/elfmem-sim verify adr-0004 --seeds 1000 --out results/adr-0004 --overwrite
	$(BIN)/elfmem-sim verify all --out results/audit --overwrite
	$(BIN)/elfmem-sim run $(PUBLISHED) $(FIXED) --seeds 100 --sweep horizon_days=1825,3650 \
		--out results/horizon --overwrite
	$(BIN)/elfmem-sim run adr-0001/baseline --arm v016_additive --arm v017_exploration \
		--arm v017_full --seeds 100 --sweep horizon_days=1825,3650 \
		--out results/horizon-scoring --overwrite
	$(BIN)/elfmem-sim run $(PUBLISHED) --arm architecture_m --arm model_c --arm model_d --seeds 200 \
		--sweep ego.alpha=0.02,0.1 --sweep ego.gain=0.5,2 --sweep ego.loss=0.1,1 \
		--sweep ego.decay_per_day=0.02,0.1 --out results/ego --overwrite
	$(BIN)/elfmem-sim verify adr-0004 --tier production --out results/consequences/0.20.0 --overwrite
	$(BIN)/elfmem-sim tune --budget full --out results/tuning --overwrite
	$(BIN)/elfmem-sim run adr-0004/regime_change --tier production --arm review \
		--arm results/tuning/conservative.yaml --arm results/tuning/balanced.yaml \
		--arm results/tuning/responsive.yaml --seeds 3 \
		--out results/tuning-production --overwrite

$(VENV)/ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "elfmem-sim needs Python 3.11 or newer; none was found." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist runs
