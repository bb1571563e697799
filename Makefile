# The front door. Meson does the work; this gives it the names people try first.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
MESON := meson
NINJA := ninja

.DEFAULT_GOAL := build
.PHONY: build build-tests demo check test install bench format clean help

build: ## build/weft (installs missing packages with apt when root)
	@scripts/deps build
	@test -f $(BUILD)/build.ninja || $(MESON) setup $(BUILD) --prefix=$(PREFIX)
	@$(NINJA) -C $(BUILD)

demo: build ## a target with two namespaces on loopback, until Ctrl-C
	@exec scripts/demo

check: build-tests ## what one runs after every edit: static, unit and a few func tests, a minute
	@tests/run static unit 'func/target_io.*' func/target_live.epoll func/host_cli.uring

test: build-tests ## every test; ends with "N passed, N failed, N skipped"
	@tests/run

build-tests:
	@scripts/deps test
	@$(MAKE) --no-print-directory build
	@# Configured before the test packages were there: without the unit tests, or what is counted.
	@test -d $(BUILD)/tests/unit -a -x $(BUILD)/bench/budget_load || { $(MESON) setup --reconfigure $(BUILD) && $(NINJA) -C $(BUILD); }

install: build ## install below DESTDIR/PREFIX (default /usr/local)
	@$(MESON) configure $(BUILD) -Dprefix=$(PREFIX)
	@$(NINJA) -C $(BUILD)
	@DESTDIR='$(DESTDIR)' $(MESON) install -C $(BUILD) --no-rebuild

bench: build ## measure beside the limit, and others; rewrites bench/RESULTS.md
	@bench/run

format: ## clang-format over the C files
	@find src include plugins examples tests bench -name '*.[ch]' 2>/dev/null | xargs -r clang-format -i

clean: ## remove every build folder
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
