# The commands of this repository. Everything but fmt, docs and golden only reads the tree.

GO       ?= go
BIN      ?= bin
LDFLAGS  ?= -s -w
TOOLS    := $(GO) tool -modfile=internal/tools/go.mod
T        ?= 30s

.PHONY: demo test build install lint docs golden fuzz bench soak cross package package-check check-full clean

demo: ## show what an agent sees, with throw-away daemons and a sample API on loopback
	$(GO) run ./internal/e2e/demo

test: ## everything: units, golden files, protocol cases, fuzz seeds, end-to-end scripts
	$(GO) test $(TESTFLAGS) ./...
	$(GO) -C internal/tools test $(TESTFLAGS) ./...

build: ## the three programs into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/hbrestd ./cmd/hb-rest ./cmd/hbrestd-keyring

install: ## the three programs into Go's bin folder
	CGO_ENABLED=0 $(GO) install -trimpath -ldflags '$(LDFLAGS)' ./cmd/hbrestd ./cmd/hb-rest ./cmd/hbrestd-keyring

lint: ## formatting, vet for three systems, staticcheck, errcheck
	@out=$$($(TOOLS) gofumpt -l cmd internal pkg); test -z "$$out" || { echo "not formatted (run gofumpt -w):"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) -C internal/tools vet ./...
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	$(TOOLS) staticcheck ./...
	$(TOOLS) errcheck -ignoretests -exclude internal/tools/errcheck.txt ./...

docs: ## regenerate docs/errors.md, docs/cli.md, manual pages and completions
	$(GO) test ./internal/fault -run TestErrorsPage -update
	$(GO) test ./internal/cli -run TestCLIPage -update
	$(GO) test ./internal/shim -run TestManual -update

golden: ## rewrite golden files with what the code says now; read the diff
	$(GO) test ./pkg/... ./internal/... -update

fuzz: ## every fuzz target for T (make fuzz T=5m)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(T) $$pkg; \
	  done; \
	done

bench: ## benchmarks beside their floors, and hb-rest beside the least program of its design (BENCH='-rounds 9 -out FILE.md')
	$(GO) test ./pkg/recipe -run '^$$' -bench Render -benchtime 10000x -cpu 1 -count 3
	$(GO) test ./pkg/recipe -run '^$$' -bench Read -benchtime 20x -cpu 1 -count 3
	$(GO) test ./internal/outbound -run '^$$' -bench Decode -benchtime 200ms -cpu 1 -count 3
	$(GO) test ./internal/daemon -run '^$$' -bench Call -benchtime 5000x -count 3
	$(GO) test ./internal/daemon -run '^$$' -bench AuditOfRead -benchtime 40x -count 3
	$(GO) run ./internal/e2e/bench $(BENCH)

cross: ## the systems we build for
	@set -e; for t in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
	  GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/cross/$$t/ ./cmd/hbrestd ./cmd/hb-rest ./cmd/hbrestd-keyring; \
	  case $$t in linux/amd64) echo "$$t";; linux/*) echo "$$t: cross-built, not run";; *) echo "$$t: vetted and cross-built, not run";; esac; \
	done

package: ## deb, rpm, tar.gz and zip into dist/, of the commit that is checked out (PACK='-targets linux/amd64' makes fewer)
	$(GO) -C internal/tools run ./pack $(PACK)

package-check: ## make package in two clones, in folders of different names: the bytes must be the same
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	git clone -q . "$$tmp/a"; git clone -q "$$tmp/a" "$$tmp/another folder"; \
	for name in a "another folder"; do \
	  $(GO) -C internal/tools run ./pack -root "$$tmp/$$name" -out "$$tmp/$$name/dist" $(PACK); \
	done; \
	cmp "$$tmp/a/dist/SHA256SUMS" "$$tmp/another folder/dist/SHA256SUMS"; \
	echo "twice the same bytes:"; cat "$$tmp/a/dist/SHA256SUMS"; \
	rm -rf dist; mv "$$tmp/a/dist" dist

soak: ## load and faults, each run with a verdict; ONLY=expression for some, SOAK="-out FILE" for a table
	$(GO) run ./internal/e2e/soak $(if $(ONLY),-only '$(ONLY)') $(SOAK)

check-full: ## .ci/run, and what takes too long for each change: packages for all systems, load, fuzzing
	.ci/run
	$(MAKE) package-check
	npm --prefix internal/e2e/clients/openapi install --ignore-scripts --no-audit --no-fund
	HB_E2E_NPM=1 $(GO) test -count=1 -timeout 20m ./internal/importer -run TestOpenAPIOfOthers -v
	$(MAKE) soak ONLY='^64 callers'
	$(MAKE) fuzz T=$(T)

clean:
	rm -rf $(BIN) dist
