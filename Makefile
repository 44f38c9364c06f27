PYTHON ?= python3
PIP_ARGS ?=
BIN := .venv/bin
# One thread each: the arrays are small, and every core has a worker.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

.PHONY: help demo try test slow check bench docs clean

help:                ## what can be made
	@sed -n 's/^\([a-z]*\):[^#]*## /\1: /p' Makefile

demo: .venv/ready    ## convert a trained BERT to Flax and prove it identical
	$(BIN)/python examples/demo.py

try: .venv/ready     ## a folder, try, with the checkpoints that README and docs read
	$(BIN)/python -c 'from pathlib import Path; from parity_tests.house.pages import lay_out; lay_out(Path("try"))'

test: .venv/ready    ## the parity suite
	$(PYTEST)

slow: .venv/ready    ## its long tail, which CI runs too
	$(PYTEST) -m slow

check: .venv/ready   ## formatting, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready   ## timings beside the stock functions of both frameworks
	$(BIN)/python -m benchmarks.conversion
	$(BIN)/python -m benchmarks.run

docs: .venv/docs     ## the pages of docs, as a site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean --quiet

.venv/docs: .venv/ready
	$(BIN)/python -m pip install $(PIP_ARGS) --constraint constraints.txt --editable '.[docs]'
	touch $@

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Diptych needs Python 3.11 or newer, not " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(PIP_ARGS) --constraint constraints.txt --editable '.[test]'
	$(BIN)/python -m compileall -q diptych jax_impl torch_impl
	touch $@

clean:
	rm -rf .venv demo site try
