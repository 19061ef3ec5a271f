#!/usr/bin/env bash
# boot.sh [-m MiB] [-c CPUS] [-d MiB] [-b BYTES] [-n DISKS] [-e MBIT] [-s DIR] [-w DIR] [-t SECONDS] [-k] [-v] [--] [COMMAND [ARG...]]
#
# Boots a throw-away VM (Debian kernel, QEMU) whose kernel has cgroup v2 only
# (unified hierarchy, PSI on), runs COMMAND in it as root and exits with
# COMMAND's exit status. Without COMMAND: prints what the guest offers.
#
# The guest's root is this machine's own root directory, shared read-only over
# 9p, under a tmpfs overlay: every program, library and build tree here is at
# the same path there, and nothing the guest writes survives, except under the
# shared directory.
#   -s DIR   share DIR read-write at the same path (default: current directory)
#   -w DIR   working directory of COMMAND (default: current directory)
#   -m MiB   memory (default 2048)      -c CPUS  virtual CPUs (default 2)
#   -d MiB   add an empty scratch disk /dev/vda of that size (for io.max)
#   -b BYTES let that disk move no more than BYTES in a second
#   -n DISKS so many such disks (default 1): /dev/vda, /dev/vdb
#   -e MBIT  add two network cards that are joined and say this speed
#   -t SECS  give up after SECS (default 600; exit status 124)
#   -k       keep the work directory (console log, QEMU arguments)
#   -v       show the kernel's console on stderr
# Environment: GANTRY_VM_CACHE (default /var/cache/gantry-vm): kernel, modules,
# initramfs, made on the first run by apt-get download; nothing is installed.
# Needs qemu-system-x86, busybox-static, cpio, kmod; exits with 77 without.
# GANTRY_VM_ACCEL=tcg|kvm (default tcg). GANTRY_VM_APPEND: more kernel words.
#
# Exit status: COMMAND's; 77 skipped; 124 timed out; 125 the VM did not run COMMAND.
set -euo pipefail

mem=2048 cpus=2 disk=0 rate=0 disks=1 cards=0 share=$PWD wdir=$PWD limit=600 keep=0 verbose=0
while getopts m:c:d:b:n:e:s:w:t:kv o; do
  case $o in
    m) mem=$OPTARG ;; c) cpus=$OPTARG ;; d) disk=$OPTARG ;; b) rate=$OPTARG ;; n) disks=$OPTARG ;; e) cards=$OPTARG ;;
    s) share=$(realpath "$OPTARG") ;;
    w) wdir=$OPTARG ;; t) limit=$OPTARG ;; k) keep=1 ;; v) verbose=1 ;;
    *) sed -n '2,27p' "$0" >&2; exit 125 ;;
  esac
done
shift $((OPTIND - 1))
cache=${GANTRY_VM_CACHE:-/var/cache/gantry-vm}
accel=${GANTRY_VM_ACCEL:-tcg}
die() { echo "boot.sh: $*" >&2; exit 125; }

# ---- tools, kernel, initramfs (first run only) -----------------------------
for tool in qemu-system-x86_64 busybox cpio modprobe depmod; do
  command -v $tool >/dev/null || [ -x /sbin/$tool ] || { echo "boot.sh: no $tool" >&2; exit 77; }
done

stamp=$(sha256sum "$0" | cut -c1-12)  # a changed script makes the initramfs anew
# The payload of a bzImage, unpacked: QEMU boots the plain ELF kernel through
# its PVH note, which saves emulating the decompression (2.7 s of 4.4 s here).
unpack_kernel() {
  local f=$1 setup off len
  setup=$(od -An -tu1 -j 497 -N1 "$f" | tr -d ' ')
  off=$(od -An -tu4 -j 584 -N4 "$f" | tr -d ' ')
  len=$(od -An -tu4 -j 588 -N4 "$f" | tr -d ' ')
  tail -c +$(((setup + 1) * 512 + off + 1)) "$f" | head -c "$len" > "$2.z" || true
  xz -dc --single-stream "$2.z" > "$2" 2>/dev/null || true
  if [ "$(head -c 4 "$2" | od -An -tx1 | tr -d ' ')" != 7f454c46 ]; then cp "$f" "$2"; fi
  rm -f "$2.z"
}
make_cache() {
  mkdir -p "$cache"
  if [ ! -s "$cache/vmlinuz" ]; then
    local t pkg
    t=$(mktemp -d "$cache/dl.XXXXXX")
    pkg=$(apt-cache depends linux-image-amd64 2>/dev/null |
          sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
    [ -n "$pkg" ] || { apt-get update -qq >&2; pkg=$(apt-cache depends linux-image-amd64 |
          sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1); }
    (cd "$t" && apt-get download -qq "$pkg" >&2 2>/dev/null) || { echo "boot.sh: cannot download $pkg" >&2; exit 77; }
    dpkg-deb -x "$t"/*.deb "$t/x"
    rm -rf "$cache/modules"; mkdir -p "$cache/modules"
    mv "$t"/x/lib/modules/* "$cache/modules/"
    unpack_kernel "$t"/x/boot/vmlinuz-* "$cache/vmlinuz.new"
    kver=$(basename "$cache"/modules/*)
    mkdir -p "$t/b/lib"; ln -s "$cache/modules" "$t/b/lib/modules"
    depmod -b "$t/b" "$kver"
    mv "$cache/vmlinuz.new" "$cache/vmlinuz"
    rm -rf "$t"
  fi
  kver=$(basename "$cache"/modules/*)
  local r; r=$(mktemp -d "$cache/ird.XXXXXX")
  mkdir -p "$r"/{bin,dev,proc,sys,mod,lower,rw,new}
  cp /bin/busybox "$r/bin/busybox"
  # These modules are needed before the root is mounted; this is the order of loading.
  local b; b=$(mktemp -d "$cache/b.XXXXXX"); mkdir -p "$b/lib"; ln -s "$cache/modules" "$b/lib/modules"
  : > "$r/mod/order"
  local m f
  for m in virtio_pci virtio_mmio virtio_console virtio_blk 9pnet_virtio 9p overlay; do
    while read -r _ f _; do
      f=${f/#"$b"\/lib\/modules/"$cache/modules"}
      grep -qxF "$(basename "$f")" "$r/mod/order" && continue
      cp "$f" "$r/mod/"; basename "$f" >> "$r/mod/order"
    done < <(modprobe -d "$b" -S "$kver" --show-depends "$m" | grep '^insmod')
  done
  rm -rf "$b"
  cat > "$r/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
while read -r m; do /bin/busybox insmod /mod/"$m"; done < /mod/order
mount9() { /bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,"$3" "$1" "$2"; }
/bin/busybox mount -t tmpfs -o mode=755,size=60% tmpfs /rw
/bin/busybox mkdir /rw/u /rw/w
mount9 root /lower ro,cache=loose,access=client || mount9 root /lower ro,cache=loose
/bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/rw/u,workdir=/rw/w overlay /new
cd /new
for d in dev proc sys run tmp var/tmp root; do [ -d $d ] || /bin/busybox mkdir -p $d; done
/bin/busybox mount --move /dev dev
/bin/busybox mount --move /proc proc
/bin/busybox mount --move /sys sys
/bin/busybox mount -t tmpfs -o mode=755 run run
/bin/busybox mkdir -p run/gantry-vm
mount9 ctl run/gantry-vm rw,cache=none
exec /bin/busybox switch_root /new /bin/sh run/gantry-vm/stage2
INIT
  chmod +x "$r/init"
  (cd "$r" && find . | cpio --quiet -o -H newc) | gzip -1 > "$cache/initrd.$stamp.new"
  mv "$cache/initrd.$stamp.new" "$cache/initrd.$stamp"
  find "$cache" -maxdepth 1 -name 'initrd.*' ! -name "initrd.$stamp" -delete
  rm -rf "$r"
}
mkdir -p "$cache"
exec 9> "$cache/lock"; flock 9
[ -s "$cache/vmlinuz" ] && [ -s "$cache/initrd.$stamp" ] || make_cache
exec 9>&-
kver=$(basename "$cache"/modules/*)

# ---- this run --------------------------------------------------------------
work=$(mktemp -d "${TMPDIR:-/tmp}/gantry-vm.XXXXXX")
qpid=
cleanup() {
  [ -n "$qpid" ] && kill -KILL "$qpid" 2>/dev/null || true
  [ "$keep" = 1 ] && echo "boot.sh: kept $work" >&2 || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
mkdir "$work/ctl"

if [ $# -gt 0 ]; then printf '%q ' "$@" > "$work/ctl/cmd"
else cat > "$work/ctl/cmd" <<'DEF'
uname -r; cat /sys/fs/cgroup/cgroup.controllers; stat -fc %T /sys/fs/cgroup; nproc; free -m | sed -n 2p
DEF
fi
q() { printf '%q' "$1"; }
cat > "$work/ctl/stage2" <<S2
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb GANTRY_VM=1
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=1777 vartmp /var/tmp
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 modules /mnt && mkdir -p /mnt/m && mkdir -p /lib/modules && \
  mkdir -p /lib/modules/$kver
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose modules /lib/modules 2>/dev/null
umount /mnt 2>/dev/null
mkdir -p $(q "$share")
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,rw,cache=mmap share $(q "$share")
ip link set lo up 2>/dev/null
hostname gantry-vm 2>/dev/null
# init's own processes move to a leaf group, so that controllers can be turned on at the root
mkdir /sys/fs/cgroup/init && echo \$\$ > /sys/fs/cgroup/init/cgroup.procs
for c in \$(cat /sys/fs/cgroup/cgroup.controllers); do echo +\$c > /sys/fs/cgroup/cgroup.subtree_control; done 2>/dev/null
cut -d' ' -f1 /proc/uptime > /run/gantry-vm/booted
cd $(q "$wdir") 2>/dev/null || cd /
out=/dev/vport0p1 err=/dev/vport0p2
for p in /sys/class/virtio-ports/*; do
  case \$(cat \$p/name) in gantry.out) out=/dev/\${p##*/} ;; gantry.err) err=/dev/\${p##*/} ;; esac
done
sh /run/gantry-vm/cmd </dev/null >\$out 2>\$err
echo \$? > /run/gantry-vm/rc.new && mv /run/gantry-vm/rc.new /run/gantry-vm/rc
echo b > /proc/sysrq-trigger
sleep 5
S2

args=(-accel "$accel$([ "$accel" = tcg ] && echo ,thread=multi)" -cpu max -M q35,i8042=off
  -smp "$cpus" -m "$mem" -nodefaults -no-user-config -display none -no-reboot
  -kernel "$cache/vmlinuz" -initrd "$cache/initrd.$stamp"
  -append "console=ttyS0 $([ $verbose = 1 ] && echo loglevel=6 || echo quiet) panic=-1 cgroup_no_v1=all psi=1 nokaslr tsc=reliable mitigations=off nopti audit=0 no_timer_check ${GANTRY_VM_APPEND:-}"
  -chardev file,id=con,path="$work/console.log" -serial chardev:con
  -device virtio-rng-pci
  -device virtio-serial-pci
  -chardev file,id=out,path="$work/out" -device virtserialport,chardev=out,name=gantry.out
  -chardev file,id=err,path="$work/err" -device virtserialport,chardev=err,name=gantry.err
  -fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
  -device virtio-9p-pci,fsdev=root,mount_tag=root
  -fsdev "local,id=ctl,path=$work/ctl,security_model=none"
  -device virtio-9p-pci,fsdev=ctl,mount_tag=ctl
  -fsdev "local,id=mods,path=$cache/modules,security_model=none,readonly=on"
  -device virtio-9p-pci,fsdev=mods,mount_tag=modules
  -fsdev "local,id=share,path=$share,security_model=none,multidevs=remap"
  -device virtio-9p-pci,fsdev=share,mount_tag=share)
if [ "$disk" -gt 0 ]; then
  for ((i = 0; i < disks; i++)); do
    truncate -s "${disk}M" "$work/disk$i"
    args+=(-drive "if=none,id=d$i,file=$work/disk$i,format=raw,cache=none$([ "$rate" = 0 ] || echo ",throttling.bps-total=$rate")"
      -device "virtio-blk-pci,drive=d$i")
  done
fi
if [ "$cards" -gt 0 ]; then
  for i in 0 1; do
    args+=(-netdev "hubport,id=h$i,hubid=0" -device "virtio-net-pci,netdev=h$i,speed=$cards,duplex=full,mac=52:54:00:00:00:0$i")
  done
fi
printf '%q ' qemu-system-x86_64 "${args[@]}" > "$work/qemu.args"
mkfifo "$work/out" "$work/err"
cat "$work/out" & outpid=$!  # each of these ends when QEMU closes its end
cat "$work/err" >&2 & errpid=$!
qemu-system-x86_64 "${args[@]}" </dev/null 9>&- &
qpid=$!
tailpid=
[ $verbose = 1 ] && { tail -n +1 -F "$work/console.log" 2>/dev/null >&2 & tailpid=$!; }
t0=$SECONDS
while kill -0 "$qpid" 2>/dev/null; do
  if [ -s "$work/ctl/rc" ]; then  # COMMAND has ended and its output was read
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$qpid" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$qpid" 2>/dev/null || true
    break
  fi
  if [ $((SECONDS - t0)) -ge "$limit" ]; then
    kill -KILL "$qpid" 2>/dev/null || true; wait "$qpid" 2>/dev/null || true; qpid=
    echo "boot.sh: timed out after $limit s; console:" >&2; tail -5 "$work/console.log" >&2; kill "$outpid" "$errpid" ${tailpid:-} 2>/dev/null || true
    exit 124
  fi
  sleep 0.1
done
wait "$qpid" || true; qpid=
wait "$outpid" "$errpid" 2>/dev/null || true
[ -n "$tailpid" ] && kill "$tailpid" 2>/dev/null || true
[ -s "$work/ctl/booted" ] && [ "$verbose" = 1 ] && echo "boot.sh: guest up after $(cat "$work/ctl/booted") s of guest time" >&2
if [ ! -s "$work/ctl/rc" ]; then
  echo "boot.sh: the VM ended before COMMAND did; console:" >&2
  tail -30 "$work/console.log" >&2
  exit 125
fi
exit "$(cat "$work/ctl/rc")"
