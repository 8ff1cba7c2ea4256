"""Groups beside one another and alone: what they keep together of their rates alone, and what is compared with what."""

from iolab.domain.comparison import Comparison
from iolab.domain.summary import summarise
from iolab.files import store
from support.command_line import CommandLine

TENANTS = """\
machine = "model:nvme"
rounds = 2
seed = 1
[workloads.tenants]
kind = "mix"
duration = "20ms"
alone = true
[workloads.tenants.groups.database]
[workloads.tenants.groups.backup]
[workloads.tenants.jobs.queries]
group = "database"
file_size = "16MiB"
[workloads.tenants.jobs.scan]
group = "backup"
pattern = "sequential"
block_size = "256KiB"
queue_depth = 8
file_size = "16MiB"
[settings.plain]
[settings.bfq]
scheduler = "bfq"
"""


def test_the_shares_of_the_rates_alone_add_up(iolab: CommandLine) -> None:
    iolab("run", iolab.write("tenants.toml", TENANTS), "--out", "run")
    run = store.read(iolab.cwd / "run")
    [sentence] = summarise(run).rules
    rates = run.job_metrics(workload="tenants")
    rates = rates.filter((rates["metric"] == "rate_bytes_per_s") & (rates["op"] == "all"))
    of = {(setting, job, n): rate for setting, job, n, rate in rates["setting", "job", "round", "value"].iter_rows()}
    for setting in ("plain", "bfq"):
        first, second = (
            sum(of[setting, group, n] / of[f"{setting} {group} alone", group, n] for group in ("database", "backup"))
            for n in (0, 1)
        )
        assert f" {(first * second) ** 0.5:.0%} [".replace("%", " %") in sentence
        assert f"%] under {setting}" in sentence


def test_a_group_alone_is_compared_with_itself_beside_the_others_and_no_total_is(iolab: CommandLine) -> None:
    iolab("run", iolab.write("tenants.toml", TENANTS), "--out", "run")
    found: list[Comparison] = summarise(store.read(iolab.cwd / "run")).comparisons
    of_groups = {(one.setting, one.against, one.job) for one in found if one.setting.endswith(" alone")}
    assert of_groups == {
        (f"{setting} {group} alone", setting, group) for setting in ("plain", "bfq") for group in ("database", "backup")
    }
    assert {(one.setting, one.against) for one in found if one.job is None} == {("bfq", "plain")}
    slowed = [one for one in found if one.setting == "plain database alone" and "rate" in one.metric]
    assert [one.judgement.verdict for one in slowed] == ["faster"]


def test_without_groups_alone_nothing_is_said(iolab: CommandLine) -> None:
    iolab("run", iolab.write("tenants.toml", TENANTS.replace("alone = true\n", "")), "--out", "run")
    assert summarise(store.read(iolab.cwd / "run")).rules == []


def test_a_setting_that_only_has_such_a_name_is_compared_as_any_other(iolab: CommandLine) -> None:
    named = '[settings."plain backup alone"]\nworkload.only = ["backup"]\n'
    text = TENANTS.replace("alone = true\n", "").partition("[settings.bfq]")[0] + named
    iolab("run", iolab.write("tenants.toml", text), "--out", "run")
    summary = summarise(store.read(iolab.cwd / "run"))
    assert summary.rules == []
    assert {one.job for one in summary.comparisons} >= {None, "backup"}
