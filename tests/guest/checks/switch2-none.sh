# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: none
. /lib.sh

is "no IOMMU" "$(iommus)" ""
is "no IOMMU groups" "$(group_types)" ""
for port in 20:00.0 22:00.0 22:01.0 22:02.0 60:00.0 62:00.0; do
    is "ACS off: $port" "$(acs $port)" 0000
done
is "no ACS capability: upstream port" "$(acs 21:00.0)" none
is "no ACS capability: port of the NVMe drive" "$(acs 62:01.0)" none

is "H100: ID" "$(sys 23:00.0 vendor) $(sys 23:00.0 device) $(sys 23:00.0 class)" "0x10de 0x2330 0x030200"
is "ConnectX-7: ID" "$(sys 25:00.0 vendor) $(sys 25:00.0 device) $(sys 25:00.0 class)" "0x15b3 0x1021 0x020700"
is "H100: NUMA node" "$(sys 23:00.0 numa_node)" 0
is "RTX 4090: NUMA node" "$(sys 63:00.0 numa_node)" 1
is "two NUMA nodes" "$(cat /sys/devices/system/node/online)" 0-1
is "H100: the large BAR is BAR 2" "$(bar 23:00.0 2)" 131072
is "H100: sizes offered, 64M to 128G" "$(sys 23:00.0 resource2_resize)" 000000000003ffc0
is "RTX 4090: BAR 1" "$(bar 63:00.0 1)" 256
check "RTX 4090: no Resizable BAR" test ! -e /sys/bus/pci/devices/0000:63:00.0/resource1_resize
is "H100: link" "$(link 23:00.0)" "32.0x16 of 32.0x16"
is "H100's port: link" "$(link 22:00.0)" "32.0x16 of 32.0x16"
like "H100: AtomicOps completer" "$(lspci -s 23:00.0 -vv)" "*AtomicOpsCap: 32bit+ 64bit+*"
like "port: AtomicOps routing" "$(lspci -s 22:00.0 -vv)" "*AtomicOpsCap: Routing+*"
like "port: payload" "$(lspci -s 22:00.0 -vv)" "*DevCap:*MaxPayload 512 bytes*DevCtl:*MaxPayload 128 bytes*"
is "ATS off without an IOMMU" "$(setpci -s 25:00.0 ECAP_ATS+6.w)" 0000

is "user: is not root" "$(as_user 'id -u')" 1000
is "user: sees 64 bytes of configuration space" "$(as_user 'wc -c < /sys/bus/pci/devices/0000:23:00.0/config')" 64
like "user: capabilities are hidden" "$(as_user 'lspci -s 23:00.0 -vv')" "*<access denied>*"

onehop_checks 1 || exit 0
is "onehop: no port redirects" "$(outcome acs-redirect) $(outcome acs-root-port)" "ok ok"
is "onehop: no IOMMU" "$(outcome iommu-translating)" ok
# Of another generation than the H100s, it has no partner whatever its BAR 1.
is "onehop: no Resizable BAR, and no need" "$(found bar1-vbios)" ""
is "onehop: other cards need none" "$(outcome bar1-window) $(outcome bar1-small)" "not-applicable not-applicable"
is "onehop: the driver" "$(outcome driver-loaded)" bad
