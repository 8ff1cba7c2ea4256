"""Experiments: what a file means, and what is said of one that is wrong."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base import data
from iolab.base.errors import InputError
from iolab.base.toml import parse
from iolab.domain.trial import DirectoryTarget, ScratchTarget
from iolab.files.experiment import load, loads

EXPERIMENTS = [*data.experiments().values()]

TARGET = '[target]\nkind = "scratch"\nsize = "1GiB"\n'
READS = '[workloads.reads]\nduration = "2s"\nfile_size = "64MiB"\n'


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        loads(text, "x.toml")
    return str(raised.value).split("\n")


def the_problem(text: str) -> str:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


def test_an_experiment_says_what_to_run() -> None:
    experiment = loads(
        TARGET
        + READS
        + '[settings.none]\nscheduler = "none"\n[settings.bfq]\nscheduler = "bfq"\n[compare]\nsame_within = "1%"\n',
        "x.toml",
    )
    assert list(experiment.workloads) == ["reads"]
    assert list(experiment.settings) == ["none", "bfq"]
    assert experiment.compare.baseline == "none"
    assert experiment.compare.same_within == pytest.approx(0.01)
    assert (experiment.rounds, experiment.seed, experiment.machine.name) == (5, None, "host")
    assert isinstance(experiment.target, ScratchTarget)
    assert experiment.target.size_bytes == 2**30


def test_the_text_is_kept_exactly() -> None:
    text = f"# why: a question\r\n{READS}\n\n"
    assert loads(text, "x.toml").text == text


def test_without_settings_there_is_one() -> None:
    assert loads(READS, "x.toml").settings == {"default": {}}


@pytest.mark.parametrize("written", ["12.5", '"12.5%"', '" 12.5 % "'])
def test_a_percentage_has_its_sign_or_none(written: str) -> None:
    reads = loads(READS + f"read_percent = {written}\n", "x.toml").workloads["reads"]
    assert reads.options.read_percent == 12.5


@pytest.mark.parametrize(("user", "kind"), [(0, ScratchTarget), (1000, DirectoryTarget)])
def test_the_default_target_is_what_the_user_can_have(user: int, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert isinstance(loads(READS, "x.toml").target, kind)


def test_an_unknown_option_names_the_nearest() -> None:
    said = the_problem(TARGET + '[workloads.readers]\nblok_size = "4KiB"\nduration = "1s"\n')
    assert said == "x.toml:5: workloads.readers.blok_size: unknown option; did you mean block_size?"


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("bs", "block_size"),
        ("iodepth", "queue_depth"),
        ("rw", "read_percent"),
        ("threads", "jobs"),
        ("QD", "queue_depth"),
    ],
)
def test_the_word_of_another_tool_names_the_option_that_is_meant(word: str, option: str) -> None:
    """By spelling alone, bs would be jobs and threads share_thread."""
    said = the_problem(TARGET + f'[workloads.readers]\n{word} = 4\nduration = "1s"\n')
    assert said == f"x.toml:5: workloads.readers.{word}: unknown option; did you mean {option}?"


def test_an_unknown_option_like_no_other_names_all_or_the_command_that_lists_them() -> None:
    said = the_problem(TARGET + '[workloads.readers]\nwxyz = 1\nduration = "1s"\n')
    assert said == "x.toml:5: workloads.readers.wxyz: unknown option; see: iolab list workloads io"
    said = the_problem(TARGET + "[workloads.m]\nkind = 'mix'\nduration = '1s'\njobs = {a = {wxyz = 1}}\n")
    assert said.endswith("m.jobs.a.wxyz: unknown option; see: iolab list workloads mix")
    said = the_problem(TARGET + READS + "[compare]\nwxyz = 1\n")
    assert said.endswith(
        "compare.wxyz: unknown option; compare takes: baseline, metrics, same_within, same_instructions"
    )


def test_all_problems_are_said_in_file_order() -> None:
    workload = '[workloads.a]\npattern = "randm"\nduration = "3s"\nread_percent = 101\n'
    text = f'rounds = 0\n{workload}[settings.s]\nshceduler = "none"\n'
    found = problems(text)
    assert [line.split(": ")[0] for line in found] == ["x.toml:1", "x.toml:3", "x.toml:5", "x.toml:7"]
    assert "did you mean random?" in found[1]
    assert "did you mean scheduler?" in found[3]


IO_PROBLEMS = [
    ('engine = "mmap"\ndirect = true', "direct", "page cache"),
    ('rate_iops = 100\nthink_time = "1ms"', "think_time", "open loop"),
    ('rate_iops = 100\nrate = "1MiB/s"', "rate_iops", "keep one"),
    ('spacing = "poisson"', "spacing", "rate"),
    ("verify = true\nshared_files = true\njobs = 2\nread_percent = 50", "shared_files", "one writer"),
    ("queue_depth = 4\nengine = 'psync'", "queue_depth", "use io_uring or libaio"),
    ('block_size = "128MiB"', "block_size", "larger than file_size"),
    ("block_size = 1000", "block_size", "not a multiple of 512"),
    ("read_percent = -1", "read_percent", "from 0 to 100"),
    ('pattern = "zipf"\nzipf_theta = 0', "zipf_theta", "above 0"),
    ("zipf_theta = 1", "zipf_theta", 'only with pattern = "zipf"'),
    ('pattern = "strided"', "pattern", "needs stride"),
    ('pattern = "permutation"\nblock_size = {"4KiB" = 1, "8KiB" = 1}', "block_size", "one size"),
    ("fsync_every = 1", "fsync_every", "nothing is written"),
    ("read_percent = 0\nfsync_every = 1\nfdatasync_every = 1", "fdatasync_every", "keep one"),
    ("sqpoll = true\nengine = 'libaio'", "sqpoll", "io_uring"),
    ("uncached = true\nengine = 'psync'\ndirect = false", "uncached", "io_uring, libaio and pvsync"),
    ("uncached = true", "uncached", "direct = false"),
    ("dsync_every = 1", "dsync_every", "nothing is written"),
    ("dsync_every = 1\nread_percent = 0\nengine = 'mmap'", "dsync_every", "engine mmap makes no call"),
    ("atomic_writes = true\nread_percent = 0\ndirect = false", "atomic_writes", "direct = true"),
    ("atomic_writes = true", "atomic_writes", "only reads"),
    ("atomic_writes = true\nread_percent = 0\nblock_size = '12KiB'", "block_size", "power of two"),
    ("write_hint = 'short'", "write_hint", "only reads"),
    ("write_hint = 'warm'\nread_percent = 0", "write_hint", "extreme"),
    ("poll = true\ndirect = false", "poll", "direct"),
    ("hybrid_poll = true", "hybrid_poll", "poll = true"),
    ("engine = 'io_uring_cmd'\ndirect = false", "direct", "page cache"),
    ("engine = 'io_uring_cmd'\nnowait_reads = true", "nowait_reads", "only with engines"),
    ("hybrid_poll = true\npoll = true\nengine = 'pvsync'", "hybrid_poll", "engine io_uring"),
    ("registered_waits = true\nengine = 'psync'", "registered_waits", "only with engines io_uring and io_uring_cmd"),
    ("registered_waits = true\npoll = true", "registered_waits", "leave poll out"),
    ("nowait_reads = true\nengine = 'libaio'", "nowait_reads", "io_uring and pvsync"),
    ("nowait_reads = true\nread_percent = 0", "nowait_reads", "only writes"),
    ("think_every = 2", "think_every", "think_time"),
    ("cpus = []", "cpus", "such as [0]"),
    ('range_start = "64MiB"', "range_start", "not inside"),
    ('range_start = "60MiB"\nrange_length = "5MiB"', "range_length", "after the end"),
    ("queue_depth = true", "queue_depth", "true given; expected a whole number from 1 to 4096"),
    ("queue_depth = '4'", "queue_depth", '"4" given'),
    ("block_size = [[1]]", "block_size", 'such as "4KiB"'),
    ("block_size = 0", "block_size", "1 byte to 4 GiB"),
    ("block_size = {'4KiB' = 0}", "block_size", "above 0"),
    ("interval = '5 parsecs'", "interval", "parsecs"),
    ("think_time = 5", "think_time", '5 given; expected a duration such as "2s" or "500ms"'),
    ("range_start = -512", "range_start", 'expected a size such as "4KiB", at least 0'),
    ("rate = inf", "rate", 'expected a rate such as "100MiB/s", above 0'),
    ("amount = '1KiB'", "amount", "one block"),
    ("batch = 4\nengine = 'pvsync'", "batch", "no batches"),
]


@pytest.mark.parametrize(("options", "key", "words"), IO_PROBLEMS)
def test_what_makes_no_sense_is_refused_on_its_line(options: str, key: str, words: str) -> None:
    text = TARGET + READS + options + "\n"
    line = next(n for n, written in enumerate(text.split("\n"), 1) if written.startswith(key))
    said = the_problem(text)
    assert said.startswith(f"x.toml:{line}: workloads.reads.{key}: "), said
    assert words in said


@pytest.mark.parametrize(
    ("text", "begins", "words"),
    [
        ("", "x.toml:1: workloads", "at least one"),
        ("[workloads.a]\nqueue_depth = 1\n", "x.toml:1: workloads.a.duration", "when does it end?"),
        ("[workloads.a]\namount = '1MiB'\nwarm_up = '1s'\n", "x.toml:3: workloads.a.warm_up", "only with duration"),
        ("[workloads.a]\namount = '1MiB'\ncut_transient = true\n", "x.toml:3: workloads.a.cut_transient", "duration"),
        ("[workloads.a]\nkind = 'tiobnch'\n", "x.toml:2: workloads.a.kind", "did you mean tiobench?"),
        ("[workloads.m]\nkind = 'mix'\nduration = '1s'\n", "x.toml:1: workloads.m.jobs", "missing"),
        ("[workloads.m]\nkind = 'mix'\nduration = '1s'\njobs = {}\n", "x.toml:4: workloads.m.jobs", "at least one job"),
        (
            "[workloads.m]\nkind = 'mix'\n[workloads.m.jobs.a]\nblok_size = 1\n",
            "x.toml:4: workloads.m.jobs.a.blok_size",
            "unknown option; did you mean block_size?",
        ),
        ("[workloads.m]\nkind = 'mix'\n[workloads.m.jobs.a]\n", "x.toml:1: workloads.m.duration", "when does it end?"),
        (
            "[workloads.m]\nkind = 'mix'\nduration = '1s'\njobs.all = {}\n",
            "x.toml:4: workloads.m.jobs.all",
            'not "all"',
        ),
        (
            "[workloads.t]\nkind = 'tiobench'\nthreads = 512\nfile_size = '1MiB'\n",
            "x.toml:1: workloads.t.block_size",
            "split over the threads",
        ),
        ("workloads = 3\n", "x.toml:1: workloads", "3 given; expected a table"),
        (
            "[workloads.m]\nkind = 'mix'\nduration = '1s'\njobs = {a = 3}\n",
            "x.toml:4: workloads.m.jobs.a",
            "3 given; expected a table",
        ),
        ("workloads.a.file_size = '1KiB'\n", "x.toml:1: workloads.a.file_size", '"1KiB" given; expected a size'),
        (
            "workloads.a.read_percent = 'half'\n",
            "x.toml:1: workloads.a.read_percent",
            "expected a percentage such as 20",
        ),
        ("workloads.a.read_percent = '20'\n", "x.toml:1: workloads.a.read_percent", 'such as 20 or "20%"'),
        ("workloads.a.read_percent = '120%'\n", "x.toml:1: workloads.a.read_percent", "from 0 to 100"),
        ("workloads.a = 3\n", "x.toml:1: workloads.a", "expected a table"),
        ("[workloads.'a[b]']\nduration = '1s'\n", "x.toml:1: workloads.a[b]", "letters, digits"),
    ],
)
def test_what_is_wrong_with_a_workload_is_said(text: str, begins: str, words: str) -> None:
    said = the_problem(text)
    assert said.startswith(f"{begins}: "), said
    assert words in said


@pytest.mark.parametrize(
    ("text", "begins", "words"),
    [
        ("rounds = 0\n", "x.toml:1: rounds", "at least 1"),
        ("seed = -1\n", "x.toml:1: seed", "from 0 to"),
        ("machine = 'hots'\n", "x.toml:1: machine", "did you mean host?"),
        ("settings.s.rq_affinity = 7\n", "x.toml:1: settings.s.rq_affinity", "expected"),
        ("settings.s.queue_dept = 4\n", "x.toml:1: settings.s.queue_dept", "workload = { queue_depth = ... }"),
        ("settings.s.schedular = 'bfq'\n", "x.toml:1: settings.s.schedular", "did you mean scheduler?"),
        ("settings.s = 1\n", "x.toml:1: settings.s", "expected a table"),
        ("settings.s.workload = 1\n", "x.toml:1: settings.s.workload", "expected a table"),
        ("compare.baseline = 'x'\n", "x.toml:1: compare.baseline", "unknown setting"),
        ("compare.metrics = ['latency_ns_p9']\n", "x.toml:1: compare.metrics", "did you mean latency_ns_p99?"),
        ("compare.metrics = ['raed.iops']\n", "x.toml:1: compare.metrics", "did you mean read?"),
        ("compare.metrics = ['read.cpu_percent']\n", "x.toml:1: compare.metrics", "kept for all"),
        ("compare.metrics = ['main/iops']\n", "x.toml:1: compare.metrics", "one measured phase; leave it out"),
        ("compare.metrics = ['write.iops']\n", "x.toml:1: compare.metrics", "no write is done by any workload"),
        (
            "compare.metrics = ['files_per_s']\n",
            "x.toml:1: compare.metrics",
            "files_per_s: it is not measured by any workload",
        ),
        (
            "workloads.t.kind = 'tiobench'\ncompare.metrics = ['random_raed/iops']\n",
            "x.toml:2: compare.metrics",
            "did you mean random_read?",
        ),
        (
            "workloads.t.kind = 'tiobench'\ncompare.metrics = ['random_read/write.iops']\n",
            "x.toml:2: compare.metrics",
            "no write is done in random_read",
        ),
        ("compare.metrics = []\n", "x.toml:1: compare.metrics", "empty"),
        ("compare.same_within = '2'\n", "x.toml:1: compare.same_within", '"2%"'),
        ("compare.same_within = 1.5\n", "x.toml:1: compare.same_within", '"2%"'),
        ("target.kind = 'dirctory'\n", "x.toml:1: target.kind", "did you mean directory?"),
        ("target.kind = 'device'\n", "x.toml:1: target.path", "missing"),
        ("target = {kind = 'scratch', sector_size = 520}\n", "x.toml:1: target.sector_size", "512 or 4096"),
        ("target = {kind = 'scratch', size = '32MiB'}\n", "x.toml:2: workloads.reads", "the target holds 32MiB"),
        ("target = {kind = 'scratch', filesystem = 'ext5'}\n", "x.toml:1: target.filesystem", "did you mean ext"),
    ],
)
def test_what_is_wrong_with_the_rest_is_said(text: str, begins: str, words: str) -> None:
    said = the_problem(text + READS)
    assert said.startswith(f"{begins}: "), said
    assert words in said


@pytest.mark.parametrize("control", ["filesystem = 'xfs'", "mkfs_options = '-b 1024'", "mount_options = 'noatime'"])
def test_a_directory_keeps_its_filesystem(control: str) -> None:
    said = the_problem(f"[target]\nkind = 'directory'\n{READS}[settings.s]\n{control}\n")
    assert said.startswith("x.toml:7: settings.s.")
    assert 'kind = "scratch"' in said


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = = 2\n", "x.toml:2:5"),
        ("a = 1\na = 2\n", "x.toml:2"),
        ('a = "b\n', "x.toml:1:7"),
        ("a = [1,", "x.toml:1:8"),
    ],
)
def test_a_syntax_error_has_line_and_column(text: str, place: str) -> None:
    said = the_problem(text)
    assert said.startswith(place)
    assert "not valid TOML" in said


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(InputError, match="UTF-8"):
        load(tmp_path / "latin.toml")


def test_a_setting_may_change_the_workloads() -> None:
    text = TARGET + READS + "[settings.ring]\n[settings.plain]\nengine = 'psync'\nworkload = {block_size = '8KiB'}\n"
    experiment = loads(text, "x.toml")
    plain = experiment.workload_under("reads", "plain").options.model_dump()
    ring = experiment.workload_under("reads", "ring").options.model_dump()
    assert (plain["engine"], plain["block_size"]) == ("psync", {8192: 1.0})
    assert (ring["engine"], ring["block_size"]) == ("io_uring", {4096: 1.0})
    assert experiment.settings["plain"] == {}


def test_a_setting_changes_each_job_of_a_mix() -> None:
    text = "[workloads.m]\nkind = 'mix'\nduration = '1s'\njobs = {a = {}, b = {engine = 'libaio'}}\n"
    experiment = loads(TARGET + text + "[settings.s]\nworkload = {engine = 'psync', duration = '3s'}\n", "x.toml")
    options = experiment.workload_under("m", "s").options.model_dump()
    assert options["duration"] == 3_000_000_000
    assert {job["engine"] for job in options["jobs"].values()} == {"psync"}


def test_a_setting_changes_one_job_of_a_mix_and_names_no_other() -> None:
    text = "[workloads.m]\nkind = 'mix'\nduration = '1s'\njobs = {log = {}, scan = {block_size = '128KiB'}}\n"
    change = "[settings.s]\nworkload = {engine = 'libaio', jobs = {%s = {queue_depth = 16, engine = 'io_uring'}}}\n"
    experiment = loads(TARGET + text + "[settings.plain]\n" + change % "scan", "x.toml")
    plain, changed = (experiment.workload_under("m", name).options.model_dump()["jobs"] for name in ("plain", "s"))
    assert changed["log"] == {**plain["log"], "engine": "libaio"}
    assert changed["scan"] == {**plain["scan"], "queue_depth": 16, "engine": "io_uring"}
    said = the_problem(TARGET + text + change % "scam")
    assert "settings.s.workload.jobs: workload m: jobs.scam: unknown job; did you mean scan?" in said


def test_a_settings_change_is_checked_against_every_workload() -> None:
    workloads = READS + "[workloads.deep]\nduration = '1s'\nqueue_depth = 8\n"
    said = the_problem(TARGET + workloads + "[settings.plain]\nengine = 'psync'\n")
    assert said.startswith("x.toml:10: settings.plain: workload deep: queue_depth: 8 with engine psync")
    said = the_problem(TARGET + workloads + "[settings.plain]\nworkload = {engin = 'psync'}\n")
    assert said.startswith("x.toml:11: settings.plain.workload.engin: workloads reads, deep: unknown option")


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.name)
def test_the_shipped_experiments_are_valid(path: Path) -> None:
    assert load(path).title


def test_there_are_shipped_experiments() -> None:
    assert len(EXPERIMENTS) >= 6


VALUES = [
    "1",
    "-2.5e3",
    "true",
    "1979-05-27T07:32:00Z",
    '"a # b = [c]"',
    "'it\\'",
    r'"quoted \" = 1"',
    '"""\nx = 1\n[no.table]\n\\"""" # """',
    "'''two\nlines = 'x' '''",
    '""',
    "[1, 2]",
    "[\n  [1], # ]\n  ['a = 1'],\n]",
    "[]",
    "{}",
]
KEYS = st.sampled_from(["a", "b-c", '"d.e"', "'f g'", "h_1", "3"])


def bare(key: str) -> str:
    return key.strip("\"'")


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(KEYS, st.lists(st.tuples(KEYS, st.sampled_from(VALUES)), unique_by=lambda pair: bare(pair[0]))),
        unique_by=lambda table: bare(table[0]),
    ),
    st.sampled_from(["", "\n", "# [comment] = 1\n", "  \n\t\n"]),
)
def test_every_key_is_found_on_its_line(tables: list[tuple[str, list[tuple[str, str]]]], filler: str) -> None:
    text = ""
    expected: dict[tuple[str, ...], int] = {}

    def note(*path: str) -> None:
        expected[path] = text.count("\n") + 1

    for table, pairs in tables:
        text += filler
        note("top", bare(table))
        text += f"[top.{table}]  # header\n"
        for key, value in pairs:
            text += filler
            note("top", bare(table), bare(key))
            text += f"  {key} = {value}\n"
        note("top", bare(table), "inline", "x")
        text += "inline = { x = 1, 'y' . z = '}' }\n"
        expected["top", bare(table), "inline", "y", "z"] = expected["top", bare(table), "inline", "x"]
    document = parse(text, "x.toml")
    assert {path: document.line(path) for path in expected} == expected


def test_what_no_call_moves_is_refused_before_anything_runs() -> None:
    text = '[workloads.w]\nfile_size = "8GiB"\nblock_size = "3GiB"\nduration = "1s"\n[settings.s]\n'
    with pytest.raises(InputError, match=r"x\.toml:1: workloads\.w: .*3221225472 bytes; no call moves more than"):
        loads(text, "x.toml")


def test_a_time_of_every_simulated_scheduler_takes_a_unit() -> None:
    text = (
        'machine = "model:quad-7200"\n[workloads.w]\nfile_size = "1MiB"\nduration = "5ms"\n'
        '[settings.s]\nkernel = "2.5.59-mm1"\nscheduler = { name = "deadline", batch_expire = "500ms" }\n'
    )
    assert loads(text, "x.toml").settings["s"]["scheduler"] == {"name": "deadline", "batch_expire": "500"}
