"""Machines whose files lie on NFS mounts: how they are written, what they refuse, and what the probe nfs sees there."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iolab import _native
from iolab.base import data
from iolab.base.mountstats import COUNTERS, snapshots
from iolab.domain.trial import LoadPhase
from iolab.domain.workload.iozone import KIND as IOZONE_KIND
from iolab.domain.workload.iozone import IozoneOptions
from iolab.files import machine_file
from iolab.presentation.table import render
from support.command_line import CommandLine
from support.machines import line_of
from support.simulated import experiment, refusals, run

pytestmark = pytest.mark.usefixtures("state_dir")

MACHINE = """\
kernel = "5.4"

[cpus]
count = 4
clock_hz = 2000000000
time_slice_ns = 4000000
call_ns = 0
completion_ns = 0
page_copy_ns = 0
jitter = 0.0

[[mounts]]
mount = "nfs-rdma"
transport = { kernel = "after", slots = 16, credits = 8 }
"""
DRIVE = """
[memory]
bytes = 67108864

[[drives]]
device = { kind = "null", capacity_bytes = 1073741824, latency_ns = 100000, queue_depth = 4 }
"""
HEAD = 'machine = "model:client.toml"\nrounds = 1\n'
IOZONE = """\
[workloads.iozone]
kind = "iozone"
threads = 4
file_size = "256KiB"
record_size = "1KiB"
tests = ["write", "read"]
stop_with_first = false
direct = true
"""


@pytest.fixture(autouse=True)
def client(here: Path) -> None:
    Path("client.toml").write_text(MACHINE)


def refusal(text: str) -> str:
    return refusals(text)[0]


def test_what_stands_beside_a_mounts_name_goes_before_its_file() -> None:
    found = machine_file.read("model:client.toml", Path())
    assert found.table["mounts"][0]["transport"] == {"kernel": "after", "slots": 16, "credits": 8}
    assert found.table["mounts"][0]["iommu"]["mode"] == "lazy"
    assert found.drives == 0
    assert found.places == 1
    assert found.where(("mounts", "0", "transport", "slots")) == f"client.toml:{line_of(MACHINE, 'transport')}"
    in_file = Path(found.where(("mounts", "0", "server", "threads")).rpartition(":")[0])
    assert in_file.parts[-2:] == ("mounts", "nfs-rdma.toml")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("transport = { kernel = 'new' }", "client.toml:14: mounts.0.transport.kernel: unknown variant"),
        ("transport = { slots = 1 }", "client.toml:14: mounts.0.transport.slots: expected 2 to 16384, found 1"),
        ("iommu = { mode = 1 }", "client.toml:14: mounts.0.iommu.mode: 1 given; expected a text or a table"),
        ("wires = 2", "client.toml:14: mounts.0.wires: unknown field"),
    ],
)
def test_what_a_mount_cannot_be_is_told_on_its_line(changed: str, said: str) -> None:
    Path("client.toml").write_text(MACHINE.replace(MACHINE.splitlines()[-1], changed))
    assert refusal(f"{HEAD}{IOZONE}").startswith(said)


def test_a_mount_that_is_not_there_is_told_on_its_line() -> None:
    Path("client.toml").write_text(MACHINE.replace("nfs-rdma", "nfs-rmda"))
    said = refusal(f"{HEAD}{IOZONE}")
    assert said.startswith('client.toml:13: mounts.0.mount: "nfs-rmda": unknown mount')
    assert "nfs-rdma" in said


def test_a_setting_reaches_every_key_of_a_mount() -> None:
    setting = "[settings.s]\nmachine = { 'mounts.0.iommu.mode' = 'loose' }\n"
    assert refusal(f"{HEAD}{IOZONE}{setting}").startswith("x.toml:12: settings.s.machine.mounts.0.iommu.mode: unknown")


def test_buffered_io_on_a_mount_is_refused_and_beside_it_on_a_drive_it_is_not() -> None:
    Path("client.toml").write_text(MACHINE + DRIVE)
    buffered = (
        "[workloads.w]\ndirect = false\nqueue_depth = 1\nengine = 'psync'\nfile_size = '1MiB'\nduration = '1ms'\n"
    )
    assert refusal(f"{HEAD}{buffered}devices = [1]\n").startswith("x.toml:4: workloads.w.direct: the simulated machine")
    assert experiment(f"{HEAD}{buffered}devices = [0]\n")
    assert "uses drive 2, the machine has 1 and 1 mount, from 0" in refusal(f"{HEAD}{buffered}devices = [2]\n")


def test_the_probe_needs_a_mount() -> None:
    Path("client.toml").write_text(MACHINE.partition("[[mounts]]")[0] + DRIVE)
    text = f"{HEAD}{IOZONE}[probes]\nnfs = true\n"
    assert refusal(text) == "x.toml:12: probes.nfs: the machine has no [[mounts]]"


def test_the_probe_sees_what_each_phase_called() -> None:
    found = run(f"{HEAD}{IOZONE}[probes]\nnfs = true\n")
    assert found.trials["status"].to_list() == ["ok"]
    values = dict(found.metrics.select("key", "value").iter_rows())
    assert values["write/rpc_write_bytes_sent_per_op"] == 1172
    assert values["read/rpc_read_bytes_received_per_op"] == 1152
    assert values["read/rpc_write_execute_ns_mean"] is None
    assert values["write/rpc_pulled_up_bytes"] == 4 * 256 * 1024, "the kernel copies what is shorter than its buffer"
    assert values["read/rpc_pulled_up_bytes"] == 0
    for phase in ("write", "read"):
        waits, rtt, execute = (
            values[f"{phase}/rpc_{phase}_{name}_ns_mean"] for name in ("backlog_wait", "rtt", "execute")
        )
        assert 0 < waits + rtt < execute
        assert values[f"{phase}/rpc_{phase}_ops_per_s"] == pytest.approx(values[f"{phase}/iops"], rel=0.02)


def test_the_text_of_a_phase_is_imported_with_the_same_figures(iolab: CommandLine) -> None:
    found = run(f"{HEAD}{IOZONE}[probes]\nnfs = true\n")
    values = dict(found.metrics.select("key", "value").iter_rows())
    text = Path("out/traces/000000.write.mountstats")
    shown = iolab("show", text, "--as", "json").json()
    rows = {row["metric"]: row["median"] for row in shown["values"]}
    for name in ("backlog_wait", "rtt", "execute"):
        assert rows[f"write/rpc_{name}_ns_mean"] == values[f"write/rpc_write_{name}_ns_mean"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(st.tuples(st.sampled_from([512, 1024, 4096, 65536]), st.integers(1, 40)), min_size=1, max_size=3),
    kernel=st.sampled_from(["before", "after"]),
    mode=st.sampled_from(["none", "lazy", "strict"]),
    reads=st.booleans(),
)
def test_any_text_of_the_model_reads_back_as_the_probe_saw_it(
    records: list[tuple[int, int]], kernel: str, mode: str, reads: bool
) -> None:
    table = machine_file.read("model:client.toml", Path()).table
    table["mounts"][0]["transport"]["kernel"] = kernel
    table["mounts"][0]["iommu"]["mode"] = mode
    model = _native.Model(json.dumps(table))
    for record_bytes, count in records:
        options = IozoneOptions(
            tests=["read" if reads else "write"],
            file_size=record_bytes * count,
            record_size=record_bytes,
            direct=True,
        )
        (*_, phase) = [phase for phase in IOZONE_KIND.phases(options, 1) if phase.measured]
        assert isinstance(phase, LoadPhase)
        model.start(json.dumps({**phase.load, "probes": {"nfs": {}}}))
        while (record := model.wait(1.0)) is None:
            pass
        mount = json.loads(record)["probes"]["nfs"]["mounts"]["/mnt/0"]
        seen = mount["operations"]
        before, after = snapshots(model.take_traces()["mountstats"].decode())
        assert after.since(before).pulled_up_bytes == mount["pulled_up_bytes"]
        counted = {name.lower(): values for name, values in after.since(before).operations.items() if any(values)}
        assert counted == {name: [values[counter] for counter in COUNTERS] for name, values in seen.items()}
        assert sum(values["ops"] for values in seen.values()) == count
    model.check()


GOLDEN = Path(__file__).parent / "golden" / "model" / "nfs-rdma.txt"


def test_the_experiment_of_seed_001_is_golden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixteenth of its files, one round. After a change of the model: read the difference, then write the text anew
    with `GOLDEN.write_text(shown)`."""
    monkeypatch.setenv("COLUMNS", "100")
    text = data.experiments()["nfs-rdma"].read_text()
    found = run(text.replace('"16MiB"', '"1MiB"').replace("rounds  = 3", "rounds  = 1"))
    shown = render(found, "plain") + render(found, "cycles")
    assert shown == GOLDEN.read_text()


def test_cycles_come_from_the_clock_of_the_file(iolab: CommandLine) -> None:
    run(f"{HEAD}{IOZONE}")
    shown = iolab("show", "out", "--as", "cycles").text
    assert "CPUs: 4, frequency: 2 GHz" in shown
