# SPDX-License-Identifier: Apache-2.0
# machine: workstation2-x8
# cmdline: lockdown=integrity
# modules: yes
# note: Kernel lockdown as with Secure Boot: an unsigned nvidia module was refused.
# note: The module is a stand-in (tests/guest/modules/), the refusal is the kernel's.
. /lib.sh
install_modules nvidia.ko
modprobe nvidia
