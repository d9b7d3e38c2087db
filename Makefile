# The targets need Go, git and make. They install what else they need: `make lint`
# puts golangci-lint into ./bin, and `make test` installs redis-server and other programs
# that tests run with the system's package manager. With
# WEIR_REQUIRE_REDIS=0 and WEIR_REQUIRE_PROGRAMS=0 it installs nothing, and skips
# the tests that need what is missing. `make` alone lists the targets.

GO       ?= go
FUZZTIME ?= 10s
BENCH    ?= .
ARGS     ?= serve

LINT_VERSION := v2.15.0
LINT         := bin/golangci-lint-$(LINT_VERSION)

# actionlint reads the workflows of GitHub.
ACTIONLINT_VERSION := v1.7.12
ACTIONLINT         := bin/actionlint-$(ACTIONLINT_VERSION)

# The race detector needs a C compiler. Without one, Go reports CGO_ENABLED=0.
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

comma := ,
.DEFAULT_GOAL := help
.PHONY: help run deps redis programs test resp-clients docs check format vet portable fresh tidy protos generate released release packages dist rehearse race peers middleware clients types page built stories lint actionlint exact lualint luacheck fmt attack kills bloat fuzz bench bench-peers bench-keep drills losses cover model

help: ## list the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the service, or a command: make run ARGS="check rules.yaml"
	$(GO) run ./cmd/weir $(ARGS)

deps: redis programs # download the modules and install redis-server and proxies, for the tests
	@$(GO) mod download
	@cd contrib && $(GO) list -deps -test $(CONTRIB:contrib/%=./%/...) >/dev/null
	@cd benchmarks && $(GO) list -deps -test ./... >/dev/null

# The tests start their own Redis servers. WEIR_REQUIRE_REDIS=0 skips these tests
# where redis-server is missing. WEIR_REDIS_SERVER names another server program.
export WEIR_REQUIRE_REDIS ?= 1
REDIS = $(or $(WEIR_REDIS_SERVER),redis-server)

redis: # install redis-server if it is missing
	@[ "$(WEIR_REQUIRE_REDIS)" != 1 ] || command -v $(REDIS) >/dev/null || scripts/install-programs redis-server

# Some tests run web servers, Prometheus and others: scripts/install-programs lists them.
export WEIR_REQUIRE_PROGRAMS ?= 1

programs: # install the programs that tests run beside weir, if they are missing
	@[ "$(WEIR_REQUIRE_PROGRAMS)" != 1 ] || scripts/install-programs

# The modules of the repository. go.work joins the library, the program and what the
# program needs; contrib and benchmarks have a go.work of their own, and the tests of the
# manifests need none.
MODULES := store/redisstore store/pgstore cmd/weir . api client grpclimit internal/pgtest internal/redistest rulefile
CONTRIB := $(patsubst %/go.mod,%,$(wildcard contrib/*/go.mod))
DEPLOY  := deploy/compose deploy/kubernetes

# The packages of the workspace. Tests start in this order, so those that take longest are first.
PACKAGES := $(MODULES:%=./%/...)

# Flags of go test, such as -count=1.
TESTFLAGS ?=

# Many tests wait for Redis servers and proxies: others run meanwhile.
OVERLAP := -p 2 -parallel 6 -timeout 30m

# What takes longest, such as building the image, has testing.Short in front, or makes fewer
# random calls; make race runs it whole.
test: deps ## run the tests of all modules; installs what they run, unless WEIR_REQUIRE_REDIS=0 WEIR_REQUIRE_PROGRAMS=0
	$(GO) test -short $(OVERLAP) $(TESTFLAGS) $(PACKAGES)
	cd contrib && $(GO) test $(TESTFLAGS) $(CONTRIB:contrib/%=./%/...)
	cd benchmarks && $(GO) test -short $(TESTFLAGS) ./...
	@for dir in $(DEPLOY); do echo "cd $$dir && $(GO) test"; (cd $$dir && GOWORK=off $(GO) test $(TESTFLAGS) ./...) || exit 1; done

resp-clients: redis ## run Redis clients of Python, PHP and JavaScript against weir's Redis protocol; installs them
	scripts/install-clients
	WEIR_REQUIRE_CLIENTS=1 $(GO) test -count=1 -run RESPDocs -v ./cmd/weir/internal/server

exact: ## compare replay, compare and suggest with a count in Python that shares no code
	@mkdir -p bin && $(GO) build -o bin/weir ./cmd/weir
	scripts/exact-backtest bin/weir $(or $(LOG),examples/logins.jsonl.gz)

check: format vet portable fresh protos lint race model peers middleware clients built ## run everything that a change must pass

format: # fail and list the files that gofmt would change
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')) || exit 1; \
	if [ -n "$$files" ]; then echo "gofmt would change (make fmt):"; echo "$$files"; exit 1; fi

vet: # and fail if the library exports more than it should
	$(GO) vet $(PACKAGES)
	@$(GO) run ./scripts/surface -most 900 >/dev/null

# The code has files for single systems, and tests too. The systems and processors that
# nobody runs the tests on are at least compiled.
portable:
	@for target in windows/amd64 darwin/amd64 darwin/arm64 linux/arm64 linux/386; do echo "$$target: $(GO) vet"; \
	GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet $(PACKAGES) || exit 1; done

# Released modules require each other at a version that is not published, so they are
# tidied in a clone of the working tree that serves them.
fresh: # fail if go.mod or go.sum of a module is out of date
	$(GO) run ./scripts/release fresh

tidy: ## write go.mod and go.sum of every released module
	$(GO) run ./scripts/release tidy

# buf and its plugins are programs, not imports: they are installed into ./bin, and
# weir's go.mod has none of what they need. buf.gen.yaml names the plugins' versions.
BUF_VERSION  := v1.50.0
BUF          := bin/buf-$(BUF_VERSION)
PROTOC_GO    := bin/protoc-gen-go-v1.36.12
PROTOC_GRPC  := bin/protoc-gen-go-grpc-v1.6.2
PROTO_TOOLS  := $(BUF) $(PROTOC_GO) $(PROTOC_GRPC)

install = GOBIN=$(CURDIR)/bin $(GO) install $(1)@$(2) && mv bin/$(notdir $(1)) $@

$(BUF):
	$(call install,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))
$(PROTOC_GO):
	$(call install,google.golang.org/protobuf/cmd/protoc-gen-go,$(@:bin/protoc-gen-go-%=%))
$(PROTOC_GRPC):
	$(call install,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(@:bin/protoc-gen-go-grpc-%=%))

# The API is compared with the image of the last release, which is committed: a clone
# needs no other branch, no tag and no network for it.
protos: $(PROTO_TOOLS) # fail if api/ breaks buf's rules or the released API, or if generated code is out of date
	$(BUF) lint
	$(BUF) format -d --exit-code
	$(BUF) breaking --against api/released.binpb
	@new=$$(mktemp -d) && trap 'rm -r "$$new"' EXIT && $(BUF) generate -o "$$new" && \
	for file in $$(cd "$$new" && find . -type f); do \
		cmp -s "$$new/$$file" "$$file" || { echo "$$file is out of date: make generate"; exit 1; }; \
	done

generate: $(PROTO_TOOLS) ## write the code that is generated from api/
	$(BUF) format -w
	$(BUF) generate

released: $(BUF) ## note that the API is released as it is: from then on it only grows
	$(BUF) build -o api/released.binpb

# GoReleaser makes archives and packages, cyclonedx-gomod a bill of materials for each
# program.
GORELEASER_VERSION := v2.16.0
GORELEASER         := bin/goreleaser-$(GORELEASER_VERSION)
CYCLONEDX_VERSION  := v1.10.0
CYCLONEDX          := bin/cyclonedx-gomod-$(CYCLONEDX_VERSION)/cyclonedx-gomod
PACK = PATH="$(dir $(abspath $(CYCLONEDX))):$$PATH" $(abspath $(GORELEASER)) release --clean --skip=publish

# Each archive has the licences of what its program contains.
LICENSED = for archive in dist/weir_*.tar.gz; do \
	dir=$$(mktemp -d) && tar xzf "$$archive" -C "$$dir" && \
	$(GO) run ./scripts/notices -check "$$dir/THIRD_PARTY_NOTICES" "$$dir/weir" || exit 1; rm -rf "$$dir"; done

rehearse: ## make the release VERSION (v0.1.0) in a clone, and use its modules from a file proxy as their users will
	$(GO) run ./scripts/release rehearse $(VERSION)

packages: $(GORELEASER) $(CYCLONEDX) ## make archives and packages of this commit in ./dist, as a snapshot
	$(PACK) --snapshot
	$(LICENSED)

dist: $(GORELEASER) $(CYCLONEDX) # make all files of the release VERSION, whose tag is checked out, in ./dist
	GORELEASER_CURRENT_TAG=$(VERSION) $(PACK)
	$(LICENSED)
	for arch in amd64 arm64; do \
		GOFLAGS=-buildvcs=true GOARCH=$$arch scripts/image "dist/weir_$(VERSION:v%=%)_image_$$arch.tar" "weir:$(VERSION:v%=%)" || exit 1; \
	done
	cd dist && sha256sum weir_*_image_*.tar >>checksums.txt

# The tags come last, when all files are made. They are on a commit that is on no branch:
# its go.mod and go.sum name the release.
release: $(GORELEASER) $(CYCLONEDX) ## make the release VERSION: a tag for each module, and in ./dist all files; pushes nothing
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(GO) run ./scripts/release prepare "$(VERSION)" "$$dir/weir" && \
	$(MAKE) -C "$$dir/weir" dist VERSION=$(VERSION) GORELEASER=$(abspath $(GORELEASER)) CYCLONEDX=$(abspath $(CYCLONEDX)) && \
	rm -rf dist && cp -R "$$dir/weir/dist" . && \
	git fetch -q --no-tags "$$dir/weir" "refs/tags/$(VERSION):refs/tags/$(VERSION)" "refs/tags/*/$(VERSION):refs/tags/*/$(VERSION)" && \
	echo "Tagged, and all files are in ./dist. To publish:" && \
	echo "  git push origin" $$(git tag --list "*/$(VERSION)") && \
	echo "  git push origin $(VERSION)   # by itself: GitHub starts no workflow for more than three tags at once"

$(GORELEASER):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	mv bin/goreleaser $@
$(CYCLONEDX):
	GOBIN=$(CURDIR)/$(@D) $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)

race: deps # run all tests whole, with the race detector where there is a C compiler
	@$(if $(RACE),:,echo "no C compiler: running the tests without the race detector")
	$(GO) test $(RACE) -timeout 30m $(PACKAGES)
	$(GO) test -run TestBatchFloods ./cmd/weir # its memory is measured without the race detector

model: # explore all states of the protocol of leases, which takes too long with the race detector
	$(GO) test -run TestModel ./internal/lease

peers: # vet the benchmarks, and run every row of the page once
	cd benchmarks && $(GO) vet ./... && $(GO) test ./...

middleware: # vet the middleware for frameworks and the tests of the manifests
	cd contrib && $(GO) vet $(CONTRIB:contrib/%=./%/...)
	@for dir in $(DEPLOY); do (cd $$dir && export GOWORK=off && $(GO) mod tidy -diff && $(GO) vet ./...) || exit 1; done

# The linter and the generator are packages of npm, in api/package-lock.json.
NPM = cd api && npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --silent && npm run --silent

clients: programs ## lint api/openapi.yaml, and check that the types of the client for TypeScript are up to date
	@if command -v npm >/dev/null; then ($(NPM) lint) && ($(NPM) fresh); \
	else echo "no npm: api/openapi.yaml and the types of the client for TypeScript are not checked"; fi

# The page of weir serve is built by npm and committed, so that go install needs only Go.
UI       := cmd/weir/internal/page/ui
CHROMIUM ?= /usr/bin/chromium
UI_TOOLS = cd $(UI) && npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --silent

page: programs ## build the page of weir serve and of reports, and test it, in Chromium too; needs npm
	$(UI_TOOLS) && npm run --silent build && npm run --silent check && npm run --silent test
	@$(MAKE) --no-print-directory stories

stories: redis ## run the stories of the page in Chromium, or those with STORY in their names, after make page
	@mkdir -p bin && $(GO) build -o bin/weir ./cmd/weir
	@if command -v npm >/dev/null && command -v $(CHROMIUM) >/dev/null; then cd $(UI) && WEIR=$(CURDIR)/bin/weir CHROMIUM=$(CHROMIUM) npm run --silent e2e $(STORY); \
	else echo "no npm or no $(CHROMIUM): the stories of the page are not run"; fi

built: programs # fail if the page is not what its sources build
	@if command -v npm >/dev/null; then $(UI_TOOLS) && new=$$(mktemp -d) && trap 'rm -r "$$new"' EXIT && \
	npm run --silent check && npm run --silent test && OUT="$$new" npm run --silent build && \
	{ diff -r "$$new" ../built >/dev/null || { echo "$(UI:%/ui=%/built) is out of date: make page"; exit 1; }; }; \
	else echo "no npm: the page is not compared with its sources"; fi

docs: ## build the manual's site into docs/.vitepress/dist, and follow its links; needs npm
	cd docs && npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --silent && npm run --silent build

types: ## generate the types of the client for TypeScript from api/openapi.yaml
	$(NPM) generate

lint: $(LINT) $(ACTIONLINT) lualint ## run golangci-lint, actionlint and luacheck; the first run installs them (minutes)
	$(LINT) run $(PACKAGES)
	cd contrib && ../$(LINT) run $(CONTRIB:contrib/%=./%/...)
	cd benchmarks && ../$(LINT) run ./...
	$(ACTIONLINT)

$(LINT):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $@

actionlint: $(ACTIONLINT) # install actionlint if it is missing

$(ACTIONLINT):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	mv bin/actionlint $@

# The Lua programs that run inside Redis. A test assembles them from SCRIPT/lua.
SCRIPT = store/redisstore/internal/script
LUACHECK = luacheck

lualint: luacheck
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	(cd $(SCRIPT) && $(GO) test -count 1 -run '^TestPrograms$$' . -args -dump "$$dir") && \
	cp $(SCRIPT)/lua/.luacheckrc "$$dir" && cd "$$dir" && $(LUACHECK) -q .

luacheck: # install luacheck if it is missing
	@command -v $(LUACHECK) >/dev/null || scripts/install-luacheck

fmt: ## format the code
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

attack: ## attack a service on this machine, and print what its other clients notice (four minutes)
	$(GO) test -tags attack -count 1 -run '^TestAttack$$' -v ./cmd/weir

KILLS ?= 1000

kills: ## kill a service with a data directory KILLS (1000) times under load with each --sync, and compare every count (an hour)
	$(GO) test -count 1 -timeout 3h -run '^TestKilled$$' -v ./cmd/weir -args -kills $(KILLS)

bloat: ## measure how far PostgreSQL's table grows while a million keys change, with 500 calls a second (an hour)
	cd store/pgstore && WEIR_PG_RATE=500 $(GO) test -count 1 -timeout 2h -run '^TestSizeIsBounded$$' -v .

fuzz: ## run every fuzz target for FUZZTIME (10s) each
	@pkgs=$$($(GO) list $(PACKAGES)) || exit 1; \
	for pkg in $$pkgs; do \
		targets=$$($(GO) test -list '^Fuzz' "$$pkg") || { echo "$$targets"; exit 1; }; \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$pkg" || exit 1; \
		done; \
	done

bench: ## run all benchmarks, or those that match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(PACKAGES)

# It needs redis-server with redis-benchmark, and wrk, which `make deps` installs. The
# page and its pictures are written at the end, all from this run. PEERS holds flags and
# prints tables instead:
# PEERS="-quick", PEERS="-only hot,million", charts with -images DIR. A real-time
# priority is left (chrt), because it keeps the system's own threads from running.
bench-peers: ## measure weir and its peers, and write the page and benchmarks/RESULTS.md (twenty minutes)
	@chrt -o -p 0 $$$$ >/dev/null 2>&1; cd benchmarks && $(GO) run . $(or $(PEERS),-images ../docs/images -results RESULTS.md -page ../docs/explanation/benchmarks.md)

# A module of its own, because SQLite and pebble are large. `go mod tidy` does not
# work there: a module that SQLite's tests need is not to be had.
bench-keep: ## measure a data directory against pebble, bbolt and SQLite, or those that match BENCH (twelve minutes, two gigabytes)
	cd benchmarks/keep && $(GO) test -run '^$$' -bench '(Write|Load)/$(BENCH)' -benchtime 1x -timeout 0 -args -for 60s && \
	$(GO) test -run '^$$' -bench Take -benchtime 30s

drills: ## drill leases with real processes and faults, or those whose names begin with DRILLS (four minutes)
	cd benchmarks && $(GO) run ./leases $(if $(DRILLS),-only $(DRILLS))

losses: ## measure what each --sync loses at a kill and at a loss of power (ten minutes)
	$(GO) test -run '^$$' -bench Losses -benchtime 100x -timeout 20m ./internal/datadir

cover: ## write the test coverage to cover.out and print the total
	$(GO) test -coverpkg $(subst $(eval) ,$(comma),$(PACKAGES)) -coverprofile cover.out $(PACKAGES)
	@$(GO) tool cover -func cover.out | tail -n 1
