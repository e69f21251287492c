# Every check of the project is a target here; CI calls targets and nothing else. GNU make 4 or newer.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DEFAULT_GOAL := help

# A checkout that another user owns must build as well; the version stamp is not worth a failure.
export GOFLAGS ?= -buildvcs=false

# Modules that stand outside the workspace, so that their requirements reach nobody.
OUTSIDE := $(patsubst %/go.mod,%,$(wildcard blob/go.mod tools/go.mod lab/*/go.mod examples/*/go.mod))

# What is only measured against: make bench/peers reads it, and no check does.
PEERS := tools/peers

# What compiles runs in an inner make, after .ci/available found out which modules the module proxy serves: it says at the
# start and in the last line what is left out.
LOOKED := alerts bench bench/full bench/micro bench/pages bench/peers blobs boundaries build check check/test checks contract figures fuzz isolated lint race soak soak/lab test tidy wire
REPRISE_AVAILABLE ?=
ifneq ($(and $(if $(REPRISE_AVAILABLE),,outer),$(filter $(LOOKED),$(MAKECMDGOALS))),)

.PHONY: $(MAKECMDGOALS) inner
$(MAKECMDGOALS): inner
	@:
inner:
	+@exec .ci/available go.work "$(if $(filter alerts blobs contract lint tidy check checks,$(MAKECMDGOALS)),$(OUTSIDE))" $(MAKE) --no-print-directory $(MAKECMDGOALS)

else

# What there is without the modules that are refused, if some are.
AVAILABLE_PACKAGES :=
TESTS_ONLY :=
NOT_ALONE :=
ifneq ($(filter-out all,$(REPRISE_AVAILABLE)),)
include $(REPRISE_AVAILABLE)/settings.mk
endif

# The folders of the modules, from go.work. One target, some modules: make race MODULES="core adapters/gin"
ROOT := github.com/reprise-go/reprise/
MODULES ?= $(patsubst $(ROOT)%,%,$(or $(filter $(ROOT)%,$(shell go list -m)),$(error go list -m found no modules)))
PACKAGES = $(call left,$(MODULES))

# $(call left,FOLDERS) is the packages in the folders as far as they can be built.
left = $(if $(AVAILABLE_PACKAGES),$(or $(call available,$(1)),$(error nothing is left to build in $(1))),$(1:%=./%/...))
available = $(sort $(foreach m,$(1),$(filter ./$(m) ./$(m)/%,$(AVAILABLE_PACKAGES:%=./%))))

# The modules that load without the workspace, and those of which there is something left.
ALONE = $(filter-out $(NOT_ALONE),$(MODULES))
REST = $(foreach m,$(MODULES),$(if $(filter $(m) $(m)/%,$(AVAILABLE_PACKAGES)),$(m)))

BIN := $(CURDIR)/.bin
BENCH ?= .
SUITES ?=
BENCHFLAGS ?=
COUNT ?= 1
FUZZTIME ?= 20s
SOAK ?= 1h
DURATION ?= $(SOAK)
SEED ?= 15
REQUESTS ?= 100000
VERSION ?=
VULNDB ?= https://vuln.go.dev

# $(call each,FOLDERS,COMMAND) runs COMMAND in every folder, all of them even after a failure, and then fails if one did.
# (A loop that ends in a negated command never would.)
define each
failed=
for folder in $(1); do
	(cd "$$folder" && $(2)) || failed="$$failed $$folder"
done
[[ -z $$failed ]] || { echo "$@ failed in:$$failed" >&2; exit 1; }
endef

# In a folder that each runs in: what is left of its packages.
define packages
packages() {
	if [[ -z "$(AVAILABLE_PACKAGES)" ]]; then echo ./...; fi
	printf '%s\n' $(AVAILABLE_PACKAGES) | sed -n "s#^$$folder\(/.*\)\{0,1\}\$$#.\1#p"
}
endef

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Both need Go alone, and outside of the workspace only the modules that they import. ADDR is where to serve.
ADDR ?=
.PHONY: demo
demo: ## Run the examples on real HTTP and print what clients, and operators, see
	@cd examples
	export GOWORK=off
	failed() { echo "demo: the $$1 half failed, and the lines above say why" >&2; exit 1; }
	go run ./quickstart -demo $(if $(ADDR),-addr '$(ADDR)') || failed first
	printf '\nAnd what operators see:\n\n'
	go run ./operators -demo $(if $(ADDR),-addr '$(ADDR)') || failed second
	printf '\nBoth halves are as they should be.\n'

.PHONY: console
console: ## Serve the console over an example, with a stuck operation to resolve: ADDR=127.0.0.1:9000
	@cd examples
	GOWORK=off go run ./operators -open $(if $(ADDR),-addr '$(ADDR)')

.PHONY: test
test: ## Run every test with the race detector, on real servers (installs them if it may)
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE
	go test -race -timeout 20m -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) $(PACKAGES) # one more than there are cores: some packages wait for servers most of their time

.PHONY: race
race: ## Like test, with the servers that are there; what needs another is skipped
	@go test -race $(PACKAGES)

# Tests that count allocations are named TestCost… or TestP… after the target that they gate. The race detector allocates
# itself, so they skip under it and run here.
.PHONY: newest
newest: ## Run the suites on the newest frameworks and clients
	@unset GOWORK
	export GOFLAGS=-buildvcs=false
	exec .ci/available lab/newest.work "" $(MAKE) --no-print-directory newest/suites

.PHONY: newest/suites
newest/suites:
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE
	failed=
	go test -skip '^Test(Cost|P[0-9])' $(call left,$(filter adapters/%,$(MODULES)) lab/frameworks) || failed=yes
	go test -run '^TestMatrix$$/^store=memory$$' $(call left,lab/matrix) -compare-docs=false || failed=yes
	go test -run '^TestRules$$' $(call left,lab/rpc) || failed=yes
	go test -run '^Test(RedisStoreOn|Postgres(|Transactional)Conformance$$)' $(call left,lab/redis lab/postgres) || failed=yes
	go test $(call left,examples/consumer examples/sql examples/payments-river examples/telemetry lab/console) || failed=yes
	[[ -z $$failed ]]

.PHONY: alerts
alerts: ## Run the tests of metrics, alerts and dashboard, on Prometheus' own parser and engine
	@$(call each,$(filter-out $(NOT_ALONE),lab/otel),GOWORK=off go test ./...)

.PHONY: blobs
blobs: ## Run the tests of offloaded bodies, against an S3 server and files
	@$(call each,$(filter-out $(NOT_ALONE),blob lab/blob),GOWORK=off go test ./...)

# The validator takes minutes to compile, so make contract is no part of check: run it when you change what
# core/protocol/contract generates, which its tests compare with files.
.PHONY: contract
contract: $(BIN)/golangci-lint ## Check the OpenAPI documents, and a server's responses with them, with a validator (minutes to compile)
	@$(call each,$(filter-out $(NOT_ALONE),lab/openapi),GOWORK=off go test ./...)
	$(call each,$(filter-out $(NOT_ALONE),lab/openapi),GOWORK=off $(BIN)/golangci-lint run ./...)

.PHONY: figures
figures: ## Run the gates on exact figures, 10,000 simulated universes, and the benchmarks for a second, without the race detector
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE
	go test -count=1 -run '^Test(Cost|P[0-9]|Smoke$$|Universes$$|ASeedFixesItsUniverse$$)' $(PACKAGES)

.PHONY: check
check: build test checks ## Everything that CI runs

.PHONY: checks
checks: figures newest alerts blobs boundaries docs isolated tidy fmt/check prose lint workflows check/test release/dry vuln ## What check runs besides build and test

.PHONY: build
build: ## Build every package
	@go build -o /dev/null $(filter-out $(TESTS_ONLY:%=./%),$(PACKAGES))

# The workspace in one run, which type-checks what the modules share once; isolated proves that each builds alone.
.PHONY: lint
lint: $(BIN)/golangci-lint ## Lint every module
	@workspace=ok # not failed, which each sets
	$(BIN)/golangci-lint run $(PACKAGES) || workspace=
	$(call each,$(filter-out $(NOT_ALONE) lab/openapi,$(OUTSIDE)),GOWORK=off $(BIN)/golangci-lint run ./...)
	[[ -n $$workspace ]]

.PHONY: workflows
workflows: ## Lint the workflows of GitHub
	@cd tools
	GOWORK=off go tool actionlint -shellcheck= -pyflakes= ../.github/workflows/*.yml

.PHONY: release
release: ## Tag VERSION of every published module, after a dry run; it pushes nothing
	@cd tools
	GOWORK=off go run ./release -root .. -version "$(VERSION)"

.PHONY: release/dry
release/dry: ## Release VERSION, or the next one, in a temporary clone, and use it as a user does
	@cd tools
	GOWORK=off go run ./release -root .. -version "$(VERSION)" -dry

.PHONY: boundaries
boundaries: ## Prove who imports what, and what a go.mod may require
	@cd tools
	GOWORK=off go run ./boundaries -root ..

.PHONY: docs
docs: ## Prove that the names, links, paths and targets in the documentation are there
	@cd tools
	GOWORK=off go run ./docs -root ..

.PHONY: isolated
isolated: ## Build each module, and vet it with its tests, without the workspace
	@export GOWORK=off
	$(call each,$(ALONE),go build -o /dev/null ./... && go vet ./...)

.PHONY: tidy
tidy: ## Fail if go mod tidy would change a go.mod or go.sum
	@$(call each,$(ALONE) $(filter-out $(NOT_ALONE),$(OUTSIDE)),$(CURDIR)/.ci/tidy)

.PHONY: tidy/fix
tidy/fix: ## Run go mod tidy in every module
	@export GOWORK=off
	$(call each,$(MODULES) $(OUTSIDE) $(PEERS),go mod tidy)

.PHONY: fmt
fmt: $(BIN)/gofumpt $(BIN)/goimports ## Format every Go file
	@$(BIN)/gofumpt -w .
	$(BIN)/goimports -w .

.PHONY: fmt/check
fmt/check: $(BIN)/gofumpt $(BIN)/goimports ## Fail if fmt would change a file
	@unformatted=$$({ $(BIN)/gofumpt -l . && $(BIN)/goimports -l .; } | sort -u)
	[[ -z $$unformatted ]] || { printf 'run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; }

.PHONY: prose
prose: ## Count the words of convoluted sentences in comments, and those wider than 90 columns
	@cd tools
	GOWORK=off go run ./prose -root ..

.PHONY: check/test
check/test: $(BIN)/gofumpt $(BIN)/goimports ## Prove that the checks fail when they should
	@cd tools
	GOWORK=off go test -count=1 -timeout 25m ./... # uncached: the cache does not know the files outside tools; some tests compile the frameworks anew

.PHONY: bench
bench: ## Measure over HTTP beside floors, in twenty minutes: SUITES=list BENCHFLAGS='-rounds 12'
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE
	go run ./lab/bench $(if $(SUITES),-suites $(SUITES)) $(BENCHFLAGS)

.PHONY: bench/peers
bench/peers: ## Measure beside other libraries: Fiber's own middleware, and npm's on Express
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE
	(cd $(PEERS) && GOWORK=off go build -o $(BIN)/peers .)
	$(BIN)/peers $(BENCHFLAGS)

.PHONY: bench/full
bench/full: ## Like bench, with 10⁶ keys, an hour at a fixed rate and 10⁴ requests in flight
	@$(MAKE) --no-print-directory bench BENCHFLAGS="-full $(BENCHFLAGS)"

.PHONY: bench/pages
bench/pages: ## Make the tables and pictures of docs/engineering/benchmarks.md from docs/engineering/benchmarks.json
	@go run ./lab/bench pages

.PHONY: bench/micro
bench/micro: ## Run the benchmarks of Go in every module: BENCH=regexp COUNT=n
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)

.PHONY: bench/diff
bench/diff: $(BIN)/benchstat ## Compare two outputs of bench/micro: OLD=file NEW=file
	@$(BIN)/benchstat $(or $(OLD),$(error OLD=file is missing)) $(or $(NEW),$(error NEW=file is missing))

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each
	@.ci/fuzz $(FUZZTIME) $(PACKAGES)

.PHONY: soak
soak: ## Break processes, links and servers for DURATION with SEED, and write the figures into docs/engineering/faults.md
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE REPRISE_SOAK=$(DURATION) REPRISE_SEED=$(SEED)
	go test -count=1 -timeout 0 ./lab/faults -page "$(CURDIR)/docs/engineering/faults.md"

.PHONY: soak/lab
soak/lab: ## Run every test of the lab that takes faults for DURATION each
	@REPRISE_TEST_REQUIRE=$$(.ci/servers)
	export REPRISE_TEST_REQUIRE REPRISE_SOAK=$(DURATION) REPRISE_SEED=$(SEED)
	go test -race -count=1 -timeout 0 ./lab/...

.PHONY: wire
wire: ## Send each adapter REQUESTS malformed requests with SEED, over raw sockets, and print what came of them
	@go test -v -count=1 -timeout 0 -run '^TestMalformedRequests$$' ./lab/wire -wire.requests $(REQUESTS) -wire.seed $(SEED)

.PHONY: vuln
vuln: $(BIN)/govulncheck ## Look for known vulnerabilities in what the modules call, in the newest releases
	@unset GOWORK
	export GOFLAGS=-buildvcs=false
	exec .ci/available lab/newest.work "" .ci/vuln $(VULNDB) $(MAKE) --no-print-directory vuln/modules

.PHONY: vuln/modules
vuln/modules:
	@$(packages)
	$(call each,$(if $(AVAILABLE_PACKAGES),$(REST),$(MODULES)),$(BIN)/govulncheck -db $(VULNDB) $$(packages))

# The tools are built from source, in the versions of tools/go.mod, and checked against its go.sum.
$(BIN)/golangci-lint: PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/gofumpt: PACKAGE := mvdan.cc/gofumpt
$(BIN)/goimports: PACKAGE := golang.org/x/tools/cmd/goimports
$(BIN)/benchstat: PACKAGE := golang.org/x/perf/cmd/benchstat
$(BIN)/govulncheck: PACKAGE := golang.org/x/vuln/cmd/govulncheck
$(BIN)/golangci-lint $(BIN)/gofumpt $(BIN)/goimports $(BIN)/benchstat $(BIN)/govulncheck: tools/go.mod tools/go.sum
	@cd tools
	GOWORK=off GOBIN=$(BIN) go install $(PACKAGE)
	touch $@

endif
