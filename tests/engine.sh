#!/usr/bin/env bash
# Run a command with a container engine of its own, on Debian where no image registry answers. As root:
#   apt-get install --no-install-recommends podman runc debootstrap netavark aardvark-dns iptables docker-compose
#   tests/engine.sh make containers
# The base image is Debian's own Python. Everything lies in build/engine. The engine ends with the command, and nothing stays mounted.
set -euo pipefail
[ $# -gt 0 ] || { echo "name a command: tests/engine.sh make containers" >&2; exit 2; }
for tool in podman runc debootstrap docker-compose; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: install the packages that $0 names" >&2; exit 1; }
done
cd "$(dirname "$0")/.."
state=$PWD/build/engine
mkdir -p "$state"

# runc, because crun refuses hybrid cgroups; limits, because a container cannot raise its host's; chroot, because a build
# needs the host's network.
cat >"$state/containers.conf" <<END
[containers]
default_ulimits = ["nofile=10000:10000", "nproc=2000:2000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[network]
network_backend = "netavark"
END
export CONTAINERS_CONF=$state/containers.conf BUILDAH_ISOLATION=chroot VFLENS_BASE=localhost/vflens-base:bookworm
engine=(podman --root "$state/storage" --runroot "$state/run" --storage-driver overlay)

if ! "${engine[@]}" image exists "$VFLENS_BASE"; then
  echo "making the base image: some minutes" >&2
  rm -rf "$state/root"
  debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,ca-certificates bookworm "$state/root" \
    >"$state/debootstrap.log" 2>&1 || { tail -n 3 "$state/debootstrap.log" >&2; exit 1; }
  ln -s python3 "$state/root/usr/bin/python"
  rm -f "$state/root"/usr/lib/python3*/EXTERNALLY-MANAGED "$state/root"/var/cache/apt/archives/*.deb
  cp /etc/ssl/certs/ca-certificates.crt "$state/root/etc/ssl/certs/"  # the host's: a proxy may have its own authority
  tar -C "$state/root" -c . | "${engine[@]}" import --change "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt" \
    - "$VFLENS_BASE" >/dev/null
  rm -rf "$state/root"
fi

"${engine[@]}" system service --time=0 "unix://$state/engine.sock" 2>"$state/service.log" &
service=$!
end() {
  kill "$service"
  wait "$service" || true
  while read -r _ _ _ _ point _; do  # what the engine mounted; the innermost first
    case $point in "$state"/*) echo "$point" ;; esac
  done </proc/self/mountinfo | sort -r | xargs -r umount --lazy
}
trap end EXIT
export DOCKER_HOST=unix://$state/engine.sock
for _ in $(seq 100); do [ -S "$state/engine.sock" ] && break; sleep 0.1; done
"$@"
