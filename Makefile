# Every target describes itself: `make` prints the list.
.DEFAULT_GOAL := help
.PHONY: help setup engine run demo-report test test-busy test-fast lint types contracts check bench pictures snapshots sanitize wheel dist bundle bundle-test extras release site zipapp clean

PYTHON := .venv/bin/python
ARGS ?=
# What is compiled is kept: the tests start many Pythons.
unexport PYTHONDONTWRITEBYTECODE
# Two a core: tests of the interface wait half of their time until it rests.
WORKERS = $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Create the environment with everything that development needs, and bring the servers for the tests
	python3 -m venv .venv
	$(PYTHON) -m pip install -q -e '.[demo,dev]'
	bash tests/bring-servers.sh

engine: ## Build the compiled engine again, after a change of rtui/server/engine
	$(PYTHON) -m pip install -q --no-deps -e .

run: ## Browse the demo keyspace, or a server: make run ARGS='-h 10.0.0.5'
	$(PYTHON) -m rtui $(or $(ARGS),--demo)

test: ## Run all tests, as CI does
	$(PYTHON) -m pytest -q -n auto $(ARGS)

test-busy: ## Run all tests beside four busy loops, which shows what depends on the speed of the machine
	@loops=; trap 'kill $$loops' EXIT; \
	for _ in 1 2 3 4; do while :; do :; done & loops="$$loops $$!"; done; \
	$(PYTHON) -m pytest -q -n auto $(ARGS)

test-fast: ## Run the tests of every day in under two minutes: one server version, fewer examples, nothing slow
	$(PYTHON) -m pytest -q -n $(WORKERS) --fast $(ARGS)

sanitize: ## Test the engine as built for the address and thread sanitizers, feed it changed replies; needs gcc
	bash tests/sanitize.sh

lint: ## Lint, and check the format
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: ## Check the types
	$(PYTHON) -m mypy

contracts: ## Check that imports go one way and form no cycle
	.venv/bin/lint-imports

check: lint types contracts test-fast ## Everything to run before a commit

bench: ## Print rows of the measurements: make bench ARGS='inspection estimates'
	$(PYTHON) -m tests.bench.run $(ARGS)

demo-report: ## Write the earlier report of the demo again, after a change of reports or sample keys
	$(PYTHON) -m rtui report --demo --demo-day good --pace full --top 20 --no-registry --format json | gzip -9n > rtui/demo/.earlier.gz
	mv rtui/demo/.earlier.gz rtui/demo/earlier.json.gz

pictures: ## Take the screenshots of the README again
	$(PYTHON) screenshots/make.py

snapshots: ## Accept what the interface looks like now; look at the changed files before a commit
	$(PYTHON) -m pytest -q -n auto tests/snapshots --snapshot-update

wheel: ## Build dist/*.whl for this Python and platform
	rm -rf build dist/*.whl
	CFLAGS=-g0 $(PYTHON) -m pip wheel -q --no-deps -w dist .

dist: ## Build dist/*.whl and dist/*.tar.gz, check them, and that they come out the same twice
	rm -rf build dist/redis_rtui*
	for to in dist build/again; do \
	    SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) CFLAGS=-g0 $(PYTHON) -m build -q -o $$to || exit 1; \
	    $(PYTHON) .github/packaging/build.py sdist --to $$to || exit 1; \
	    rm -rf build/lib* build/bdist* build/temp*; \
	done
	for file in dist/redis_rtui*; do cmp $$file build/again/$${file#dist/} || exit 1; done
	$(PYTHON) -m twine check --strict dist/redis_rtui*

bundle: ## Build dist/rtui-*.tar.gz and dist/rtui_*.deb for hosts without Python (rtui installed, extra release)
	$(PYTHON) .github/packaging/build.py deb

bundle-test: ## Install what `make bundle` has built where there is no Python, and start it there
	$(PYTHON) -m pytest -q -n 0 --thorough tests/packaging

extras: ## Write the Homebrew formula, the bill of materials and the release's notes to dist
	$(PYTHON) .github/packaging/build.py formula sbom notes

release: ## Do all of a release that needs no account: make release
	.venv/bin/actionlint
	$(MAKE) dist bundle extras bundle-test

site: ## Build the documentation as a site in build/site/html (extra site); a broken link ends it
	$(PYTHON) .github/site/make.py
	.venv/bin/properdocs build -q --strict -f build/site/mkdocs.yml

zipapp: ## Build dist/rtui.pyz: one file to copy to a host with the same Python and platform
	$(PYTHON) -m pip install -q shiv
	mkdir -p dist
	.venv/bin/shiv -q -p '/usr/bin/env python3' -c rtui -o dist/rtui.pyz .

clean: ## Remove what was built and cached, but not the environment and the servers
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache snapshot_report.html
	find rtui tests -name __pycache__ -prune -exec rm -rf {} +
