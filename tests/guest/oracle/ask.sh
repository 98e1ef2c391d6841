# SPDX-License-Identifier: Apache-2.0
#
# In the guest of oracle/run.sh. The kernel is asked whether a drive may use the memory of another
# one: an NVMe target's namespace on the drive, with p2pmem= the other, is enabled.
. /lib.sh

mount -t configfs configfs /sys/kernel/config || exit 1
asked=0

# drive DEVICE: its name in /dev
drive() {
    for path in /sys/block/nvme*n1; do
        case $(readlink -f "$path") in
        */0000:"$1"/*) basename "$path" ;;
        esac
    done
}

# ask DRIVE PROVIDER: "accepted", or what the kernel says against it
ask() {
    asked=$((asked + 1))
    namespace=/sys/kernel/config/nvmet/subsystems/ask$asked/namespaces/1
    mkdir -p "$namespace"
    printf '/dev/%s' "$(drive "$1")" >"$namespace/device_path"
    echo "0000:$2" >"$namespace/p2pmem"
    dmesg -c >/dev/null
    if echo 1 2>/dev/null >"$namespace/enable"; then
        echo accepted
        echo 0 >"$namespace/enable"
    else
        dmesg | tr '\n' ' '
    fi
}

ports() { echo "$(acs 22:00.0) $(acs 22:01.0)"; }

for device in 23:00.1 24:00.1 61:00.0; do
    like "drive $device" "$(drive $device)" "nvme?n1"
done
is "memory is offered" "$(cat /sys/bus/pci/devices/0000:23:00.1/p2pmem/published)" 1
is "ACS on" "$(ports)" "001d 001d"
like "before: refused" "$(ask 24:00.1 23:00.1)" "*ACS redirect is set between the client and provider*"
like "before: the kernel names the ports" "$(ask 24:00.1 23:00.1)" \
    "*pci=disable_acs_redir=0000:22:0[01].0;0000:22:0[01].0*"
like "another root port: refused" "$(ask 61:00.0 23:00.1)" "*do not share an upstream bridge*"

have_onehop || exit 0
onehop check --json >/tmp/onehop.json
is "onehop: the ports that the kernel names" "$(found acs-redirect)" "22:00.0 22:01.0"
run "fix" 0 onehop fix acs-redirect --now --apply
is "fix: ports" "$(ports)" "0011 0011"
is "after the fix: accepted" "$(ask 24:00.1 23:00.1)" accepted
is "after the fix: accepted the other way" "$(ask 23:00.1 24:00.1)" accepted
like "another root port: still refused" "$(ask 61:00.0 23:00.1)" "*do not share an upstream bridge*"
onehop check --json >/tmp/onehop.json
is "onehop: well" "$(outcome acs-redirect)" ok

run "undo" 0 onehop undo
is "undo: ports" "$(ports)" "001d 001d"
like "after undo: refused" "$(ask 24:00.1 23:00.1)" "*ACS redirect is set between the client and provider*"
