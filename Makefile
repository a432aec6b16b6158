# The commands of this repository. Everything but fmt, docs and golden only reads the tree.

GO       ?= go
BIN      ?= bin
LDFLAGS  ?= -s -w
TOOLS    := $(GO) tool -modfile=internal/tools/go.mod
T        ?= 30s

.PHONY: demo test build install lint docs golden fuzz bench cross clean

demo: ## show what an agent sees, with throw-away daemons and a sample API on loopback
	$(GO) run ./internal/e2e/demo

test: ## everything: units, golden files, protocol cases, fuzz seeds, end-to-end scripts
	$(GO) test $(TESTFLAGS) ./...

build: ## both programs into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/hbrestd ./cmd/hb-rest ./cmd/hbrestd-keyring

install: ## both programs into Go's bin folder
	CGO_ENABLED=0 $(GO) install -trimpath -ldflags '$(LDFLAGS)' ./cmd/hbrestd ./cmd/hb-rest ./cmd/hbrestd-keyring

lint: ## formatting, vet for three systems, staticcheck, errcheck
	@out=$$($(TOOLS) gofumpt -l cmd internal pkg); test -z "$$out" || { echo "not formatted (run gofumpt -w):"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	$(TOOLS) staticcheck ./...
	$(TOOLS) errcheck -ignoretests -exclude internal/tools/errcheck.txt ./...

docs: ## regenerate docs/errors.md and docs/cli.md
	$(GO) test ./internal/fault -run TestErrorsPage -update
	$(GO) test ./internal/cli -run TestCLIPage -update

golden: ## rewrite golden files with what the code says now; read the diff
	$(GO) test ./pkg/... ./internal/... -update

fuzz: ## every fuzz target for T (make fuzz T=5m)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(T) $$pkg; \
	  done; \
	done

bench: ## all benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

cross: ## the systems we build for
	@set -e; for t in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
	  echo "$$t"; GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hbrestd; \
	  GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hb-rest; \
	  GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hbrestd-keyring; \
	done

clean:
	rm -rf $(BIN)
