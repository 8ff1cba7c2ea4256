"""Counts what an NFS WRITE over RDMA costs in instructions, by its size, in one guest machine: client and server of
Debian's kernel, on a soft RoCE device over a dummy interface (docs/case-studies/guest-nfs-rdma.md).

    tools/guest_nfs_rdma.py [--kernel 6.12.117+deb12] [--seed 1] [--writes 400]

It needs ip and rdma (Debian: iproute2) on this machine, beside what a guest machine takes. The NFS server gets its
exports from a script in the guest, not from mountd; nothing of this machine takes part.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from iolab.domain import native_types as native
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.trial import LoadPhase
from iolab.files.experiment import loads
from iolab.machines.guest import counter_output, guest, kernel, programs, qemu, symbols
from iolab.machines.guest.directory import made_directory
from iolab.machines.guest.limit import Deadline
from iolab.machines.guest.modules import Modules
from iolab.machines.guest.steps import Plan
from iolab.machines.host.site import located
from iolab.studies.run.plan import Plan as Rounds

SIZES = (256, 512, 1024, 2048, 3072, 3584, 4096, 8192, 16384, 32768, 65536)
MODULES = ("dummy", "rdma_rxe", "rpcrdma", "nfsd", "nfsv4")
TOOLS = ("sh", "ip", "rdma", "mount", "mkdir")
SETUP = r"""set -e
export PATH=/sbin
mkdir -p /export /mnt
ip link set lo up
ip addr add 10.0.0.1/24 dev dummy0
ip link set dummy0 up
rdma link add rxe0 type rxe netdev dummy0
mount -t tmpfs -o size=256m tmpfs /export
mount -t nfsd nfsd /proc/fs/nfsd
echo 'nfsd 10.0.0.1 2147483647 all' > /proc/net/rpc/auth.unix.ip/channel
echo 'all /export 2147483647 9218 65534 65534 0' > /proc/net/rpc/nfsd.export/channel
echo 'all 1 \x00000000 2147483647 /export' > /proc/net/rpc/nfsd.fh/channel
echo -3 > /proc/fs/nfsd/versions
echo 2 > /proc/fs/nfsd/threads
echo 'rdma 20049' > /proc/fs/nfsd/portlist
options=vers=4.2,proto=rdma,port=20049,addr=10.0.0.1,clientaddr=10.0.0.1,sec=sys
mount -i -t nfs4 -o $options 10.0.0.1:/ /mnt
"""
"""In the guest. 9218: insecure ports, root stays root, no look at the parents of a file, and the root of exports."""
MEMORY_BYTES = 1 << 30
LIMIT_S = 900.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kernel", default="6.12.117+deb12", help="version of Debian's package; cloud kernels lack RoCE"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writes", type=int, default=400, help="of each size")
    arguments = parser.parse_args()
    print("| bytes | instructions | of them copies | checksums | switches | memory mapped |")
    print("|--:|--:|--:|--:|--:|--:|")
    for size, found in measured(arguments.kernel, arguments.seed, arguments.writes):
        print(row(size, found))
    return 0


def measured(name: str, seed: int, writes: int) -> Iterator[tuple[int, InstructionsObservation]]:
    """By size, in one boot: what was counted of so many writes."""
    found = kernel.find(name)
    plan = Plan(seed)
    plan.load_modules(Modules(found.modules), MODULES, {})
    for tool in TOOLS:
        programs.pack(plan.archive, tool, tool)
    plan.archive.add_link("/bin", "/sbin")
    plan.archive.add("/setup.sh", SETUP.encode())
    plan.add("run", argv=["/sbin/sh", "/setup.sh"])
    steps = [(size, phase.measured, add(plan, size, phase)) for size in SIZES for phase in phases(name, size, writes)]
    plan.add("symbols", all=False)
    deadline = Deadline.after(LIMIT_S)
    functions = guest.learn(found, deadline)
    assert functions is not None, "nobody stops it"
    with made_directory(None) as directory:
        (directory / "initramfs").write_bytes(plan.packed())
        (directory / "functions").write_text(symbols.parse(functions).watched(chains=False))
        counter = {"out": str(directory / "counts"), "functions": str(directory / "functions")}
        board = qemu.Board(found.image, directory / "initramfs", 1, MEMORY_BYTES, counter=counter)
        told = qemu.run(
            board, directory, plan.steps, deadline=deadline, should_stop=lambda: False, on_look=lambda _: None
        )
        if told.failed is not None:
            raise SystemExit(f"{told.failed.what}: {(directory / 'console').read_text(errors='replace')[-2000:]}")
        windows = counter_output.windows(counter_output.content_of(directory / "counts"), len(steps))
    table = symbols.parse(functions + (told.symbols or b""))
    for window, (size, is_measured, step) in zip(windows, steps, strict=True):
        if is_measured:
            yield size, counter_output.observation(window, table, cast(Any, told.answer(step)).ops)


def phases(name: str, size: int, writes: int) -> list[LoadPhase]:
    """A file is laid out, then written once more in order, past the client's page cache."""
    experiment = loads(
        f'machine = "guest:{name}"\n[target]\nkind = "scratch"\nsize = "512MiB"\nfilesystem = "none"\n'
        f'[workloads.writes]\noperations = {writes}\npattern = "sequential"\nread_percent = 0\nengine = "psync"\n'
        f'direct = false\nblock_size = "{size}B"\nfile_size = "{size * writes}B"\n',
        "nfs.toml",
    )
    (trial,) = Rounds(experiment, 1).round(0)
    return [past_the_cache(phase) for phase in trial.phases if isinstance(phase, LoadPhase)]


def past_the_cache(phase: LoadPhase) -> LoadPhase:
    """With O_DIRECT, which an experiment has in whole sectors only: NFS takes any size."""
    groups: list[native.GroupSpec] = [{**group, "direct": True} for group in phase.load["groups"]]
    return phase.model_copy(update={"load": {**phase.load, "groups": groups}})


def add(plan: Plan, size: int, phase: LoadPhase) -> int:
    """The load's step, on the mount; its number."""
    files = [located(file, Path(f"/mnt/file-{size}"), base_bytes=0, create=True) for file in phase.load["files"]]
    return plan.add("load", phase=phase.with_files(files).load)


def row(size: int, found: InstructionsObservation) -> str:
    """Per WRITE: all instructions; those of functions that copy; of checksums; switches between tasks; how often the
    client mapped memory for the device."""
    operations = found["operations"]

    def amount(numbers: list[int], *names: str) -> float:
        named = zip(found["symbols"], numbers, strict=True)
        return sum(number for symbol, number in named if symbol.startswith(names)) / operations

    copies = amount(found["instructions"], "memcpy", "__memcpy", "rxe_mr_copy", "copy_data", "_copy_", "copy_page")
    checksums = amount(found["instructions"], "crc32")
    switches, mapped = amount(found["calls"], "__switch_to_asm"), amount(found["calls"], "frwr_map")
    counts = f"{found['total'] / operations:,.0f} | {copies:,.0f} | {checksums:,.0f}"
    return f"| {size:,} | {counts} | {switches:.1f} | {mapped:.2f} |"


if __name__ == "__main__":
    raise SystemExit(main())
