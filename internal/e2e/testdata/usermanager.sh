#!/bin/bash
# usermanager.sh UID HOME PROGRAM [ARGUMENT...]
# Runs PROGRAM as a passing user who can start a systemd user manager, on a machine that was not started by
# systemd. To be run by root in new mount and process namespaces (unshare -m --propagation private --pid --fork
# --mount-proc), which hold all that is changed here and take it away when they end.
set -euo pipefail
uid=$1
home=$2
shift 2

# A user of that number and home, in this namespace's list alone.
list=$(mktemp)
trap 'rm -f "$list"' ERR
cat /etc/passwd >"$list"
printf 'hb-passing:x:%d:%d::%s:/bin/sh\n' "$uid" "$uid" "$home" >>"$list"
chmod 644 "$list"
mount --bind "$list" /etc/passwd
rm -f "$list"

# What logind and PID 1 would have prepared: a runtime folder, and the mark that systemd is in charge.
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/systemd/system
install -d -m 700 -o "$uid" -g "$uid" "/run/user/$uid"

# A group of control groups that the user may divide further.
tree=$(mktemp -d)
mount -t cgroup2 none "$tree"
group=$tree/hb-passing-$uid
mkdir -p "$group/first"
chown -R "$uid:$uid" "$group"
echo $$ >"$group/first/cgroup.procs"
mount -t tmpfs -o mode=755 none /sys/fs/cgroup
mount --bind "$tree" /sys/fs/cgroup

exec setpriv --reuid "$uid" --regid "$uid" --clear-groups \
  env -i HOME="$home" USER=hb-passing LOGNAME=hb-passing PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="/run/user/$uid" HB_E2E_INSIDE="${HB_E2E_INSIDE-}" HB_SOAK="${HB_SOAK-}" \
  "$@"
