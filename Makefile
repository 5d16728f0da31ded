# The only entry point, for people and for CI. Every target sets up what it needs.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# As a path: setuptools' own finder would double the start of Python, in which a Ctrl-C shows a traceback.
EDITABLE := --config-settings editable_mode=compat
SOURCES := attacks clients coordinator defenses services vflens   # the real folders; vflens holds links to the others
LINKS := $(addprefix vflens/,attacks clients coordinator defenses examples protos services)
NO_LINKS := $(strip $(foreach link,$(LINKS),$(if $(wildcard $(link)/.),,$(link))))
ifneq ($(NO_LINKS),)
$(error git checked out links as plain files, or not at all: $(NO_LINKS). Run: git config core.symlinks true && git checkout -- vflens)
endif
COMMA := ,
NUMERICS := tests/oracle tests/property/test_linear_system.py $(addprefix tests/unit/,\
  attacks/test_inversion.py experiments/figures/test_central.py models/test_logistic.py numerics/test_ranking.py \
  tables/test_scaling.py)
# Tests that read the checkout's own files: `make check` runs them, `make test` leaves them out.
HOUSE := tests/unit/house tests/test_suite.py
CODE := $(SOURCES) tests benchmarks docs requirements
# One numeric thread per process: sums have one order, and two cores serve several parties.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Hundreds of processes start: where bytecode is not written, each compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup release verify-release sbom links demo demo-deep flower-check nvflare-check secretflow-check fate-check psi-check mpyc-check spu-check zoo tables scale test quick house test-counts test-dearest facts truth kills soak golden kernels wheel-check fmt lint types proto check-proto bench bench-guard test-docs docs scoreboard paper-size reproduced check lock audit-deps containers clean

help:           ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# What a target installs: $(1) a lock with hashes, then $(2) the checkout with its extras. They were locked for Python
# 3.11. Torch comes by its version alone: its file differs from machine to machine, so that no list of hashes fits all.
define install
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then \
	  $(PIP) install --require-hashes -r requirements/$(1).txt -r requirements/build.txt; \
	else \
	  echo "no hashes: they were locked for Python 3.11, $(VENV) has another; the versions are those of constraints.txt"; \
	  $(PIP) install -c constraints.txt setuptools; \
	fi
	$(PIP) install $(EDITABLE) --no-build-isolation -c constraints.txt -e '.$(2)'
endef

$(VENV)/.core: pyproject.toml constraints.txt requirements/core.txt | $(VENV)/bin/python
	@echo "installing the core into $(VENV) …"
	$(call install,core,)
	@touch $@

$(VENV)/.deep: pyproject.toml constraints.txt requirements/core.txt | $(VENV)/bin/python
	@echo "installing the core and torch into $(VENV) …"
	$(call install,core,[deep])
	@touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml constraints.txt requirements/dev.txt | $(VENV)/bin/python
	@echo "installing everything into $(VENV) …"
	$(call install,dev,[all$(COMMA)dev])
	@touch $@ $(VENV)/.core $(VENV)/.deep

$(VENV)/.docs: pyproject.toml constraints.txt requirements/core.txt | $(VENV)/bin/python
	@echo "installing the core, torch and the site's tools into $(VENV) …"
	$(call install,core,[deep$(COMMA)docs])
	@touch $@ $(VENV)/.core $(VENV)/.deep

setup: $(VENV)/.dev     ## create .venv with everything: extras, tests, benchmarks

demo: $(VENV)/.core     ## a federation of three processes on digits, attacked, then defended; writes report.html and prints its path
	$(BIN)/vflens demo

demo-deep: $(VENV)/.deep ## the same with a split network in torch: model inversion, then passports
	$(BIN)/vflens run examples/demo_deep.toml

links:          ## in an unpacked source distribution, before tests and proto: links for the copies of the folders
	for link in $(LINKS); do rm -rf "$$link" && ln -s "../$${link#vflens/}" "$$link"; done

# Tests write thousands of small files: into memory, where it has room for gigabytes.
ifneq ($(shell test 0$(shell df --output=avail -k /dev/shm 2>/dev/null | tail -1 | tr -d " ") -gt 4000000 && echo room),)
IN_MEMORY := TMPDIR=$${TMPDIR:-/dev/shm}
endif
test: $(VENV)/.dev      ## the test suite, each kind of test once; it says first how long it takes here (WORKERS=2)
	$(IN_MEMORY) $(BIN)/python tests/timed.py $(BIN)/pytest -n $(or $(WORKERS),2) --dist worksteal -m "not facts" $(addprefix --ignore=,$(HOUSE))

house: $(VENV)/.dev     ## tests that read this checkout's files: docs, structure, counts; make check runs them too
	$(IN_MEMORY) $(BIN)/pytest -q -n 2 --dist worksteal -m "not facts" $(HOUSE)

quick: $(VENV)/.dev     ## one test of each room, within a minute
	$(IN_MEMORY) $(BIN)/pytest -q -n 2 $$($(BIN)/python tests/quick.py)

test-counts:            ## write anew how many tests each file and how many lines each room has, for tests/test_suite.py
	$(PYTHON) tests/counts.py

test-dearest: $(VENV)/.dev  ## the hundred dearest tests and what each proves: tests/dearest.txt (PATHS=tests/wire: these alone)
	mkdir -p build && : > build/spent.txt
	$(IN_MEMORY) PYTHONPATH=tests $(BIN)/pytest -q -n $(or $(WORKERS),2) --dist worksteal -m "not facts" -p dearest $(PATHS)
	PYTHONPATH=tests $(BIN)/python tests/dearest.py

facts: $(VENV)/.dev     ## slow facts: whole data sets, oracles on many systems, most faults, repetitions of a kind of test
	$(IN_MEMORY) $(BIN)/pytest -n 2 --dist worksteal -m facts

truth: $(VENV)/.dev     ## forty tables whose leak is known: what audits, runs, documents and thresholds say, beside what is true
	$(IN_MEMORY) PYTHONPATH=tests $(BIN)/python -m truth.report $(TABLES)

kills: $(VENV)/.dev     ## 6 kills, from the start of processes on, in each of twelve kinds of launched federation (KILLS="--each 100" for more)
	$(IN_MEMORY) PYTHONPATH=tests:tests/faults $(BIN)/python tests/soak/campaign.py $(KILLS)

soak: $(VENV)/.dev      ## half an hour (SOAK_MINUTES) of kills, mutated messages and predictions: docs/reliability.md
	PYTHONPATH=tests:tests/faults $(BIN)/python tests/soak/soak.py --minutes $(or $(SOAK_MINUTES),30) $(SOAK)

golden: $(VENV)/.dev    ## write anew what the examples give, for tests/e2e/test_examples_stay.py
	PYTHONPATH=tests $(BIN)/python tests/e2e/test_examples_stay.py

# A failing $$( ) in a for loop would be no core type and no failure: hence the variable.
kernels: $(VENV)/.dev   ## the numerics' tests under two other kernels of OpenBLAS than this machine's
	set -e; cores=$$($(BIN)/python tests/core_types.py); for core in $$cores; do \
	  echo "OPENBLAS_CORETYPE=$$core"; OPENBLAS_CORETYPE=$$core $(BIN)/pytest -n 2 -m "not facts" $(NUMERICS); done

wheel-check:            ## the pages' commands on the built wheel, core dependencies only, outside the checkout
	$(PYTHON) tests/wheel_check.py

fmt: $(VENV)/.dev       ## format and fix
	$(BIN)/ruff format $(CODE) conftest.py
	$(BIN)/ruff check --fix $(CODE) conftest.py

lint: $(VENV)/.dev      ## ruff and the layers
	$(BIN)/ruff format --check $(CODE) conftest.py
	$(BIN)/ruff check $(CODE) conftest.py
	$(BIN)/lint-imports

types: $(VENV)/.dev     ## mypy --strict
	$(BIN)/mypy vflens tests docs   # follows the links in vflens
	$(BIN)/mypy conftest.py   # apart: tests has one too
	$(BIN)/mypy --explicit-package-bases benchmarks

.venv-proto/.ready: Makefile
	$(PYTHON) -m venv .venv-proto
	.venv-proto/bin/pip --disable-pip-version-check --quiet install 'grpcio-tools==1.75.1' 'mypy-protobuf==3.6.0' 'setuptools<80'
	@touch $@

flower-check: .venv-flower/.ready $(VENV)/.core   ## record a Flower app in an environment of its own, and read it
	rm -rf .flower && mkdir .flower
	PYTHONPATH=examples/recorder .venv-flower/bin/python examples/flower/app.py .flower/recorded
	PYTHONPATH=examples/recorder .venv-flower/bin/python examples/flower/strategy_app.py .flower/drawn
	.venv/bin/vflens import .flower/drawn --config examples/flower/app.toml --out .flower/drawn_server
	.venv/bin/vflens import .flower/recorded --config examples/flower/app.toml --out .flower/server
	.venv/bin/vflens attack .flower/server --attack softmax_inversion --target client-1 --out .flower/digit.npz

.venv-flower/.ready:
	python3 -m venv .venv-flower
	.venv-flower/bin/pip install -q 'flwr[simulation]==1.42.0'
	touch $@

nvflare-check: .venv-nvflare/.ready $(VENV)/.core   ## the same of NVFlare's federated averaging
	rm -rf .nvflare && mkdir .nvflare
	PYTHONPATH=examples/recorder .venv-nvflare/bin/python examples/nvflare/app.py .nvflare/recorded
	.venv/bin/vflens import .nvflare/recorded --config examples/flower/app.toml --out .nvflare/server
	.venv/bin/vflens attack .nvflare/server --attack softmax_inversion --target client-1 --out .nvflare/digit.npz

.venv-nvflare/.ready:
	python3 -m venv .venv-nvflare
	.venv-nvflare/bin/pip install -q -r examples/nvflare/requirements.txt
	touch $@

secretflow-check: .venv-secretflow/.ready $(VENV)/.core   ## the same of SecretFlow's split learning, on Python 3.10
	rm -rf .secretflow && PYTHONPATH=examples/recorder .venv-secretflow/bin/python examples/secretflow/app.py .secretflow
	.venv/bin/vflens attack .secretflow/alice --attack gradient_clustering --out .secretflow/labels.npz
	.venv/bin/vflens score .secretflow/labels.npz --truth .secretflow/truth.npz

.venv-secretflow/.ready:
	python3.10 -m venv .venv-secretflow
	.venv-secretflow/bin/pip install -q --pre secretflow==1.12.0b0 'protobuf<5'
	touch $@

fate-check: .venv-fate/.ready $(VENV)/.core   ## the same of FATE's coordinated logistic regression, on Python 3.10
	rm -rf .fate && PYTHONPATH=examples/recorder .venv-fate/bin/python examples/fate/app.py .fate --parties \
		guest:9999 host:10000 arbiter:10001 --log_level INFO
	.venv/bin/python examples/fate/seen.py .fate .fate/seen.npz
	.venv/bin/vflens attack --arrays .fate/seen.npz --attack rcc2 --out .fate/columns.npz
	.venv/bin/vflens score .fate/columns.npz --truth .fate/truth.npz

.venv-fate/.ready:
	python3.10 -m venv .venv-fate
	.venv-fate/bin/pip install -q pyfate==2.2.0
	touch $@

psi-check: .venv-psi/.ready $(VENV)/.core   ## private set intersection beside OpenMined's, in an environment of its own
	mkdir -p build
	PYTHONPATH=tests $(BIN)/python tests/oracle/psi_ours.py build/psi.json
	.venv-psi/bin/python tests/oracle/psi_openmined.py build/psi.json

# Without its dependencies: it names one, of any version.
.venv-psi/.ready:
	$(PYTHON) -m venv .venv-psi
	.venv-psi/bin/pip install -q --no-deps openmined-psi==2.0.4 $$(grep ^protobuf== constraints.txt)
	touch $@

mpyc-check: .venv-mpyc/.ready $(VENV)/.core   ## steps of protected training beside MPyC's, in an environment of its own
	PYTHONPATH=. $(BIN)/python -m benchmarks.elsewhere.ours
	PYTHONPATH=. .venv-mpyc/bin/python -m benchmarks.elsewhere.mpyc_steps

.venv-mpyc/.ready:
	$(PYTHON) -m venv .venv-mpyc
	.venv-mpyc/bin/pip install -q mpyc==0.11 numpy==2.4.6 gmpy2==2.3.2
	touch $@

spu-check: .venv-spu/.ready $(VENV)/.core   ## the same beside SPU's
	PYTHONPATH=. $(BIN)/python -m benchmarks.elsewhere.ours
	PYTHONPATH=. .venv-spu/bin/python -m benchmarks.elsewhere.spu_steps

.venv-spu/.ready:
	$(PYTHON) -m venv .venv-spu
	.venv-spu/bin/pip install -q spu==0.9.5
	touch $@

zoo: .venv-zoo/.ready $(VENV)/.core   ## what the audit says of the training of 1,230 models beside the rows that trained them; minutes
	.venv-zoo/bin/python tests/zoo/train.py build/zoo
	PYTHONPATH=. $(BIN)/python tests/zoo/judge.py build/zoo --commands 20 --report tests/zoo/report.txt
	.venv-zoo/bin/python tests/zoo/train_others.py build/zoo-others
	PYTHONPATH=. $(BIN)/python tests/zoo/judge.py build/zoo-others --commands 20 --report tests/zoo/report_others.txt

# Without its dependencies: XGBoost names a library for graphics cards.
.venv-zoo/.ready:
	$(PYTHON) -m venv .venv-zoo
	.venv-zoo/bin/pip install -q --no-deps xgboost==3.2.0 numpy==2.4.6 scipy==1.17.1 lightgbm==4.7.0 catboost==1.2.10 \
	  scikit-learn==1.9.1 joblib==1.6.0 cloudpickle==3.1.2 threadpoolctl==3.8.0 narwhals==2.29.0 pandas==3.1.1 python-dateutil==2.9.0.post0 six==1.17.0 graphviz==0.21 matplotlib==3.11.2
	touch $@

tables: .venv-tables/.ready $(VENV)/.core   ## 300 and more tables of public packages through the check and the audit; hours of a core, goes on where it stopped
	.venv-tables/bin/python tests/publictables/gather.py build/tables
	PYTHONPATH=. nice -n 15 $(BIN)/python tests/publictables/judge_tables.py build/tables --report tests/publictables/report.txt

.venv-tables/.ready: tests/publictables/requirements.txt
	$(PYTHON) -m venv .venv-tables
	.venv-tables/bin/pip install -q -r $<
	touch $@

# The generator is pinned to the oldest runtime that pyproject.toml admits.
proto: .venv-proto/.ready   ## regenerate protos/*_pb2*
	.venv-proto/bin/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. protos/vfl.proto
	sed -i "s/DESCRIPTOR, 'protos\.vfl_pb2'/DESCRIPTOR, 'vflens.protos.vfl_pb2'/" protos/vfl_pb2.py

check-proto: proto      ## fail when the committed generated code differs from its source
	git diff --exit-code -- protos

scale: $(VENV)/.dev     ## how long will mine take: seconds and MiB of runs and audits by rows, columns, clients and attacks; minutes
	$(BIN)/python -m benchmarks.scale

bench: $(VENV)/.dev     ## benchmarks against the alternatives, as ratios
	$(BIN)/pytest benchmarks -p no:randomly -p no:xdist -s --timeout 1200

test-docs: $(VENV)/.dev ## every link and command of the docs exists
	$(BIN)/pytest -q tests/unit/house/test_docs.py

docs: $(VENV)/.docs     ## the site, with the tutorials executed, into build/site; a broken link or an undocumented name fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "look at it, search included: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

# The last commit of 0.1.0: whoever releases names the new one here.
RELEASE := ff8a747

bench-guard: $(VENV)/.dev ## what costs over 1.15 times the processor time of the last release, or of AGAINST=COMMIT or a wheel; ONLY='audit-40 …'; 5 minutes
	$(BIN)/python -m benchmarks.guard --against $(or $(AGAINST),$(RELEASE)) $(if $(ONLY),--only $(ONLY))

scoreboard: $(VENV)/.dev ## every attack against every defence: docs/scoreboard.md; resumes, JOBS=1 for one process
	$(IN_MEMORY) nice $(BIN)/python docs/scoreboard.py --jobs $(or $(JOBS),2)

# Each command resumes, as long as the code stays: run it in a worktree of its own.
PAGES := accuracy table4 table5 table6 table3 fig3 fig5 table7 table8
MODEL = $(if $(filter table4 table5 table6 table7 fig5,$(1)),--model $(or $(MODELS),lenet)) \
  $(if $(filter-out table7 table8 fig5,$(1)),--seeds $(or $(SEEDS),1))
paper-size: $(VENV)/.dev ## FedAdOb's pages at the paper's rows, rate and epochs, LeNet, one seed (PAGES=accuracy SEEDS=1 MODELS=lenet); days, resumes
	set -e; $(foreach page,$(PAGES),nice -n 19 $(BIN)/vflens reproduce fao-$(page) --full $(call MODEL,$(page));)

reproduced: $(VENV)/.dev ## docs/reproduced, what the commands print, and the tables of docs/reproduces.md (NAMES="fao-fig6 fao-table5-quick"); resumes
	mkdir -p build
	set -e; for name in $(NAMES); do \
	  $(BIN)/vflens reproduce $$(echo $$name | sed -E 's/-(quick|full)$$/ --\1/') --json > build/$$name.json; \
	  mv build/$$name.json docs/reproduced/$$name.json; done
	$(BIN)/python docs/tables.py

.venv-lock/.ready: Makefile
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip --disable-pip-version-check --quiet install 'pip-tools==7.6.2' 'pip-audit==2.10.1' 'cyclonedx-bom==7.5.0'
	@touch $@

# Of the public index alone: a hash of a file that only this machine has does not belong into the lock.
LOCK := env -u PIP_FIND_LINKS -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND='make lock' \
  .venv-lock/bin/python requirements/lock.py --quiet --generate-hashes --strip-extras --allow-unsafe -c constraints.txt

# Without torch: its file differs from machine to machine, so that no list of hashes fits all.
lock: .venv-lock/.ready ## lock the versions of constraints.txt with their hashes, for Python 3.11
	$(LOCK) --build-deps-for wheel --only-build-deps -o requirements/build.txt pyproject.toml
	$(LOCK) -o requirements/core.txt pyproject.toml
	$(LOCK) --extra cluster --extra manifold --extra verify --extra watch \
	  --extra weights -o requirements/extras.txt pyproject.toml
	$(LOCK) --extra cluster --extra dev --extra manifold --extra verify --extra watch \
	  --extra weights -o requirements/dev.txt pyproject.toml

sbom: .venv-lock/.ready  ## bills of materials of the locked packages, in build/
	mkdir -p build
	for lock in core extras; do .venv-lock/bin/python -W ignore -m cyclonedx_py requirements --pyproject pyproject.toml \
	  --output-reproducible -o build/sbom-$$lock.json requirements/$$lock.txt || exit 1; done

audit-deps: sbom         ## known vulnerabilities of the locked packages, and their bills of materials in build/
	.venv-lock/bin/python tests/audit_deps.py

release: $(VENV)/.core sbom ## changes/ into CHANGELOG.md; then wheel, sdist, bills of materials and a statement signed by KEY=private.pem, in build/release
	$(BIN)/python requirements/changes.py gather
	$(BIN)/python requirements/release.py build "$(KEY)" build/release

verify-release: $(VENV)/.core ## that build/release (FOLDER=…) is what KEY=public.pem signed; offline
	$(BIN)/python requirements/release.py verify "$(KEY)" $(or $(FOLDER),build/release)

containers: $(VENV)/.dev ## build the image and run the federation on a container engine; docs/containers.md
	$(BIN)/pytest tests/e2e/test_containers.py --allowed-skips=/dev/null

check: lint types check-proto house   ## everything static, and the tests that read files
	$(BIN)/python requirements/changes.py

clean:          ## remove what was built
	rm -rf $(VENV) .venv-proto .venv-lock build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
