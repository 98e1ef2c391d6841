# SPDX-License-Identifier: Apache-2.0
# machine: two-level
# iommu: intel
. /lib.sh

# parents DEVICE: how many bridges are above it
parents() { readlink -f "/sys/bus/pci/devices/0000:$1" | tr / '\n' | grep -c '^0000:' | { read -r n; echo $((n - 1)); }; }
is "bridges above the A100" "$(parents 05:00.0)" 5
is "bridges above the ConnectX-6" "$(parents 0a:00.0)" 5
for port in 02:00.0 02:01.0 04:00.0 04:01.0 08:00.0 08:01.0; do
    is "ACS on: $port" "$(acs $port)" 001d
done
is "A100: BAR 1" "$(bar 05:00.0 1)" 131072

onehop_checks 1 || exit 0
is "onehop: ports that redirect" "$(found acs-redirect)" "02:00.0 02:01.0 04:00.0 04:01.0"
is "onehop: classes" "$(classes)" "01=PIX 02=PXB 12=PXB"
is "onehop: no pair through a root port" "$(found acs-root-port)" ""
