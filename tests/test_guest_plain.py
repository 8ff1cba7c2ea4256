"""Whether `plain` is what distributions run: its hot paths against those of Debian's own kernel.

A kernel is built, which takes ten minutes of a processor. IOLAB_KERNEL_TREE names a tree of Debian's source of 6.1 that
is there already, as `TREE@COMMIT`.
"""

import os
from pathlib import Path

import pytest
from iolab.base.errors import IolabError
from iolab.domain.phase_record import probes_of
from iolab.domain.symbols import USER, Key, means, per_operation
from iolab.files.store import read
from iolab.machines.guest import debian_source, kernel
from support.command_line import CommandLine
from support.guests import kernel_or_skip

SHARED_MIN = 0.9
"""So much of what a hot path of Debian's executes lies in functions that plain's executes too, and the other way."""
APART_MAX = 0.1
"""So far may the totals lie apart: modules, sizes of tables and what nobody asks for differ."""
EXPERIMENT = """
machine = "guest:{debian}"
rounds = 1
seed = 1
[target]
kind = "scratch"
size = "512MiB"
layers = {layers}
[guest]
time_limit = "30min"
{workload}
[settings.debian]
filesystem = "{filesystem}"
[settings.plain]
filesystem = "{filesystem}"
kernel = "{tree}"
machine = {{ config = "plain" }}
"""
READS = '[workloads.hot]\noperations = 2000\npattern = "random"\nengine = "psync"\nfile_size = "16MiB"\n'
CREATES = '[workloads.hot]\nkind = "fs_mark"\nfiles = 1000\nfile_size = "0"\nsync = "none"\nkeep = true\n'


@pytest.fixture(scope="module")
def tree() -> str:
    """One for all processes that test, so that its kernel is built once: here, as a command that waits for another
    process to build it would be taken for one that hangs."""
    try:
        named = os.environ.get("IOLAB_KERNEL_TREE") or f"{debian_source.tree('linux-source-6.1', print)}@HEAD"
        kernel.find(named, config="plain")
    except IolabError as error:
        pytest.skip(f"no kernel of Debian's source: {error}")
    return named


@pytest.mark.long
@pytest.mark.parametrize(
    ("workload", "filesystem", "layer"),
    [
        pytest.param(READS, "none", "", id="reads"),
        pytest.param(CREATES, "ext4", "", id="ext4"),
        pytest.param(CREATES, "xfs", "", id="xfs"),
        pytest.param(READS, "none", 'kind = "crypt", cipher = "cipher_null-ecb"', id="crypt"),
        pytest.param(READS, "none", 'kind = "raid", level = 1, members = 2', id="raid1"),
    ],
)
def test_the_hot_paths_of_plain_are_those_of_debians_kernel(
    iolab: CommandLine, tree: str, workload: str, filesystem: str, layer: str
) -> None:
    layers = f"[{{ {layer} }}]" if layer else "[]"
    debian = kernel_or_skip("6.1.")
    text = EXPERIMENT.format(debian=debian, tree=tree, workload=workload, filesystem=filesystem, layers=layers)
    iolab.write("plain.toml", text)
    iolab("run", "plain.toml", "--out", "run", cpu_limit_s=7200)
    debian, plain = (functions(iolab.cwd / "run", setting) for setting in ("debian", "plain"))
    told = f"of Debian's {shared(debian, plain):.1%} in common, of plain's {shared(plain, debian):.1%}; "
    told += (
        f"totals {sum(debian.values()):,.0f} and {sum(plain.values()):,.0f}; Debian's alone: {alone(debian, plain)}; "
    )
    told += f"plain's alone: {alone(plain, debian)}"
    print(told)
    assert min(shared(debian, plain), shared(plain, debian)) >= SHARED_MIN, told
    assert abs(sum(plain.values()) / sum(debian.values()) - 1) <= APART_MAX, told


def functions(path: Path, setting: str) -> dict[str, float]:
    """The kernel's, by name alone: what is a module there is built in here."""
    run = read(path)
    records = [record for record in map(run.record, run.trials["trial"].to_list()) if record.spec.setting == setting]
    rounds: list[dict[Key, float]] = [per_operation(probes_of(record.phases[-1])["instructions"]) for record in records]
    found: dict[str, float] = {}
    for (symbol, _), amount in means(rounds).items():
        if symbol != USER:
            found[symbol] = found.get(symbol, 0.0) + amount
    return found


def shared(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(amount for name, amount in one.items() if name in other) / sum(one.values())


def alone(one: dict[str, float], other: dict[str, float]) -> str:
    dearest = sorted((name for name in one if name not in other), key=lambda name: -one[name])[:12]
    return ", ".join(f"{name} {one[name]:,.0f}" for name in dearest)
