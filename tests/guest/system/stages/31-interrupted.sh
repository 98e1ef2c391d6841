# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1091
# machine: switch2
# A fix that is killed while GRUB's generator works, then lines of somebody else: on a terminal they are shown
# before they are lost, and no is no.
. /lib.sh
export TERM=dumb

# on_terminal ANSWER COMMAND: as somebody who types ANSWER; what was shown is in /tmp/shown
on_terminal() {
    printf '%s\n' "$1" | script -qec "$2" /dev/null >/tmp/shown 2>&1
    shown_status=$?
    tr -d '\r' </tmp/shown >/tmp/said
}

[ -x /usr/bin/onehop ] || install -m 755 /job/onehop /usr/bin/onehop # run by itself
files >/root/uninterrupted
# The generator's last part ends onehop; not while it only shows what would change, before the fix has a journal.
ls /var/lib/onehop/fixes >/run/before
cat >/etc/grub.d/98_end <<'END'
#!/bin/sh
exec >/dev/null
ls /var/lib/onehop/fixes | cmp -s - /run/before && exit 0
kill -KILL "$(cat /run/onehop.pid)"
END
chmod 755 /etc/grub.d/98_end
onehop fix acs-redirect --no-trial --apply >/tmp/said 2>&1 &
echo $! >/run/onehop.pid
wait $!
is "killed while GRUB's generator works" $? 137
while grep -qs grub-mkconfig /proc/[0-9]*/cmdline; do sleep 1; done # as an orphan it may come to its end
rm /etc/grub.d/98_end
fix=$(last_fix)
like "history: it did not come to its end" "$(applied "$fix")" "applying"
echo 'set mine=1' >>/boot/grub/grub.cfg
files >/root/interrupted

on_terminal n 'onehop fix acs-redirect --no-trial --apply'
is "no: exit status" $shown_status 2
said "no: the line that would be lost" 'set mine=1'
said "no: what is asked" "Undo fix $fix, which was interrupted, and lose these lines? \[y/N\]"
said "no: what it says" 'nothing was changed'
is "no: nothing was changed" "$(files | diff /root/interrupted -)" ""
like "no: history" "$(applied "$fix")" "applying"

on_terminal y 'onehop fix acs-redirect --no-trial --apply'
said "yes: the line that is lost" 'set mine=1'
is "yes: history" "$(applied "$fix")" failed-undone
check "yes: the line is kept with the fix" grep -rqx 'set mine=1' /var/lib/onehop
is "yes: the line is gone" "$(grep -c 'set mine=1' /boot/grub/grub.cfg)" 0
sed 's/^/#   /' /tmp/said

newest=$(last_fix)
[ "$newest" = "$fix" ] || run "what yes led to is undone" 0 onehop undo --yes "$newest"
is "every file as it was" "$(files | diff /root/uninterrupted -)" ""
