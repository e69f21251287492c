# Every check of the project is a target here; CI calls targets and nothing else. GNU make 4 or newer.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: $(shell sed -n 's/^\([a-z\/]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

# A checkout that another user owns must build as well; the version stamp is not worth a failure. Without its path, what is
# compiled serves the clone of tools/commands, the consumers of release/dry, and other checkouts too.
export GOFLAGS ?= -buildvcs=false -trimpath

# One target, some modules: make test MODULES="core adapters/gin"
export MODULES ?=
BIN := .bin
DURATION ?= 1h
SEED ?= 15
REQUESTS ?= 100000
VERSION ?=
VULNDB ?= https://vuln.go.dev

# $(call use,go.work) sets the shell's $modules and $packages to those of a workspace that the module proxy serves, and
# $(call use,off blob) to modules outside of it; $(servers) finds what the tests run on.
define use
.ci/toolchain
found=$$(.ci/modules $(1))
eval "$$found"
endef
servers = REPRISE_TEST_REQUIRE=$$(.ci/servers); export REPRISE_TEST_REQUIRE

# $(suite) defines the shell's suite, through which CI runs go test: $(servers), and what fails is run once more, alone.
# The files of tests are in memory where there is enough, so that no verdict depends on who else writes to the disk.
define suite
$(servers)
if [[ $$(stat -f -c %T /dev/shm 2>&1) == tmpfs && $$(df --output=avail /dev/shm | tail -1) -gt $$((8 << 20)) ]]; then
	export GOTMPDIR=$${GOTMPDIR:-$${TMPDIR:-/tmp}} TMPDIR=/dev/shm
fi
(cd tools && GOWORK=off go build -o ../.cache/suite ./suite)
suite() { "$(CURDIR)/.cache/suite" "make $@" "$$@"; }
export -f suite
endef

# $(call each,FOLDERS,COMMAND) runs COMMAND in every folder, all of them even after a failure, and then fails if one did.
define each
failed=
for folder in $(1); do
	(cd "$$folder" && $(2)) || failed="$$failed $$folder"
done
[[ -z $$failed ]] || { echo "$@ failed in:$$failed" >&2; exit 1; }
endef

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Both need Go alone, and outside of the workspace only the modules that they import.
ADDR ?=
demo: ## Run an example on real HTTP and print what clients, and operators, see
console: ## Serve the console over an example, with a stuck operation to resolve: ADDR=127.0.0.1:9000
demo console:
	@.ci/toolchain
	GOWORK=off go run -C examples ./minimal/demo $(if $(filter demo,$@),-print -addr 127.0.0.1:0) $(if $(ADDR),-addr '$(ADDR)')

# The race detector triples the time of what it watches, so it watches where goroutines meet: what ships, and the stores on
# their servers. With BREADTH it watches the programs of the lab and the examples too, where each pair of both is.
BREADTH ?=
UNWATCHED := ^[^/]*/[^/]*/reprise/(examples|lab)(/|$$)
WATCHED := /lab/(mysql|postgres|redis|sqlite)$$
# SQLite in Go is translated C with a memory of its own, which takes several times as long if it is watched. What is watched
# waits for a second at its end, for races of goroutines that are left: a tenth of it does.
RACE := -race -gcflags=modernc.org/...=-race=false
export GORACE ?= atexit_sleep_ms=100
test: ## Run every suite on real servers (installs them if it may), with the race detector; with BREADTH=yes long histories and many kills too
	@$(call use,go.work)
	$(suite)
	if [[ -n "$(BREADTH)" ]]; then
		suite $(RACE) -vet=off -timeout=20m $$packages # lint and isolated vet
		exit
	fi
	found=$$(go list -e -f '{{.ImportPath}}' $$packages)
	lab=$$(grep -E '$(UNWATCHED)' <<<"$$found" | grep -vE '$(WATCHED)' || true)
	watched=$$(grep -vxFf <(echo "$$lab") <<<"$$found" || true)
	failed=
	[[ -z $$watched ]] || suite $(RACE) -vet=off -short -timeout=20m $$watched || failed=yes
	[[ -z $$lab ]] || suite -vet=off -short -timeout=20m -skip='^Test($(FIGURES))' $$lab || failed=yes # make figures runs those
	[[ -z $$failed ]]

# The race detector allocates itself, so the tests that count allocations (TestCost…, TestP… after the target that they
# gate) skip under it and run here, on the releases that the published modules require.
FIGURES := Cost|P[0-9]|Smoke$$|Also|Simulator|ASeedFixesItsRun$$|Draws$$
figures: ## Run the gates on exact figures, 10,000 simulations, as many draws of each framework, and the benchmarks for a second, without the race detector
	@$(call use,go.work)
	$(suite)
	mapfile -t folders < <(grep -rlE --include='*_test.go' '^func Test($(subst $$,,$(FIGURES)))' $$modules | xargs -n 1 dirname | sort -u)
	mapfile -t packages < <(go list -e -f '{{if not .Error}}{{.ImportPath}}{{end}}' "$${folders[@]/#/./}")
	suite -count=1 -run='^Test($(FIGURES))' "$${packages[@]}"

newest: ## Run the suites, and the tests of the stores, on the newest frameworks and clients
	@$(call use,lab/newest.work)
	$(suite)
	.ci/newest $$modules

TESTS ?= ^TestPostgres(Conformance|MigrateAtOnce|EndedByTheHandler|TransactionTimesOut|TransactionalCrash|Promotion)$$
postgres: ## Run the suites, a crash and a failover on PostgreSQL 18 of the npm registry; with BREADTH=yes on 16 and 17 too: TESTS=. runs all of lab/postgres
	@$(call use,go.work)
	$(suite)
	.ci/postgres '$(TESTS)' '$(if $(BREADTH),1?,18)' $(if $(BREADTH),,-short)

# check/test runs tools. lab/openapi, whose validator takes minutes to compile, only runs with BREADTH=yes, or where MODULES names
# it. Two modules run at once, because each waits for its servers, for leases, or for one link, most of the time.
outside: ## Run the tests of the modules outside of the workspace: alerts, console, blobs, etcd, Fiber v3, some examples
	@$(call use,off)
	$(suite)
	modules=$$(printf '%s\n' $$modules | grep -vxE 'tools$(if $(MODULES)$(BREADTH),,|lab/openapi)' || true)
	xargs -r -n 1 -P 2 bash -c 'cd "$$0" && suite $(if $(BREADTH),-timeout=60m,-short -timeout=20m) ./...' <<<"$$modules"

check: ## Everything that CI runs: test and every check
	@.ci/run

checks: figures newest postgres outside docs isolated tidy lint check/test size release/dry vuln ## What check runs besides test

nightly: ## What takes hours: the tests with their breadth, all of lab/postgres on each PostgreSQL, and DURATION for each of flaky and soak
	@failed=
	for target in "test BREADTH=yes" "postgres TESTS=. BREADTH=yes" "outside BREADTH=yes" "lint MODULES=lab/openapi" flaky soak; do
		$(MAKE) --no-print-directory $$target || failed="$$failed $${target%% *}"
	done
	[[ -z $$failed ]] || { echo "nightly failed in:$$failed" >&2; exit 1; }

flaky: ## Run the tests of each package again and again for DURATION, beside eight busy loops, and list what failed
	@$(call use,go.work)
	$(servers)
	.ci/flaky $(DURATION) $$packages

size: ## Count the lines of Go, and fail above the number in .ci/size, which only falls
	@.ci/lines

# The workspace in one run, which type-checks what the modules share once; isolated proves that each builds alone.
lint: $(BIN)/golangci-lint ## Lint every module, and the workflows of GitHub
	@$(call use,go.work)
	[[ -z $$packages ]] || "$(BIN)/golangci-lint" run $$packages || workspace=failed
	$(call use,off)
	$(call each,$(if $(MODULES),$$modules,$${modules/lab\/openapi/}),"$(CURDIR)/$(BIN)/golangci-lint" run ./...)
	(cd tools && GOWORK=off go tool actionlint -shellcheck= -pyflakes= ../.github/workflows/*.yml)
	[[ $${workspace:-} != failed ]]

release: ## Tag VERSION of every published module, after a dry run; it pushes nothing
release/dry: ## Release VERSION, or the next one, in a temporary clone, and use it as a user does
release release/dry:
	@.ci/toolchain git
	.ci/release $(patsubst release/%,%,$(filter release/%,$@)) $(VERSION)

docs: ## Prove that the names, paths, targets and links in the documentation are there
	@(cd tools && GOWORK=off go run ./docs -root ..)
	.ci/site links

# The base of its addresses, which GitHub Pages takes from the name of the repository: SITE_BASE=/
export SITE_BASE ?= /reprise/
site: ## Build the website of docs/ into .cache/site/dist (needs npm)
site/serve: ## Serve the website, and follow changes of docs/
site/check: ## Build the website and look at each page in Chromium: axe-core, width, links, other hosts, search
site site/serve site/check:
	@.ci/site $(or $(filter-out site,$(@:site/%=%)),build)

# The program opens every store, and its etcd raises gRPC and OpenTelemetry in the workspace.
RAISED := adapters/grpc client/grpc otel
isolated: ## Vet each module with its tests, which compiles what they import, without the workspace, and test those whose releases it raises
	@$(call use,go.work)
	export GOWORK=off
	$(call each,$$modules,go vet ./... && { [[ " $(RAISED) " != *" $$folder "* ]] || go test -vet=off -short ./...; })

tidy: ## Fail if go mod tidy would change a go.mod or go.sum
	@$(call use,go.work)
	inside=$$modules
	$(call use,off)
	$(call each,$$inside $$modules,"$(CURDIR)/.ci/tidy")
tidy/fix: ## Run go mod tidy in every module
	@export GOWORK=off
	$(call each,$$(find . -name go.mod -not -path './.*' -exec dirname {} +),go mod tidy)

fmt: $(BIN)/golangci-lint ## Format every Go file; lint fails where it would change one
	@"$(BIN)/golangci-lint" fmt

check/test: $(BIN)/golangci-lint ## Prove that the checks fail when they should
	@$(suite)
	cd tools
	GOWORK=off suite -count=1 -timeout=25m ./... # uncached: the cache does not know the files outside tools; some tests compile the frameworks anew

SUITES ?=
BENCHFLAGS ?=
bench: ## Measure over HTTP beside floors, in 40 minutes: SUITES=list BENCHFLAGS='-rounds 12'
	@$(servers)
	go run ./lab/bench $(if $(SUITES),-suites $(SUITES)) $(BENCHFLAGS)
bench/peers: ## Measure beside other libraries: Fiber's own middleware, and npm's on Express
	@$(servers)
	(cd tools/peers && GOWORK=off go build -o ../../$(BIN)/peers .)
	$(BIN)/peers $(BENCHFLAGS)

soak: ## Break processes, links and servers for DURATION with SEED, and write the figures into docs/engineering/faults.md
	@$(servers)
	export REPRISE_SOAK=$(DURATION) REPRISE_SEED=$(SEED)
	go test -count=1 -timeout 0 ./lab/faults -page "$(CURDIR)/docs/engineering/faults.md"

wire: ## Send each adapter REQUESTS malformed requests with SEED, over raw sockets, and print what came of them
	@wire() { go test "$$@" -v -count=1 -timeout 0 -run '^TestWire$$/^MalformedRequests$$' -wire.requests $(REQUESTS) -wire.seed $(SEED); }
	wire ./lab/{nethttp,gin,echo,echo5,fiber}
	GOWORK=off wire -C lab/fiber3

vuln: $(BIN)/govulncheck ## Look for known vulnerabilities in what the modules call, in the newest releases
	@$(call use,lab/newest.work)
	.ci/vuln $(VULNDB) || exit 0
	$(call each,$$modules,"$(CURDIR)/$(BIN)/govulncheck" -db $(VULNDB) ./...)

# The tools are built from source, in the versions of tools/go.mod, and checked against its go.sum.
$(BIN)/golangci-lint $(BIN)/govulncheck: tools/go.mod tools/go.sum
	@.ci/toolchain
	GOWORK=off GOBIN="$(CURDIR)/$(BIN)" go -C tools install "$$(GOWORK=off go -C tools list tool | grep '/$(@F)$$')"
	touch "$@"
