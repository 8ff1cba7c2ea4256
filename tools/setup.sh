#!/usr/bin/env bash
# Makes a clone ready to work. Says what it installs; installs nothing that is there already, so that it works offline then.
#
#   tools/setup.sh python             .venv, empty but for iolab itself
#   tools/setup.sh environment LOCK   into it the exact versions of LOCK (requirements.txt, requirements-dev.txt)
#   tools/setup.sh extension PROFILE  the Rust extension and what guest machines take, by cargo's profile dev or release
#   tools/setup.sh programs FOR       system programs that FOR (demo, test, kernels, bench, host) uses; Debian packages
#                                     when root
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    case "${1:-}" in
        python) make_environment ;;
        environment) environment "${2:?which lock file?}" ;;
        extension) extension "${2:?dev or release?}" ;;
        programs) programs "${2:?for demo, test, kernels, bench or host?}" ;;
        *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
}

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 3
}

# Says how far LABEL is whenever its command, whose output comes in, has had nothing to say for a while.
narrate() {
    local began=$SECONDS line
    while true; do
        if IFS= read -r -t 8 line; then
            printf '%s\n' "$line" >&2
        elif [ $? -gt 128 ]; then
            [ -z "$line" ] && say "$1: $((SECONDS - began)) s" || printf '%s' "$line" >&2
        else
            return 0
        fi
    done
}

environment() {
    say "installing the Python packages of $1 into .venv"
    { with_uv "$1" || with_pip --no-compile --requirement "$1"; } 2>&1 |
        narrate "installing the packages of $1" || fail "pip could not install $1: is a package index reachable?"
}

# Ten times as fast as pip, and reads none of its configuration: pip installs what uv cannot. A cache for one call, since
# 1.4 GB in a home are more than a clone may leave.
with_uv() {
    local cache=.venv/uv-cache status=0
    with_pip uv==0.13.9 && .venv/bin/uv pip install --quiet --python .venv/bin/python --cache-dir $cache --requirement "$1" || status=1
    rm -rf $cache
    return $status
}

with_pip() { .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }

# With iolab in it as the sources are, so that no build has to install it.
make_environment() {
    local python packages
    .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
        python=$(find_python) || {
            install_packages python3 python3-venv
            python=$(find_python) || fail "no Python 3.11 or later with the venv module: install one (Debian: python3 python3-venv)"
        }
        say "making .venv with $("$python" --version) ($python)"
        rm -rf .venv
        "$python" -m venv .venv
    }
    packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$PWD/python" >"$packages/iolab.pth"
    printf '%s\n' "#!$PWD/.venv/bin/python" "from iolab.presentation.cli import main" "" "main()" >.venv/bin/iolab
    chmod +x .venv/bin/iolab
}

find_python() {
    local name
    for name in python3 python3.11 python3.12 python3.13 python3.14; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

extension() {
    local built=debug
    [ "$1" = dev ] || built=$1
    command -v cargo >/dev/null || fail "no cargo: install Rust $(rust_version) or later (rustup, or the distribution's cargo)"
    if ! command -v cc >/dev/null; then
        install_packages gcc libc6-dev
        command -v cc >/dev/null || fail "no C linker: install gcc (Debian: gcc libc6-dev)"
    fi
    say "compiling the extension (cargo's profile $1)"
    cargo_says build --profile "$1" --package iolab-bindings --features pyo3/extension-module ||
        fail "the extension could not be built"
    put "target/$built/lib_native.so" python/iolab/_native.abi3.so
    guest "$1" "$built"
}

# Cargo's words, but not a line for each crate of others.
cargo_says() {
    cargo "$@" 2>&1 | sed -uE '/^ *(Compiling|Downloaded|Downloading|Updating|Locking|Adding|Finished) /{/iolab/!d}' |
        narrate compiling
}

# What a guest machine takes: its first process, linked statically, and QEMU's counting plugin. Both are for x86-64; if
# they can't be built, guest machines say so and all else works.
guest() {
    local place=python/iolab/guest
    [ "$(uname -m)" = x86_64 ] || return 0
    mkdir -p "$place"
    cargo_says rustc --profile "$1" --package iolab-guest-agent --bin guest-agent -- \
        -C target-feature=+crt-static -C strip=symbols && put "target/$2/guest-agent" "$place/agent" ||
        say "no agent: guest machines are not to be had (Debian: apt-get install libc6-dev)"
    cc -O2 -Wall -fPIC -shared -fvisibility=hidden -o "$place/counter.new" python/iolab/machines/guest/counter/*.c &&
        mv "$place/counter.new" "$place/counter.so" || say "no counter: guest machines count no instructions"
}

# At once, for whoever has the old one open.
put() { cp "$1" "$2.new" && mv "$2.new" "$2"; }

rust_version() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml; }

programs() {
    local wanted missing=() entry
    case "$1" in
        demo) wanted="mkfs.ext4:e2fsprogs losetup:mount mount:mount" ;;
        test) wanted="mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs losetup:mount mount:mount
                      partx:util-linux setpriv:util-linux dmsetup:dmsetup chromium:chromium fio:fio
                      /usr/share/doc/fio/examples:fio-examples blkparse:blktrace qemu-system-x86_64:qemu-system-x86 cpio:cpio
                      tar:tar gzip:gzip make:make ccache:ccache" ;;
        kernels) wanted="gcc:gcc make:make flex:flex bison:bison bc:bc /usr/include/libelf.h:libelf-dev" ;;
        bench) wanted="mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs losetup:mount mount:mount fio:fio fs_mark:fsmark btt:blktrace" ;;
        host) wanted="qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs git:git" ;;
        *) fail "programs for what? demo, test, kernels, bench or host" ;;
    esac
    for entry in $wanted; do
        have "${entry%%:*}" || missing+=("${entry##*:}")
    done
    [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
    [ "$1" != test ] || mount_tracefs
}

# Where the distribution mounts it too; the tests of probes need it.
mount_tracefs() {
    local place=/sys/kernel/tracing
    [ "$(id -u)" -eq 0 ] && [ -d "$place" ] && ! [ -e "$place/trace" ] || return 0
    say "mounting tracefs on $place"
    mount -t tracefs nodev "$place" || say "tracefs could not be mounted: tests of probes that trace will be skipped"
}

# A program, or a file by its path.
have() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null || [ -e "$1" ]; }

# Never fatal: whoever needs a program that is still missing says so, or skips and counts it.
install_packages() {
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        say "missing, and only root can install it: $*   (Debian: apt-get install $*)"
        return
    fi
    say "installing Debian packages: $*"
    { apt_install "$@" || { apt-get update -qq && apt_install "$@"; } || say "apt-get could not install: $*"; } |
        narrate "installing Debian packages"
}

apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

main "$@"
