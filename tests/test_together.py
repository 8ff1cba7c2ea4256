"""Workloads of other kinds at once: what is refused and on which line, the phases, runs on both sorts of machines."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.metric import rows
from iolab.domain.workload import KINDS
from iolab.files.store import read
from support.command_line import CommandLine
from support.machines import line_of
from support.simulated import experiment, refusals, run

pytestmark = pytest.mark.usefixtures("state_dir", "here")

HEAD = 'machine = "model:xfs-8p"\nrounds = 1\n'
BOTH = """\
[workloads.both]
kind = "together"
ends_with = "files"
[workloads.both.parts.files]
kind = "fs_mark"
files = 300
file_size = "4KiB"
[workloads.both.parts.readers]
engine = "psync"
file_size = "4MiB"
duration = "1h"
"""


def test_parts_begin_together_after_what_they_lay_out() -> None:
    (workload,) = experiment(HEAD + BOTH).workloads.values()
    phases = workload.phases(seed=1, devices=1)
    assert [(phase.name, phase.measured) for phase in phases] == [
        ("readers layout job", False),
        ("files", True),
        ("readers", True),
    ]
    besides = [phase.beside for phase in phases]
    assert besides[0] is None
    assert besides[1] is not None and (besides[1].follows, besides[1].stops_others) == (False, True)
    assert besides[2] is not None and (besides[2].follows, besides[2].stops_others) == (True, False)


def test_a_load_beside_who_makes_files_ends_with_it_and_slows_it_down() -> None:
    alone = BOTH[BOTH.index('kind = "fs_mark"') : BOTH.index("[workloads.both.parts.readers]")]
    data = run(HEAD + BOTH + "[workloads.alone]\n" + alone)
    found = {
        (data.record(number).spec.workload, row.phase, row.op, row.metric): row.value
        for number in (0, 1)
        for row in rows(data.record(number))
        if row.job == "all"
    }
    beside, single = found["both", "files", "all", "files_per_s"], found["alone", "loop.1", "all", "files_per_s"]
    assert beside is not None and single is not None and beside <= single * 1.05
    assert (found["both", "readers", "all", "iops"] or 0) > 1000
    elapsed = [found["both", part, "all", "elapsed_s"] or 0.0 for part in ("files", "readers")]
    assert elapsed[0] == pytest.approx(elapsed[1], rel=0.05)


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ('ends_with = "files"', 'ends_with = "file"', "ends_with", "unknown part; did you mean files?"),
        ('kind = "fs_mark"', 'kind = "tiobench"', "parts.files.kind", '"tiobench"'),
        ("files = 300", "loops = 2", "parts.files.loops", "2 measured phases"),
        ("files = 300", "fils = 300", "parts.files.fils", "unknown option; did you mean files?"),
        ('duration = "1h"', "queue_depth = 2", "parts.readers.queue_depth", "2 with engine psync"),
        ('kind = "fs_mark"\nfiles = 300\n', 'duration = "1s"\n', "parts.readers", "make both jobs of one part"),
    ],
)
def test_what_is_wrong_is_told_on_its_line(old: str, new: str, key: str, said: str) -> None:
    assert old in BOTH
    lines = "\n".join(refusals(HEAD + BOTH.replace(old, new)))
    assert f"workloads.both.{key}: " in lines and said in lines, lines


def test_a_setting_changes_the_parts_that_have_the_option() -> None:
    settings = '[settings.a.workload]\nfiles = 100\n[settings.b.workload.parts.readers]\nblock_size = "8KiB"\n'
    read = experiment(HEAD + BOTH + settings)
    options = {setting: read.workload_under("both", setting).options for setting in ("a", "b")}
    parts = {setting: own.model_dump()["parts"] for setting, own in options.items()}
    assert parts["a"]["files"]["files"] == 100 and "files" not in parts["a"]["readers"]
    assert parts["b"]["readers"]["block_size"] == "8KiB" and parts["b"]["files"]["files"] == 300


def test_a_host_has_nothing_beside_what_takes_bare_devices() -> None:
    sort = '[workloads.both.parts.sort]\nkind = "qsbench"\n'
    with pytest.raises(InputError, match="takes the target's devices for itself"):
        experiment('[target]\nkind = "scratch"\n' + BOTH + sort)


def test_a_mix_ends_with_one_of_its_jobs() -> None:
    mix = """\
[workloads.both]
kind = "mix"
ends_with = "writer"
[workloads.both.jobs.writer]
jobs = 2
read_percent = 0
pattern = "sequential"
file_size = "1MiB"
amount = "1MiB"
[workloads.both.jobs.readers]
file_size = "1MiB"
"""
    (workload,) = experiment(HEAD + mix).workloads.values()
    main = workload.phases(seed=1, devices=1)[-1].model_dump()["load"]
    assert main["stops_with"] == {"jobs": ["writer.0", "writer.1"], "any": False}
    data = run(HEAD + mix)
    jobs = {row.job: row.value for row in rows(data.record(0)) if row.metric == "elapsed_s"}
    assert 0 < (jobs["readers"] or 0) < 10
    with pytest.raises(InputError, match="ends_with: unknown job"):
        experiment(HEAD + mix.replace('ends_with = "writer"', 'ends_with = "nobody"'))
    with pytest.raises(InputError, match="when does it end"):
        experiment(HEAD + mix.replace('ends_with = "writer"\n', ""))


def test_the_kinds_of_parts_are_kinds() -> None:
    for name in ("io", "mix", "fs_mark", "qsbench"):
        assert f"{name}" in (KINDS["together"].options.model_fields["parts"].description or "")


def test_line() -> None:
    text = HEAD + BOTH.replace("files = 300", "fils = 300")
    assert refusals(text)[0].startswith(f"x.toml:{line_of(text, 'fils')}: ")


def test_on_a_host_too(here: Path, iolab: CommandLine) -> None:
    target = '[target]\nkind = "directory"\npath = "files"\n'
    (here / "files").mkdir()
    (here / "x.toml").write_text("rounds = 1\n" + target + BOTH.replace("files = 300", "files = 20"))
    iolab("run", "x.toml", "--out", "out")
    found = {(row.phase, row.op, row.metric): row.value or 0.0 for row in rows(read(Path("out")).record(0))}
    assert found["files", "create", "latency_ns_mean"] > 0
    # The readers would go on for an hour.
    assert 0 < found["readers", "all", "elapsed_s"] < 60
