# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# iommu: intel
# cmdline: intel_iommu=on pci=disable_acs_redir=pci:1000:c030
# The durable way to allow peer-to-peer below the switches.
. /lib.sh

is "root port: untouched" "$(acs 20:00.0)" 001d
for port in 22:00.0 22:01.0 22:02.0 62:00.0; do
    is "redirect off: $port" "$(acs $port)" 0011
done
is "H100: no longer isolated from its port" "$(group 23:00.0)" "$(group 22:00.0)"
like "kernel says so" "$(dmesg)" "*0000:22:00.0: disabled ACS redirect*"
like "kernel warns" "$(dmesg)" "*cannot disable ACS redirect*"

onehop_checks 1 || exit 0
is "onehop: no switch redirects" "$(outcome acs-redirect)" ok
is "onehop: root ports" "$(outcome acs-root-port)" bad
