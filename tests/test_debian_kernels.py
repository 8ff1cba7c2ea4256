"""Debian's kernels, the newest of each line that is cached or can be fetched: each boots, and runs a load."""

import pytest
from iolab.base.errors import IolabError
from iolab.files.store import read
from iolab.machines.guest import debian, kernel, programs
from support.command_line import CommandLine


def newest_of_each_line() -> list[str]:
    """Of the small kernels for clouds."""
    try:
        programs.qemu(), programs.agent(), programs.counter()
        names = [one["name"] for one in kernel.listed() if one["name"].endswith("-cloud")]
    except IolabError:
        return []
    return list({tuple(name.split(".")[:2]): name for name in sorted(names, key=debian.order)}.values())


@pytest.mark.long
def test_the_newest_of_each_line_boots_and_runs_its_load(iolab: CommandLine) -> None:
    names = newest_of_each_line()
    if not names:
        pytest.skip("no guest machine here, or no kernel is cached and the package index has none")
    settings = "".join(f'[settings.kernel_{number}]\nkernel = "{name}"\n' for number, name in enumerate(names))
    iolab.write(
        "lines.toml",
        f"""
machine = "guest:{names[0]}"
rounds = 1
target = {{ kind = "scratch", size = "64MiB", filesystem = "ext4" }}
[workloads.reads]
operations = 500
file_size = "16MiB"
{settings}
""",
    )
    iolab("run", "lines.toml", "--out", "run", cpu_limit_s=1800)
    run = read(iolab.cwd / "run")
    records = list(map(run.record, run.trials["trial"].to_list()))
    assert {names[int(record.spec.setting.split("_")[1])]: record.status for record in records} == dict.fromkeys(
        names, "ok"
    ), [record.faults for record in records]
    counts = [phase["probes"]["instructions"]["operations"] for record in records for phase in record.phases]
    assert counts == [500] * len(names)
