# Every target sets up what it needs: only Python >= 3.11, make and pip have to be there.
PYTHON ?= python3
VENV   ?= .venv
PYTEST_ARGS ?=
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --disable-pip-version-check --quiet

# Options of the conformance matrix, handed on only when they are set.
CONFORMANCE_ARGS = $(if $(ONLY),--only $(ONLY)) $(if $(SAMPLES),--samples $(SAMPLES)) $(if $(SEED),--seed $(SEED)) \
                   $(if $(SHARD),--shard $(SHARD)) $(if $(LIB),--lib $(LIB)) --jobs 2
# The published page is written by a full run only; a partial one must not replace it.
CONFORMANCE_HTML ?= $(if $(ONLY)$(SAMPLES)$(SHARD)$(LIB),build,docs)/conformance.html

.DEFAULT_GOAL := help
.PHONY: help demo test check pyright lowest surface format conformance conformance-errors conformance-reference programs mutants precision libraries bench docs gallery browser dist lock clean
.DELETE_ON_ERROR:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 30

# Some systems ship Python without ensurepip: then the pip that is there installs one into the environment.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "chainrule needs Python >= 3.11 (make PYTHON=python3.12 ...)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --quiet --python $(PY) install pip; }

# One stamp for each set of dependencies, so that a second call starts at once.
$(VENV)/.installed-%: pyproject.toml | $(PY)
	@echo "installing chainrule[$*] into $(VENV) ..."
	@$(PIP) install --editable '.[$*]'
	@touch $@

demo: $(VENV)/.installed-people ## differentiate, batch, train: each result checked against central differences
	@$(PY) examples/demo.py

test: $(VENV)/.installed-test ## the whole test suite (PYTEST_ARGS="-k name" for a part of it)
	$(PY) -m pytest -n 2 $(PYTEST_ARGS)

check: $(VENV)/.installed-test ## formatting, lint, types and the fast laws, in under a minute
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m chainrule.testing.surface --check
	$(PY) -m pytest -q -n 2 -m fast tests/laws

PYRIGHT = $(VENV)-pyright
pyright: ## the typed program under pyright, in an environment of its own (mypy is part of the suite)
	@test -x $(PYRIGHT)/bin/python || $(PYTHON) -m venv $(PYRIGHT)
	@$(PYRIGHT)/bin/python -m pip --disable-pip-version-check --quiet install numpy pyright
	$(PYRIGHT)/bin/python tests/typing/under_pyright.py

# The lowest versions that pyproject.toml allows, in an environment of their own.
LOWEST = numpy==2.0.2 scipy==1.15.0 llvmlite==0.45.0 ml_dtypes==0.6.0 opt_einsum==3.3.0 safetensors==0.4.3
lowest: ## the laws and the tests of the engine, the kernels and the doors to NumPy on the lowest versions of the dependencies
	@test -x $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	@$(VENV)-lowest/bin/python -m pip --disable-pip-version-check --quiet install $(LOWEST) torch==2.13.0 'pytest>=8.2' 'pytest-xdist>=3.6' 'hypothesis>=6.100' 'mpmath>=1.3' 'expecttest>=0.2.1' 'matplotlib>=3.8'
	PYTHONPATH=src $(VENV)-lowest/bin/python -m pytest -q -n 2 -p no:cacheprovider -m 'not long' tests/laws tests/engine tests/kernels tests/interop

surface: $(VENV)/.installed-test ## the stubs that type checkers and editors read, written from the declarations
	$(PY) -m chainrule.testing.surface

format: $(VENV)/.installed-test ## rewrite the sources in the house format
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

conformance: $(VENV)/.installed-test ## PyTorch's operator database as judge (ONLY= SAMPLES= SEED= SHARD= LIB=)
	@mkdir -p build
	$(PY) -m chainrule.testing.conformance $(CONFORMANCE_ARGS) --json build/conformance.json --html $(CONFORMANCE_HTML)

conformance-errors: $(VENV)/.installed-test ## its error inputs: each must raise and name the argument
	@mkdir -p build
	$(PY) -m chainrule.testing.conformance errors $(CONFORMANCE_ARGS) --json build/conformance-errors.json

conformance-reference: $(VENV)/.installed-test ## its reference inputs: values only
	@mkdir -p build
	$(PY) -m chainrule.testing.conformance reference $(CONFORMANCE_ARGS) --json build/conformance-reference.json

precision: $(VENV)/.installed-test ## the digits of functions and reductions against exact arithmetic, beside PyTorch's and SciPy's
	$(PY) -m chainrule.testing.precision reductions $(if $(ONLY),--only $(ONLY),--docs docs)
	$(PY) -m chainrule.testing.precision functions $(if $(ONLY),--only $(ONLY),--docs docs)

mutants: $(VENV)/.installed-test ## every rule of every op bent, one at a time: who notices? (ONLY= LIMIT=)
	$(PY) -m chainrule.testing.mutants $(if $(ONLY),--only $(ONLY)) $(if $(LIMIT),--limit $(LIMIT)) --jobs 2

programs: $(VENV)/.installed-test ## random mixed programs under every transform, failures made small (COUNT= SEED=)
	@mkdir -p build
	$(PY) -m chainrule.testing.programs --count $(or $(COUNT),1000) --seed $(or $(SEED),0) --jobs 2 --report build/programs.md

# Libraries written for PyTorch, in an environment of their own; without their dependencies, so that none brings another PyTorch.
LIBRARIES = $(VENV)-libraries
libraries: ## programs on libraries written for PyTorch, under PyTorch and under chainrule (ONLY=gpytorch)
	@test -x $(LIBRARIES)/bin/python || $(PYTHON) -m venv $(LIBRARIES)
	@$(LIBRARIES)/bin/python -m pip --disable-pip-version-check --quiet install numpy scipy llvmlite ml_dtypes opt_einsum safetensors torch==2.13.0
	@$(LIBRARIES)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps -r tests/libraries/requirements.txt
	$(LIBRARIES)/bin/python tests/libraries $(ONLY)

bench: $(VENV)/.installed-bench ## the budgets, side by side with the peers in one process (BENCH="engine ...")
	@mkdir -p build
	@$(PY) -m benchmarks $(BENCH); status=$$?; $(if $(BENCH),,$(PY) -m benchmarks.readme;) exit $$status

docs: $(VENV)/.installed-docs ## the site, under build/docs: pages, reference, gallery; a warning is an error
	@mkdir -p build
	PYTHONPATH=src:. $(PY) -m docs.site.build

gallery: $(VENV)/.installed-test ## every example of the gallery in full, each in under a minute
	$(PY) -m pytest -q -m long tests/people/test_gallery.py

# The browser itself does not come from pip: Debian's package chromium, or CHROMIUM=/path/to/it.
browser: $(VENV)/.installed-browser ## click through the built site in Chromium (make docs first), at two widths; screenshots in build/screenshots
	@test -f build/docs/index.html || $(MAKE) docs
	PYTHONPATH=src:. $(PY) -m docs.site.browser

dist: $(VENV)/.installed-release ## wheel and sdist, checked: metadata, type stubs, a gradient in an empty environment
	PYTHONPATH=src:. $(PY) -m docs.site.dist

lock: $(VENV)/.installed-release ## the versions that development runs on, in requirements/
	$(PY) -m piptools compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --extra test --extra docs --output-file requirements/dev.txt pyproject.toml

clean: ## remove the environment and everything that was generated
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-libraries $(VENV)-pyright build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
