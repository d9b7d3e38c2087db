# Everything here needs Go, git and make; what else a target needs, it installs:
# below ./bin, and for the tests redis-server, from the system's packages. `make`
# alone lists the targets.

GO       ?= go
FUZZTIME ?= 10s
BENCH    ?= .
ARGS     ?= serve

LINT_VERSION := v2.15.0
LINT         := bin/golangci-lint-$(LINT_VERSION)

# The race detector needs a C compiler. Without one Go says CGO_ENABLED=0.
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.DEFAULT_GOAL := help
.PHONY: help run deps redis test check format vet fresh race peers lint fmt fuzz bench bench-peers cover

help: ## list the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## run the service, or another command: make run ARGS="check rules.yaml"
	$(GO) run ./cmd/weir $(ARGS)

deps: redis # what the tests need beside Go: its modules, and Redis
	@$(GO) mod download

# Tests start Redis servers of their own. WEIR_REQUIRE_REDIS=0 skips those tests
# where Redis is missing; WEIR_REDIS_SERVER names another server program.
export WEIR_REQUIRE_REDIS ?= 1
REDIS = $(or $(WEIR_REDIS_SERVER),redis-server)

redis: # install redis-server where it is missing
	@[ "$(WEIR_REQUIRE_REDIS)" != 1 ] || command -v $(REDIS) >/dev/null || scripts/install-redis

test: deps ## run the tests
	$(GO) test ./...

check: format vet fresh lint race peers ## all that a change must pass

format: # fails and names the files that gofmt would change
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')) || exit 1; \
	if [ -n "$$files" ]; then echo "gofmt would change (make fmt):"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

fresh: # fails when a file that is made from others is out of date
	$(GO) mod tidy -diff

race: deps
	@$(if $(RACE),:,echo "no C compiler: the tests run without the race detector")
	$(GO) test $(RACE) ./...

peers: # the benchmarks, a module of their own, still build, and their peers limit
	cd benchmarks && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./...

lint: $(LINT) ## run golangci-lint, which it installs when missing (minutes, once)
	$(LINT) run

$(LINT):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $@

fmt: ## format the code
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

fuzz: ## run every fuzz target for FUZZTIME (10s) each
	@pkgs=$$($(GO) list ./...) || exit 1; \
	for pkg in $$pkgs; do \
		targets=$$($(GO) test -list '^Fuzz' "$$pkg") || { echo "$$targets"; exit 1; }; \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$pkg" || exit 1; \
		done; \
	done

bench: ## run the benchmarks, all or those that match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

# The Redis rows need redis-server, which `make deps` installs; without it the
# document says so. PEERS are flags: PEERS="-quick", PEERS="-only hot,million";
# with them no charts are drawn, unless PEERS has -images DIR.
bench-peers: ## print weir and its peers side by side, as Markdown (ten minutes)
	@cd benchmarks && $(GO) run . $(or $(PEERS),-images ../docs/images)

cover: ## write the tests' coverage to cover.out and print the total
	$(GO) test -coverpkg ./... -coverprofile cover.out ./...
	@$(GO) tool cover -func cover.out | tail -n 1
