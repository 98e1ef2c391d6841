# SPDX-License-Identifier: Apache-2.0
# The front door; the build itself is Meson's. `make help` lists what there is.

BUILD = build
OPTIONS = # of Meson, for `make test`

help:
	@echo 'make run       build onehop (installing missing packages) and check this machine'
	@echo 'make test      build, then run the tests that need no download'
	@echo 'make install   install onehop, its manual pages and completions (DESTDIR= is honoured)'
	@echo 'make clean     remove the build folder'
	@echo 'Everything else: meson configure $(BUILD); meson test -C $(BUILD) --list'

run: build
	@tools/run-here $(BUILD)/onehop

build:
	@tools/install-deps build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD)
	@meson compile -C $(BUILD)

test:
	@tools/install-deps build test
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) -Dtests=enabled $(OPTIONS)
	@meson configure $(BUILD) -Dtests=enabled $(OPTIONS)
	@meson compile -C $(BUILD)
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs --no-suite spin

install: build
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD)

.PHONY: help run build test install clean
