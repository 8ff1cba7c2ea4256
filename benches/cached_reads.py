"""4 KiB random reads from the page cache, one at a time (psync), ext4 on a loop device on tmpfs.
The peer is fio's psync with its defaults.
"""

from functools import partial

import fio
import loop_device
import ours
from alternate import alternate, cpu, iops
from result import Result, at_most, paired

FILE_MIB = 512
MOST_CPU = 0.82


def measure(quick: bool) -> list[Result]:
    warm_up_s, duration_s, rounds = (0.2, 0.3, 1) if quick else (0.5, 2.0, 9)
    with loop_device.mounted("ext4", size_mib=FILE_MIB + 256, file_mib=FILE_MIB) as path:
        options = {"engine": "psync", "direct": False, "drop_caches": False, "pattern": "random", "queue_depth": 1}
        options |= {"warm_up": f"{warm_up_s:g}s", "duration": f"{duration_s:g}s"}
        reads = ["--ioengine=psync", "--direct=0", "--invalidate=0", "--rw=randread", "--bs=4k"]
        reads += [f"--filename={path}", f"--size={FILE_MIB}m"]
        peer = fio.command(*reads, warm_up_s=warm_up_s, duration_s=duration_s)
        own = ours.phase(path, FILE_MIB << 20, options)
        path.read_bytes()
        samples = alternate({"iolab": partial(ours.run, own), "fio": partial(fio.run, peer)}, rounds)
    commands = [ours.describe(options), " ".join(peer)]
    figures = (("CPU per I/O", "ns", cpu, at_most(MOST_CPU)), ("IOPS", "1/s", iops, None))
    return [
        paired(name, unit, of(samples["iolab"]), of(samples["fio"]), "fio psync", target=target, commands=commands)
        for name, unit, of, target in figures
    ]
