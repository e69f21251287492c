# Every check of the project is a target here; CI calls targets and nothing else. GNU make 4 or newer.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: $(shell sed -n 's/^\([a-z\/]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

# A checkout that another user owns must build as well; the version stamp is not worth a failure.
export GOFLAGS ?= -buildvcs=false

# One target, some modules: make race MODULES="core adapters/gin"
export MODULES ?=
BIN := .bin
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

# $(call use,go.work) sets the shell's $modules and $packages to those of a workspace that the module proxy serves, and
# $(call use,off blob) to modules outside of it; $(servers) finds what the tests run on.
define use
.ci/toolchain
found=$$(.ci/modules $(1))
eval "$$found"
endef
define servers
REPRISE_TEST_REQUIRE=$$(.ci/servers)
export REPRISE_TEST_REQUIRE
endef

# $(suite) defines the shell's suite, through which CI runs go test: $(servers), and what fails is run once more, alone.
define suite
$(servers)
(cd tools && GOWORK=off go build -o ../.cache/suite ./suite)
suite() { "$(CURDIR)/.cache/suite" "make $@" "$$@"; }
export -f suite
endef

# $(call each,FOLDERS,COMMAND) runs COMMAND in every folder, all of them even after a failure, and then fails if one did.
# (A loop that ends in a negated command never would.)
define each
failed=
for folder in $(1); do
	(cd "$$folder" && $(2)) || failed="$$failed $$folder"
done
[[ -z $$failed ]] || { echo "$@ failed in:$$failed" >&2; exit 1; }
endef

# $(call tool,NAME,ARGUMENTS) runs one of our programs in tools.
tool = cd tools && GOWORK=off go run ./$(1) -root .. $(2)

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Both need Go alone, and outside of the workspace only the modules that they import. ADDR is where to serve.
ADDR ?=
demo: ## Run an example on real HTTP and print what clients, and operators, see
	@.ci/toolchain
	cd examples
	GOWORK=off go run ./quickstart -demo $(if $(ADDR),-addr '$(ADDR)')

console: ## Serve the console over an example, with a stuck operation to resolve: ADDR=127.0.0.1:9000
	@.ci/toolchain
	cd examples
	GOWORK=off go run ./quickstart -open $(if $(ADDR),-addr '$(ADDR)')

test: SUITE := -short
test: ## Run the cases on every adapter and every store, and smoke cases on each pair, with the race detector, on real servers (installs them if it may)
test/full: SUITE :=
test/full: ## Like test, with what repeats it for breadth: long histories, faults
# The targets lint and isolated vet.
test test/full:
	@$(call use,go.work)
	$(suite)
	suite -race -vet=off $(SUITE) -timeout=20m $$packages

race: ## Like test/full, with the servers that are there; what needs another is skipped
	@.ci/toolchain race
	$(call use,go.work)
	go test -race $$packages

# Tests that count allocations are named TestCost… or TestP… after the target that they gate. The race detector allocates
# itself, so they skip under it and run in figures, on the releases that the published modules require.
FIGURES := ^Test(Cost|P[0-9]|Smoke$$|Also|Universes$$|ASeedFixesItsUniverse$$|Combinations$$|Draws$$)
figures: ## Run the gates on exact figures, 10,000 simulated universes, as many combinations and draws of each framework, and the benchmarks for a second, without the race detector
	@$(call use,go.work)
	$(suite)
	mapfile -t folders < <(grep -rlE --include='*_test.go' 'func Test(Cost|P[0-9]|Smoke|Universes|ASeedFixes|Combinations|Draws)' $$modules | xargs -n 1 dirname | sort -u)
	mapfile -t packages < <(go list -e -f '{{if not .Error}}{{.ImportPath}}{{end}}' "$${folders[@]/#/./}")
	suite -count=1 -run='$(FIGURES)' "$${packages[@]}"

# CI's runners have about three minutes for this. So lab/postgres, which takes as long alone, is left to its conformance
# suite, and the breadth of lab/redis and of the stores' own tests to make check.
newest: ## Run the suites, and the tests of the stores, on the newest frameworks and clients
	@$(call use,lab/newest.work)
	$(suite)
	export REPRISE_NEWEST=yes
	failed= suites=()
	for module in $$modules; do
		case $$module in
			lab)
				suite -run='^Test(RedisStoreOn|Postgres(|Transactional)Conformance$$)' ./lab/redis ./lab/postgres || failed=yes
				suites+=(./lab/redis) ;;
			adapters/* | examples/* | lab/* | store/*) suites+=("./$$module/...") ;;
		esac
	done
	[[ -z $${suites[*]} ]] || suite -short -p=4 -skip='^Test(Cost|P[0-9]|RedisStoreOn)' "$${suites[@]}" || failed=yes # some wait for their servers most of the time
	[[ -z $$failed ]]

TESTS ?= ^TestPostgres(Conformance|TransactionalConformance|MigrateAtOnce|AttemptsArePrepared|HalfOpen|TransactionalCrash|Promotion)$$
postgres: ## Run the suites, a crash and a failover on PostgreSQL 16, 17 and 18 of the npm registry: TESTS=. runs all of lab/postgres
	@$(call use,go.work)
	$(suite)
	.ci/postgres '$(TESTS)'

# Each is a module of its own, so that what a proxy refuses takes down only itself: metrics, alerts and the dashboard on
# Prometheus' own engine, the console in Chromium, the recorded hour of an operator, blobs on an S3 server, Fiber v3, whose
# fasthttp is newer than that of v2, and examples.
outside: ## Run the tests of the modules outside of the workspace: alerts, console, blobs, Fiber v3, some examples
	@$(call use,off)
	$(suite)
	modules=$$(printf '%s\n' $$modules | grep -vxE 'tools|lab/(etcd|etcd/testserver|openapi)' || true) # check/test, etcd and contract run these
	$(call each,$$modules,suite ./...)

# Both modules at once, because they wait for leases most of the time.
etcd: ## Run the suites, histories and faults of store/etcd on clusters of a server that is built here
	@$(call use,off lab/etcd lab/etcd/testserver)
	$(suite)
	failed= running=()
	for module in $$modules; do
		(cd "$$module" && suite -short -timeout=20m ./...) &
		running+=($$!)
	done
	for tests in "$${running[@]}"; do wait "$$tests" || failed=yes; done
	[[ -z $$failed ]]

# The validator takes minutes to compile, so make contract is no part of check: run it when you change what
# core/protocol/contract generates, which its tests compare with files.
contract: $(BIN)/golangci-lint ## Check the OpenAPI documents, and a server's responses with them, with a validator (minutes to compile)
	@$(call use,off lab/openapi)
	$(call each,$$modules,go test ./... && "$(CURDIR)/$(BIN)/golangci-lint" run ./...)

check: ## Everything that CI runs: test/full and every check
	@.ci/run

checks: build figures newest postgres outside etcd docs isolated tidy fmt/check lint workflows check/test size release/dry vuln ## What check runs besides the tests

# One line for each folder at the top, and the sum, which may not be above the number in .ci/size. It only falls.
size: ## Count the lines of Go by folder, and fail above the number in .ci/size
	@find . -name '*.go' -not -path './.*' -not -path '*/node_modules/*' -exec wc -l {} + | awk -v most=$$(cat .ci/size) '
		$$2 != "total" { split($$2, folder, "/"); lines[folder[2]] += $$1; sum += $$1 }
		END { for (f in lines) printf "%7d %s\n", lines[f], f | "sort -rn"; close("sort -rn"); printf "%7d of %d in .ci/size\n", sum, most; exit sum > most }'

build: ## Build every package
	@$(call use,go.work)
	go build -o /dev/null $$packages

# The workspace in one run, which type-checks what the modules share once; isolated proves that each builds alone.
lint: $(BIN)/golangci-lint ## Lint every module
	@$(call use,go.work)
	[[ -z $$packages ]] || "$(BIN)/golangci-lint" run $$packages || workspace=failed
	$(call use,off)
	$(call each,$${modules/lab\/openapi/},"$(CURDIR)/$(BIN)/golangci-lint" run ./...)
	[[ $${workspace:-} != failed ]]

workflows: ## Lint the workflows of GitHub
	@cd tools
	GOWORK=off go tool actionlint -shellcheck= -pyflakes= ../.github/workflows/*.yml

release: ## Tag VERSION of every published module, after a dry run; it pushes nothing
	@.ci/toolchain git
	.ci/release $(VERSION)

release/dry: ## Release VERSION, or the next one, in a temporary clone, and use it as a user does
	@.ci/toolchain git
	.ci/release dry $(VERSION)

boundaries: override MODULES :=
boundaries: ## Prove the rules of modules that the linter does not see, which check/test does too
	@.ci/toolchain
	cd tools && GOWORK=off go test -count=1 ./boundaries

docs: ## Prove that the names, paths, targets and links in the documentation are there
	@(cd tools && GOWORK=off go run ./docs -root ..)
	.ci/site links

# The base of its addresses, which GitHub Pages takes from the name of the repository: SITE_BASE=/
export SITE_BASE ?= /reprise/

site: ## Build the website of docs/ into .cache/site/dist (needs npm)
	@.ci/site build

site/serve: ## Serve the website, and follow changes of docs/
	@.ci/site serve

site/check: ## Build the website and look at each page in Chromium: axe-core, width, links, other hosts, search
	@.ci/site check

isolated: ## Build each module, and vet it with its tests, without the workspace
	@$(call use,go.work)
	export GOWORK=off
	$(call each,$$modules,go build -o /dev/null ./... && go vet ./...)

docs/write: ## Make the tables of options and metrics in docs from the code
	@$(call tool,docs,-write)

tidy: ## Fail if go mod tidy would change a go.mod or go.sum
	@$(call use,go.work)
	inside=$$modules
	$(call use,off)
	$(call each,$$inside $$modules,"$(CURDIR)/.ci/tidy")

tidy/fix: ## Run go mod tidy in every module
	@export GOWORK=off
	$(call each,$$(find . -name go.mod -not -path './.*' -exec dirname {} +),go mod tidy)

fmt: $(BIN)/gofumpt $(BIN)/goimports ## Format every Go file
	@$(BIN)/gofumpt -w .
	$(BIN)/goimports -w .

fmt/check: $(BIN)/gofumpt $(BIN)/goimports ## Fail if fmt would change a file
	@unformatted=$$({ $(BIN)/gofumpt -l . && $(BIN)/goimports -l .; } | sort -u)
	[[ -z $$unformatted ]] || { printf 'run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; }

check/test: $(BIN)/gofumpt $(BIN)/goimports $(BIN)/golangci-lint ## Prove that the checks fail when they should
	@$(suite)
	cd tools
	GOWORK=off suite -count=1 -timeout=25m ./... # uncached: the cache does not know the files outside tools; some tests compile the frameworks anew

bench: ## Measure over HTTP beside floors, in 40 minutes: SUITES=list BENCHFLAGS='-rounds 12'
	@$(servers)
	go run ./lab/bench $(if $(SUITES),-suites $(SUITES)) $(BENCHFLAGS)

bench/peers: ## Measure beside other libraries: Fiber's own middleware, and npm's on Express
	@$(servers)
	(cd tools/peers && GOWORK=off go build -o ../../$(BIN)/peers .)
	$(BIN)/peers $(BENCHFLAGS)

# It judges on one machine and at one time, so its page is dated, and no check runs it.
judge/peers: ## Judge Reprise on every adapter and store, and other middlewares, and write docs/engineering/judge-scores.md
	@$(servers)
	cd tools/peers
	GOWORK=off go test -count=1 -v -timeout 30m ./judged -write "$(CURDIR)/docs/engineering"

bench/full: BENCHFLAGS += -full
bench/full: bench ## Like bench, with 10⁶ keys, an hour at a fixed rate and 10⁴ requests in flight

bench/pages: ## Make the tables and pictures of figures, and the line of the README, from docs/engineering/benchmarks.json
	@go run ./lab/bench pages

bench/micro: ## Run the benchmarks of Go in every module: BENCH=regexp COUNT=n
	@$(call use,go.work)
	$(servers)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $$packages

bench/diff: $(BIN)/benchstat ## Compare two outputs of bench/micro: OLD=file NEW=file
	@$(BIN)/benchstat $(or $(OLD),$(error OLD=file is missing)) $(or $(NEW),$(error NEW=file is missing))

fuzz: ## Run every fuzz target for FUZZTIME each
	@$(call use,go.work)
	.ci/fuzz $(FUZZTIME) $$packages

soak: ## Break processes, links and servers for DURATION with SEED, and write the figures into docs/engineering/faults.md
	@$(servers)
	export REPRISE_SOAK=$(DURATION) REPRISE_SEED=$(SEED)
	go test -count=1 -timeout 0 ./lab/faults -page "$(CURDIR)/docs/engineering/faults.md"

soak/lab: ## Run every test of the lab that takes faults for DURATION each
	@$(servers)
	export REPRISE_SOAK=$(DURATION) REPRISE_SEED=$(SEED)
	go test -race -count=1 -timeout 0 ./lab/...

wire: ## Send each adapter REQUESTS malformed requests with SEED, over raw sockets, and print what came of them
	@go test -v -count=1 -timeout 0 -run '^TestWire$$/^MalformedRequests$$' ./lab/nethttp ./lab/gin ./lab/echo ./lab/echo5 ./lab/fiber -wire.requests $(REQUESTS) -wire.seed $(SEED)
	GOWORK=off go test -C lab/fiber3 -v -count=1 -timeout 0 -run '^TestWire$$/^MalformedRequests$$' . -wire.requests $(REQUESTS) -wire.seed $(SEED)

vuln: $(BIN)/govulncheck ## Look for known vulnerabilities in what the modules call, in the newest releases
	@$(call use,lab/newest.work)
	.ci/vuln $(VULNDB) || exit 0
	$(call each,$$modules,"$(CURDIR)/$(BIN)/govulncheck" -db $(VULNDB) ./...)

# The tools are built from source, in the versions of tools/go.mod, and checked against its go.sum.
$(BIN)/golangci-lint: PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/gofumpt: PACKAGE := mvdan.cc/gofumpt
$(BIN)/goimports: PACKAGE := golang.org/x/tools/cmd/goimports
$(BIN)/benchstat: PACKAGE := golang.org/x/perf/cmd/benchstat
$(BIN)/govulncheck: PACKAGE := golang.org/x/vuln/cmd/govulncheck
$(BIN)/golangci-lint $(BIN)/gofumpt $(BIN)/goimports $(BIN)/benchstat $(BIN)/govulncheck: tools/go.mod tools/go.sum
	@.ci/toolchain
	cd tools
	GOWORK=off GOBIN="$(CURDIR)/$(BIN)" go install $(PACKAGE)
	touch "../$@"
