# SPDX-License-Identifier: Apache-2.0
# The first boot of a new disk: what an installer does at its end.
. /lib.sh

check "grub-install" grub-install --target=i386-pc /dev/vda
check "update-grub" update-grub
check "onehop finds its libraries" /job/onehop --version
