# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=dash disable=SC2154 # of driver_names
#
# A compiler that fails in the middle of the modules.
. /job/lib.sh
driver_names

compiler=$(readlink -f "$(command -v gcc)")
mv "$compiler" "$compiler.real"
cat >"$compiler" <<END
#!/bin/sh
case "\$*" in
*/nv-pci.c*)
    echo "nv-pci.c: error: made to fail" >&2
    exit 1
    ;;
esac
exec $compiler.real "\$@"
END
chmod 755 "$compiler"
run "a build that fails" 4 deliver --apply
tail -n 4 /tmp/said | sed 's/^/#   /'
said "a build that fails: it says why" "made to fail"
mv "$compiler.real" "$compiler"
# DKMS leaves the folder of a build that failed, with its log, and empties it at the next.
is "a build that fails: all is as before, but for DKMS's folder of it" \
    "$(changed /root/before | tr ' ' '\n' | grep -v -e "^/var/lib/dkms/$tree/build\$" -e "^/var/lib/dkms/$tree/build/" | tr -d '\n')" ""
is "a build that fails: what DKMS says" "$(state "$kernel")" installed
run "a build that fails: probe of the module" 1 onehop unlock --probe "$(module "$kernel")"
echo stage-end
