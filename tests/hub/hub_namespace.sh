# Runs the rest of its arguments where accounts, homes and /srv are this process's own, and open to all that Python needs.
# hub_namespace.sh PYTHON_PREFIX ROOT COMMAND...
set -eu
prefix=$1 root=$2; shift 2
own=$(mktemp -d); mount -t tmpfs own "$own"
cp -a /etc "$own/etc"
for place in "$prefix" "$root"; do                # a folder that is closed to other accounts is put into an open one
    closed=$place
    while [ "$(dirname "$closed")" != / ]; do closed=$(dirname "$closed"); done
    mkdir -p "$own/kept$place"; mount --bind "$place" "$own/kept$place"
    echo "$closed" >> "$own/tops"
done
for closed in $(sort -u "$own/tops"); do
    case $closed in /usr | /lib | /opt | /tmp) continue ;; esac
    mount -t tmpfs -o mode=755 open "$closed"
done
for place in "$prefix" "$root"; do
    mkdir -p "$place"; mountpoint -q "$place" || mount --bind "$own/kept$place" "$place"
done
mount --bind "$own/etc" /etc
[ ! -d /run/systemd ] || mount -t tmpfs own /run/systemd    # as where there is none, with limits by process
for place in /home /srv; do mount -t tmpfs -o mode=755 own "$place"; done
groupadd course
groupadd course-staff
for name in ada bob; do useradd --create-home --key HOME_MODE=0700 --shell /bin/bash --groups course "$name"; done
useradd --create-home --key HOME_MODE=0700 --shell /bin/bash --groups course,course-staff teacher
exec "$@"
