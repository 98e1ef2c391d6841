# SPDX-License-Identifier: Apache-2.0
# machine: switch4
# After undo nothing clears the bits at boot.
. /lib.sh

every_acs >/tmp/acs
same "ACS as the kernel sets it" /root/acs-first /tmp/acs
is "nothing failed at boot" "$(systemctl --failed --plain --no-legend)" ""
is "no unit" "$(property LoadState onehop-acs.service)" not-found
is "the display manager saw it so" "$(cat /run/seen)" 001d
onehop check --json >/tmp/onehop.json
is "check: ports that redirect" "$(found acs-redirect)" "22:00.0 22:01.0 62:00.0 62:01.0 a2:00.0 a2:01.0 ca:00.0 ca:01.0"
is "check: no fix that is not in effect" "$(found fix-in-effect)" ""
