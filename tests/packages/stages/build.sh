# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # lib.sh
#
# The packages, built as `make deb` does, of the archive that `make dist` makes; and what lintian says.
. /job/lib.sh

mkdir -p /job/debs
cd /job || exit 1
tar -xf onehop.tar.gz
cd onehop-* || exit 1
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
run "the packages are built" 0 env "DEB_BUILD_OPTIONS=parallel=$(nproc)" dpkg-buildpackage -us -uc -b
[ "$got" = 0 ] || exit 1
run "make install, with DESTDIR" 0 make install "BUILD=$(echo obj-*)" DESTDIR=/tmp/dest
(cd /tmp/dest && find . ! -type d | sort) >/tmp/installed
cd .. || exit 1
for deb in *.deb; do
    case $deb in
    *-dbgsym*) ;;
    *) dpkg -c "$deb" | awk '$1 !~ /^d/ { print $6 }' ;;
    esac
done | grep -v '^./usr/share/doc/' | sed 's/[.]gz$//; s|zsh/vendor-completions|zsh/site-functions|' | sort >/tmp/packaged
same "make install installs what the packages have" /tmp/installed /tmp/packaged
is "the packages" "$(find . -maxdepth 1 -name '*.deb' ! -name '*-dbgsym*' | sort | tr '\n' ' ')" \
    "./onehop-dev_${version}_amd64.deb ./onehop-nccl_${version}_amd64.deb ./onehop_${version}_amd64.deb "
# The profile: Ubuntu's wants the name of one of its releases in the changelog.
run "lintian" 0 lintian --allow-root --profile debian --fail-on error,warning ./*.changes
sed 's/^/#   /' /tmp/said
find . -maxdepth 1 -name '*.deb' ! -name '*-dbgsym*' -exec mv {} debs/ \;
echo stage-end
