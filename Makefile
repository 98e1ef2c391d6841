# SPDX-License-Identifier: Apache-2.0
# The front door; the build itself is Meson's. `make help` lists what there is.

BUILD = build
VERSION = $(shell sed -n "s/.*version: '\([0-9.]*\)', license.*/\1/p" meson.build)
DIST = .
OPTIONS = # of Meson, for `make test`
export MAINTAINER # of Debian packages: Name <address>

help:
	@echo 'make run       build onehop (installing missing packages) and check this machine'
	@echo 'make test      build, then run the tests that need no download'
	@echo 'make install   install onehop, its manual pages and completions (DESTDIR= is honoured)'
	@echo 'make deb       build Debian packages of what is committed, in $(BUILD)-deb'
	@echo 'make dist      make onehop-VERSION.tar.gz of what is committed'
	@echo 'make portable  build a program that needs the C library alone, in $(BUILD)-portable'
	@echo 'make reader    build a static program for rescue shells, in $(BUILD)-reader'
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

dist:
	@git archive --format=tar --prefix=onehop-$(VERSION)/ HEAD | gzip -n >$(DIST)/onehop-$(VERSION).tar.gz
	@echo $(DIST)/onehop-$(VERSION).tar.gz

# In a copy of what is committed, so that the build leaves nothing here but the packages.
deb:
	@rm -rf $(BUILD)-deb && mkdir -p $(BUILD)-deb
	@git archive --format=tar --prefix=onehop-$(VERSION)/ HEAD | tar -x -C $(BUILD)-deb
	@cd $(BUILD)-deb/onehop-$(VERSION) && dpkg-buildpackage -us -uc -b $(if $(MAINTAINER),-m"$$MAINTAINER" -e"$$MAINTAINER")
	@ls $(BUILD)-deb/*.deb

# Programs for other machines than this one; what they need and lack: docs/packages.md.
portable reader:
	@tools/install-deps build static
	@test -f $(BUILD)-$@/build.ninja || meson setup $(BUILD)-$@ -Dlinking=$@ -Dtests=disabled --buildtype=release
	@meson compile -C $(BUILD)-$@ onehop
	@strip $(BUILD)-$@/onehop
	@$(BUILD)-$@/onehop --version
	@ls $(BUILD)-$@/onehop

clean:
	@rm -rf $(BUILD)

.PHONY: help run build test install dist deb portable reader clean
