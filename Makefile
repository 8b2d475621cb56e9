# `make` lists the targets. PYTHON=python3.13 chooses the Python of .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip --quiet --disable-pip-version-check
# Without bytecode the installation takes a third less time; the first import writes it.
INSTALL := $(PIP) install --no-compile --constraint constraints.txt
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint bench clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' Makefile

demo: .venv/.runtime  ## train, evaluate and report on the built-in corpus
	$(BIN)/python -m docjax.main --config=configs/graph_roberta.py
	@echo "The report: runs/demo/report/index.html"

test: .venv/.test  ## ruff and the whole test suite
	$(BIN)/ruff check
	$(BIN)/python -m pytest -q -rs --numprocesses=auto --dist=worksteal

lint: .venv/.test  ## ruff, its formatter, and types of the public face
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: .venv/.bench  ## speed and memory: encoder, encode, gradient cache, words
	$(BIN)/python -m benchmarks.encoder
	$(BIN)/python -m benchmarks.encode
	$(BIN)/python -m benchmarks.gradient_cache
	$(BIN)/python -m benchmarks.words

clean:  ## remove .venv, builds and caches; runs/ stays
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "docjax needs \
	Python 3.11 or newer: make PYTHON=python3.11")'
	@echo "Making .venv with $(PYTHON) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) --upgrade pip
	@touch $@

.venv/.runtime: .venv/.made pyproject.toml setup.py constraints.txt
	@echo "Installing docjax into .venv (half a minute) ..."
	@$(INSTALL) --editable .
	@touch $@

.venv/.test: .venv/.made pyproject.toml setup.py constraints.txt
	@echo "Installing docjax and its test tools into .venv (a minute) ..."
	@$(INSTALL) --editable '.[serve,test]'
	@touch $@ .venv/.runtime

.venv/.bench: .venv/.test
	@echo "Installing the baselines of the benchmarks into .venv ..."
	@$(INSTALL) --editable '.[test,baselines]'
	@touch $@
