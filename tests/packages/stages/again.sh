# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC1091,SC2154 # lib.sh
#
# The packages, built again in another folder, at another time, in another time zone and language, by another user's name,
# on a machine of another name, with another umask and number of jobs: the same bytes.
. /job/lib.sh

localedef -i fr_CH -f UTF-8 fr_CH.UTF-8
hostname elsewhere
mkdir -p /srv/another/folder/which-has-a-longer-name
cd /srv/another/folder/which-has-a-longer-name || exit 1
umask 0002
tar -xf /job/onehop.tar.gz
cd onehop-* || exit 1
run "the packages are built again" 0 env "DEB_BUILD_OPTIONS=parallel=$(($(nproc) + 1))" TZ=Pacific/Kiritimati LC_ALL=fr_CH.UTF-8 LANGUAGE=fr \
    USER=another HOME=/nonexistent NO_FAKE_STAT=1 faketime -f +398d dpkg-buildpackage -us -uc -b
for deb in "$debs"/*.deb; do
    same "the same bytes: $(basename "$deb" | sed 's/_.*//')" "$deb" "../$(basename "$deb")"
done
mkdir -p /job/again
mv ../*.deb /job/again
rm -rf /srv/another
echo stage-end
