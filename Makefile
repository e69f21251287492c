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

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Both need Go alone, and outside of the workspace only the modules that they import.
ADDR ?=
demo: ## Run an example on real HTTP and print what clients, and operators, see
console: ## Serve the console over an example, with a stuck operation to resolve: ADDR=127.0.0.1:9000
demo console:
	@.ci/toolchain
	cd examples
	GOWORK=off go run ./quickstart $(if $(filter demo,$@),-demo,-open) $(if $(ADDR),-addr '$(ADDR)')

BREADTH ?=
test: ## Run every suite on real servers (installs them if it may), with the race detector; with BREADTH=yes long histories and many kills too
	@$(call use,go.work)
	$(suite)
	suite -race -vet=off $(if $(BREADTH),,-short) -timeout=20m $$packages # lint and isolated vet

# The race detector allocates itself, so the tests that count allocations (TestCost…, TestP… after the target that they
# gate) skip under it and run here, on the releases that the published modules require.
FIGURES := Cost|P[0-9]|Smoke$$|Also|Simulator|ASeedFixesItsRun$$|Draws$$
figures: ## Run the gates on exact figures, 10,000 simulations, as many draws of each framework, and the benchmarks for a second, without the race detector
	@$(call use,go.work)
	$(suite)
	mapfile -t folders < <(grep -rlE --include='*_test.go' '^func Test($(subst $$,,$(FIGURES)))' $$modules | xargs -n 1 dirname | sort -u)
	mapfile -t packages < <(go list -e -f '{{if not .Error}}{{.ImportPath}}{{end}}' "$${folders[@]/#/./}")
	suite -count=1 -run='^Test($(FIGURES))' "$${packages[@]}"

# lab/postgres, which takes minutes alone, is left to its conformance suite, and the breadth of lab/redis to nightly.
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

# Each is a module of its own, so that what a proxy refuses takes down only itself. check/test, etcd and contract run the rest.
outside: ## Run the tests of the modules outside of the workspace: alerts, console, blobs, Fiber v3, some examples
	@$(call use,off)
	$(suite)
	modules=$$(printf '%s\n' $$modules | grep -vxE 'tools|lab/(etcd|etcd/testserver|openapi)' || true)
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

contract: $(BIN)/golangci-lint ## Check the OpenAPI documents, and a server's responses with them, with a validator (minutes to compile)
	@$(call use,off lab/openapi)
	$(call each,$$modules,go test ./... && "$(CURDIR)/$(BIN)/golangci-lint" run ./...)

check: ## Everything that CI runs: test and every check
	@.ci/run

checks: figures newest postgres outside etcd docs isolated tidy fmt/check lint check/test size release/dry vuln ## What check runs besides test

# CI has a quick case of each.
nightly: ## What takes hours: the tests with their breadth, all of lab/postgres on each PostgreSQL, and DURATION for each of flaky and soak
	@failed=
	for target in "test BREADTH=yes" "postgres TESTS=." contract flaky soak; do
		$(MAKE) --no-print-directory $$target || failed="$$failed $${target%% *}"
	done
	[[ -z $$failed ]] || { echo "nightly failed in:$$failed" >&2; exit 1; }

flaky: ## Run the tests of each package again and again for DURATION, beside eight busy loops, and list what failed
	@$(call use,go.work)
	$(servers)
	.ci/flaky $(DURATION) $$packages

# A line for each folder at the top, and the sum.
size: ## Count the lines of Go, and fail above the number in .ci/size, which only falls
	@find . -name '*.go' -not -path './.*' -not -path '*/node_modules/*' -exec wc -l {} + | awk -v most=$$(cat .ci/size) '
		$$2 != "total" { split($$2, folder, "/"); lines[folder[2]] += $$1; sum += $$1 }
		END { for (f in lines) printf "%7d %s\n", lines[f], f | "sort -rn"; close("sort -rn"); printf "%7d of %d in .ci/size\n", sum, most; exit sum > most }'

# The workspace in one run, which type-checks what the modules share once; isolated proves that each builds alone.
lint: $(BIN)/golangci-lint ## Lint every module, and the workflows of GitHub
	@$(call use,go.work)
	[[ -z $$packages ]] || "$(BIN)/golangci-lint" run $$packages || workspace=failed
	$(call use,off)
	$(call each,$${modules/lab\/openapi/},"$(CURDIR)/$(BIN)/golangci-lint" run ./...)
	(cd tools && GOWORK=off go tool actionlint -shellcheck= -pyflakes= ../.github/workflows/*.yml)
	[[ $${workspace:-} != failed ]]

release: ## Tag VERSION of every published module, after a dry run; it pushes nothing
	@.ci/toolchain git
	.ci/release $(VERSION)
release/dry: ## Release VERSION, or the next one, in a temporary clone, and use it as a user does
	@.ci/toolchain git
	.ci/release dry $(VERSION)

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

isolated: ## Build each module, and vet it with its tests, without the workspace
	@$(call use,go.work)
	export GOWORK=off
	$(call each,$$modules,go build -o /dev/null ./... && go vet ./...)

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

SUITES ?=
BENCHFLAGS ?=
bench: ## Measure over HTTP beside floors, in 40 minutes: SUITES=list BENCHFLAGS='-rounds 12'; -full adds 10⁶ keys, an hour at a fixed rate, 10⁴ in flight
	@$(servers)
	go run ./lab/bench $(if $(SUITES),-suites $(SUITES)) $(BENCHFLAGS)
bench/peers: ## Measure beside other libraries: Fiber's own middleware, and npm's on Express
	@$(servers)
	(cd tools/peers && GOWORK=off go build -o ../../$(BIN)/peers .)
	$(BIN)/peers $(BENCHFLAGS)
judge/peers: ## Judge Reprise and other middlewares, and write docs/engineering/judge-scores.md, which is dated: no check runs it
	@$(servers)
	cd tools/peers
	GOWORK=off go test -count=1 -v -timeout 30m ./judged -write "$(CURDIR)/docs/engineering"

soak: ## Break processes, links and servers for DURATION with SEED, and write the figures into docs/engineering/faults.md
	@$(servers)
	export REPRISE_SOAK=$(DURATION) REPRISE_SEED=$(SEED)
	go test -count=1 -timeout 0 ./lab/faults -page "$(CURDIR)/docs/engineering/faults.md"

wire: ## Send each adapter REQUESTS malformed requests with SEED, over raw sockets, and print what came of them
	@set -- -v -count=1 -timeout 0 -run '^TestWire$$/^MalformedRequests$$'
	go test "$$@" ./lab/nethttp ./lab/gin ./lab/echo ./lab/echo5 ./lab/fiber -wire.requests $(REQUESTS) -wire.seed $(SEED)
	GOWORK=off go test -C lab/fiber3 "$$@" . -wire.requests $(REQUESTS) -wire.seed $(SEED)

vuln: $(BIN)/govulncheck ## Look for known vulnerabilities in what the modules call, in the newest releases
	@$(call use,lab/newest.work)
	.ci/vuln $(VULNDB) || exit 0
	$(call each,$$modules,"$(CURDIR)/$(BIN)/govulncheck" -db $(VULNDB) ./...)

# The tools are built from source, in the versions of tools/go.mod, and checked against its go.sum.
$(BIN)/golangci-lint: PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/gofumpt: PACKAGE := mvdan.cc/gofumpt
$(BIN)/goimports: PACKAGE := golang.org/x/tools/cmd/goimports
$(BIN)/govulncheck: PACKAGE := golang.org/x/vuln/cmd/govulncheck
$(BIN)/golangci-lint $(BIN)/gofumpt $(BIN)/goimports $(BIN)/govulncheck: tools/go.mod tools/go.sum
	@.ci/toolchain
	cd tools
	GOWORK=off GOBIN="$(CURDIR)/$(BIN)" go install $(PACKAGE)
	touch "../$@"
