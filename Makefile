# `make help` lists what there is. Every target sets itself up: a machine with Rust, Node, make, Python 3 and
# Debian's packages is enough. What is built or installed is kept outside the clone, so that a fresh clone
# does not start from nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolgate
export CARGO_TARGET_DIR ?= $(CACHE)/target
export TOOLS := $(CACHE)/tools

# A changed version makes a new folder; what is there is not installed again.
DENY_VERSION := 0.20.2
DENY := $(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
# The sdist of this Python package carries the official JSON Schema test suite.
SUITE_VERSION := 4.26.0
SUITE := $(TOOLS)/json-schema-suite-$(SUITE_VERSION)
PYTHON := $(TOOLS)/python-$(shell sha256sum scripts/requirements.txt | cut -c1-12)
# A server that still needs the first version of the MCP library.
PYTHON_SQLITE := $(TOOLS)/python-$(shell sha256sum scripts/requirements-mcp-sqlite.txt | cut -c1-12)
# The official A2A clients of both versions, and a framework whose client brings its own tools.
PYTHON_A2A := $(TOOLS)/python-$(shell sha256sum scripts/requirements-a2a.txt | cut -c1-12)
PYTHON_A2A_03 := $(TOOLS)/python-$(shell sha256sum scripts/requirements-a2a-03.txt | cut -c1-12)
PYTHON_AG2 := $(TOOLS)/python-$(shell sha256sum scripts/requirements-ag2.txt | cut -c1-12)
# What installs our packages and looks over our image.
PYTHON_PACKAGES := $(TOOLS)/python-$(shell sha256sum scripts/requirements-packages.txt | cut -c1-12)
RUST_A2A_SOURCE := crates/gateway/tests/it/a2a/rust_client
RUST_A2A := $(TOOLS)/a2a-rust-$(shell cat $(RUST_A2A_SOURCE)/Cargo.lock $(RUST_A2A_SOURCE)/src/main.rs | sha256sum | cut -c1-12)

GATEWAY := $(CARGO_TARGET_DIR)/debug/toolgate
# Two clones that test at once would swap each other's binary.
LOCK := $(CARGO_TARGET_DIR)/test.lock

.PHONY: help
help:
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' \
	  $(MAKEFILE_LIST)

##@ Try it

.PHONY: run
run: console ## start the gateway with its console at http://127.0.0.1:8787; ARGS="--agents agents" and more: docs/configuration.md
	cargo run --locked -p toolgate -- serve $(ARGS)

# Built into the binary by `crates/console`, so it comes before cargo. What it is made of stands in four packages.
CONSOLE := packages/console/dist/.built
CONSOLE_SOURCES := $(shell find packages/console packages/client packages/react packages/plugin -type f \
  -not -path '*/node_modules/*' -not -path '*/dist/*' 2> /dev/null)

.PHONY: console
console: $(CONSOLE) ## build the web console, when its sources have changed

$(CONSOLE): node_modules/installed scripts/compress $(CONSOLE_SOURCES)
	npm run build:sdk --silent
	npm run build --silent --workspace @toolgate/console
	node scripts/compress packages/console/dist
	touch $@

##@ Before a commit

.PHONY: test
test: ## everything that must hold: check, all tests, the HTTP surface against its own description, JavaScript
	@mkdir -p $(CARGO_TARGET_DIR)
	@flock --nonblock $(LOCK) true || echo "waiting: another make test uses $(CARGO_TARGET_DIR)"
	@flock --close $(LOCK) $(MAKE) --no-print-directory console check tests json-schema-suite schemathesis mcp-conformance js packages-test

.PHONY: check
check: format lint docs architecture sdk-crates deny advisories-if-reachable spelling fresh ## what can be said without running anything

# The test compares the kept OpenAPI document with what the handlers say, or rewrites it.
# Asked of the whole workspace, like all tests, so that no dependency is built twice with other features.
GOLDEN := --locked --workspace --test it openapi::the_kept_document_is_what_the_handlers_say

.PHONY: generate
generate: node_modules/installed ## write the generated files anew
	REWRITE_GOLDEN=1 cargo test $(GOLDEN)
	npm run generate

##@ Parts of make test

.PHONY: format
format: ## cargo fmt, as a question
	cargo fmt --all --check
	cargo fmt --manifest-path bench/Cargo.toml --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check

.PHONY: lint
lint: ## clippy, warnings denied
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p toolgate-client --no-default-features --all-targets -- -D warnings # without its plugins and TLS
	cargo clippy --locked --manifest-path bench/Cargo.toml --all-targets -- -D warnings

.PHONY: docs
docs: ## rustdoc, warnings denied
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

.PHONY: architecture
architecture: ## ARCHITECTURE.md names files and tests that exist
	scripts/architecture

.PHONY: sdk-crates
sdk-crates: ## the Rust SDK has no more crates than it may
	scripts/sdk-crates

.PHONY: deny
deny: $(DENY) ## licences, sources and banned crates
	$(DENY) --locked check licenses bans sources

.PHONY: advisories
advisories: $(DENY) ## known vulnerabilities; needs the advisory database, which is fetched
	scripts/advisories $(DENY)

.PHONY: advisories-if-reachable
advisories-if-reachable: $(DENY)
	scripts/advisories $(DENY) --if-reachable

.PHONY: spelling
spelling: $(PYTHON)/installed ## typos
	$(PYTHON)/bin/typos

.PHONY: fresh
fresh: ## generated files are what the code generates
	cargo test $(GOLDEN) | tee >(cat >&2) | grep ' 1 passed' > /dev/null

# Real MCP servers: the bridges of the SDKs use one, the gateway eight. The MCP door is tested with the official Python client.
MCP_SERVERS := TOOLGATE_TEST_MCP_SERVER_TIME=$(PYTHON)/bin/mcp-server-time TOOLGATE_TEST_MCP_PYTHON=$(PYTHON)/bin \
  TOOLGATE_TEST_MCP_SQLITE=$(PYTHON_SQLITE)/bin TOOLGATE_TEST_MCP_NODE=$(CURDIR)/node_modules/.bin
A2A_CLIENTS := TOOLGATE_TEST_A2A_PYTHON=$(PYTHON_A2A)/bin/python TOOLGATE_TEST_A2A_PYTHON_03=$(PYTHON_A2A_03)/bin/python \
  TOOLGATE_TEST_AG2_PYTHON=$(PYTHON_AG2)/bin/python TOOLGATE_TEST_A2A_RUST=$(RUST_A2A)/debug/a2a-rust-client

TEST_TOOLS := $(PYTHON)/installed $(PYTHON_SQLITE)/installed $(PYTHON_A2A)/installed $(PYTHON_A2A_03)/installed \
  $(PYTHON_AG2)/installed $(RUST_A2A)/installed node_modules/installed

.PHONY: tests
tests: $(TEST_TOOLS) services ## cargo test
	INSTA_UPDATE=no $(MCP_SERVERS) $(A2A_CLIENTS) TOOLGATE_TEST_PYTHON=$(PYTHON)/bin/python cargo test --locked --workspace

.PHONY: json-schema-suite
json-schema-suite: $(SUITE)/tests ## the official JSON Schema test suite through our validator
	JSON_SCHEMA_SUITE=$(SUITE) cargo test --locked --workspace --test it official_suite::the_required_part_passes -- \
	  --ignored --nocapture | tee >(cat >&2) | grep ' 1 passed' > /dev/null

.PHONY: schemathesis
schemathesis: $(PYTHON)/installed ## property-based requests against /openapi.json
	cargo test --locked --workspace --no-run --quiet
	scripts/schemathesis $(GATEWAY) $(PYTHON)/bin/schemathesis

.PHONY: mcp-conformance
mcp-conformance: node_modules/installed ## the official conformance suite of MCP, both revisions
	cargo test --locked --workspace --no-run --quiet
	scripts/mcp-conformance client $(CARGO_TARGET_DIR)/debug/examples/conformance-client
	scripts/mcp-conformance server $(GATEWAY) $(CARGO_TARGET_DIR)/debug/mcp-fixture

.PHONY: js
js: node_modules/installed chromium $(PYTHON)/installed ## the JavaScript packages: lint, types, generated files, packaging, tests against the gateway
	cargo test --locked --workspace --no-run --quiet
	npm run check
	TOOLGATE_BIN=$(GATEWAY) TOOLGATE_TEST_MCP_SERVER_TIME=$(PYTHON)/bin/mcp-server-time npm test

# The browser tests drive Debian's; `CHROMIUM_BIN` names another.
.PHONY: chromium
chromium:
	@test -x "$${CHROMIUM_BIN:-/usr/bin/chromium}" || { \
	  echo "installing chromium, which the browser tests drive"; \
	  as_root=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$as_root apt-get update --quiet && $$as_root apt-get install --yes --quiet --no-install-recommends chromium; }

# The tests start servers of their own with these programs, on free ports.
.PHONY: services
services: ## PostgreSQL, Redis and what makes network namespaces for the tests, installed when missing
	@test -x /usr/bin/redis-server -a -x /sbin/tc -a -n "$$(ls -d /usr/lib/postgresql/*/bin/initdb 2> /dev/null)" || { \
	  echo "installing postgresql, redis-server and iproute2, which the tests start"; \
	  as_root=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$as_root apt-get update --quiet && $$as_root apt-get install --yes --quiet --no-install-recommends postgresql redis-server iproute2; }

# Not `npm ci`: that wants the optional binaries of every platform in the lock file, and fails where one cannot be had.
node_modules/installed: package-lock.json
	npm install --no-save --no-audit --no-fund
	touch $@

.PHONY: packages-test
packages-test: $(PYTHON_PACKAGES)/installed ## the npm packages and the wheel: built, installed from the files, started; the Dockerfile, linted
	cargo test --locked --workspace --no-run --quiet
	$(PYTHON_PACKAGES)/bin/hadolint Dockerfile
	TOOLGATE_BIN=$(GATEWAY) UV=$(PYTHON_PACKAGES)/bin/uv node --test packaging/packages.test.js

##@ More

.PHONY: deploy-check
deploy-check: ## what is in deploy/, read by the programs that it is for, as far as they are installed
	deploy/check

.PHONY: image-check
image-check: ## the last stage of the Dockerfile on a root file system of Debian packages; needs root
	cargo test --locked --workspace --no-run --quiet
	stripped=$$(mktemp --directory); trap 'rm -r "$$stripped"' EXIT; \
	  strip -o "$$stripped/toolgate" $(GATEWAY); packaging/image-check "$$stripped/toolgate"

# With a fresh key each time, which is thrown away: nobody has to keep it secret, and nobody can sign in its name later.
.PHONY: sign-examples
sign-examples: node_modules/installed ## build the packages of examples/plugins from their sources and sign them with a new key
	npm run build --silent --workspace @toolgate/plugin
	cargo build --locked --workspace --bin toolgate
	keys=$$(mktemp --directory); trap 'rm -r "$$keys"' EXIT; \
	  $(GATEWAY) plugin keygen --out "$$keys/curator"; \
	  TOOLGATE_BIN=$(GATEWAY) node examples/plugins/build.js toolgate-examples "$$keys/curator.key.pem"; \
	  cp "$$keys/curator.pub.pem" examples/plugins/curator.pub.pem

# Each round is a node killed, stopped or restarted, a cut network, or a server away or replaced, under load; see
# crates/gateway/tests/it/nodes/storm.rs. A failure is had again with the same SEED, more or less. OLD is an older binary,
# which then runs beside the present one.
ROUNDS ?= 200
SEED ?= 1
OLD ?=
.PHONY: torture
torture: services ## long: a thousand kills of one node, then three nodes under every trouble for ROUNDS=200 rounds from SEED=1, some of an OLD= binary
	TOOLGATE_KILLS=1000 TOOLGATE_KILLS_POSTGRES=200 cargo test --locked --workspace --test it kill:: -- --nocapture --test-threads 1
	TOOLGATE_STORM_ROUNDS=$(ROUNDS) TOOLGATE_INTAKE_CALLS=$(ROUNDS) TOOLGATE_SEED=$(SEED) TOOLGATE_TEST_OLD_BIN=$(abspath $(OLD)) \
	  cargo test --locked --workspace --test it nodes:: -- --nocapture --test-threads 1

.PHONY: fuzz
fuzz: ## the package parser, the canonicaliser and the sandbox's protocol, each for ARGS seconds (60)
	fuzz/run $(ARGS)

.PHONY: bench
bench: ## the gateway beside a bare relay and the AI SDK, as ratios; ARGS=mcp: calls of MCP tools, ARGS=nodes: several nodes beside Restate and DBOS
	bench/run $(ARGS)

# Unoptimised: it is built in half the time and used for seconds.
$(DENY):
	cargo install cargo-deny --version $(DENY_VERSION) --locked --debug --root $(TOOLS)/cargo-deny-$(DENY_VERSION) \
	  --target-dir $(TOOLS)/cargo-deny-build
	rm -rf $(TOOLS)/cargo-deny-build

$(PYTHON)/installed:
	python3 -m venv $(PYTHON)
	$(PYTHON)/bin/pip install --quiet --disable-pip-version-check --requirement scripts/requirements.txt
	touch $@

$(PYTHON_SQLITE)/installed:
	python3 -m venv $(PYTHON_SQLITE)
	$(PYTHON_SQLITE)/bin/pip install --quiet --disable-pip-version-check --requirement scripts/requirements-mcp-sqlite.txt
	touch $@

$(PYTHON_A2A)/installed:
	python3 -m venv $(PYTHON_A2A)
	$(PYTHON_A2A)/bin/pip install --quiet --disable-pip-version-check --requirement scripts/requirements-a2a.txt
	touch $@

$(PYTHON_A2A_03)/installed:
	python3 -m venv $(PYTHON_A2A_03)
	$(PYTHON_A2A_03)/bin/pip install --quiet --disable-pip-version-check --requirement scripts/requirements-a2a-03.txt
	touch $@

$(PYTHON_AG2)/installed:
	python3 -m venv $(PYTHON_AG2)
	$(PYTHON_AG2)/bin/pip install --quiet --disable-pip-version-check --requirement scripts/requirements-ag2.txt
	touch $@

$(PYTHON_PACKAGES)/installed:
	python3 -m venv $(PYTHON_PACKAGES)
	$(PYTHON_PACKAGES)/bin/pip install --quiet --disable-pip-version-check --requirement scripts/requirements-packages.txt
	touch $@

$(RUST_A2A)/installed:
	cargo build --quiet --locked --manifest-path $(RUST_A2A_SOURCE)/Cargo.toml --target-dir $(RUST_A2A)
	touch $@

$(SUITE)/tests: | $(PYTHON)/installed
	rm -rf $(SUITE) $(SUITE).part
	mkdir -p $(SUITE).part
	$(PYTHON)/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
	  --dest $(SUITE).part jsonschema==$(SUITE_VERSION)
	tar -xzf $(SUITE).part/jsonschema-$(SUITE_VERSION).tar.gz -C $(SUITE).part --strip-components=2 \
	  jsonschema-$(SUITE_VERSION)/json/tests
	mv $(SUITE).part $(SUITE)
