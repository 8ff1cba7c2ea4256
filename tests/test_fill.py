"""Preconditioning a drive before the measured phase of a job, on a simulated machine."""

from pathlib import Path

import pytest
from iolab.files import store
from support.command_line import CommandLine
from support.simulated import SMALL_FLASH, experiment

SMALL = f'{SMALL_FLASH}, "drives.0.device.firmware.filled" = false'
FILLED = f"""\
machine = "model:sata_ssd"
rounds = 1
seed = 1
[workloads.w]
read_percent = 0
queue_depth = 16
file_size = "98MiB"
operations = 20000
[settings.new]
machine = {{ {SMALL} }}
workload = {{ layout = false }}
[settings.twice]
machine = {{ {SMALL} }}
workload = {{ fill = "sequential twice" }}
[settings.steady]
machine = {{ {SMALL} }}
workload = {{ fill = "random until steady", steady = {{ window = "200ms", slope = 20, spread = 40 }} }}
"""


def test_a_drive_is_written_before_what_is_measured_begins(iolab: CommandLine) -> None:
    iolab("run", iolab.write("filled.toml", FILLED), "--out", "run")
    amplification = store.read(iolab.cwd / "run").values("write_amplification", "w")
    assert amplification["new"][0] == pytest.approx(1, abs=0.01)
    assert 1.01 < amplification["twice"][0] < amplification["steady"][0]


def test_each_way_of_filling_is_a_phase_that_is_not_measured(here: Path) -> None:
    text = FILLED.partition("[settings.new]")[0]
    for fill, names in (
        ("sequential twice", ["layout job", "main"]),
        ("random until steady", ["layout job", "fill job", "main"]),
    ):
        workload = experiment(f'{text}fill = "{fill}"\n').workloads["w"]
        made = workload.phases(seed=0, devices=1)
        assert [phase.name for phase in made] == names
        assert [phase.measured for phase in made] == [False] * (len(names) - 1) + [True]
        bounds = made[0].load["groups"][0]["jobs"][0]["until"]
        assert bounds["bytes"] == (2 if "twice" in fill else 1) * 98 * 2**20


def test_a_fill_that_does_not_become_steady_is_a_doubt(iolab: CommandLine) -> None:
    text = FILLED.partition("[settings.new]")[0]
    never = 'fill = "random until steady"\nsteady = { window = "20ms", rounds = 2, spread = 0.000001 }\n'
    never += 'block_size = { "4KiB" = 1, "64KiB" = 1 }\n'
    small = f"[settings.small]\nmachine = {{ {SMALL} }}\n"
    done = iolab("run", iolab.write("never.toml", text + never + small), "--out", "run")
    assert "ended before their rate was steady (fill)" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ('fill = "random twice"', ["fill", "did you mean random until steady?"]),
        ('fill = "sequential twice"\nlayout = false', ["layout", "leave layout out"]),
        ('fill = "random until steady"\ndirect = false', ["fill", "direct = true"]),
    ],
)
def test_a_mistake_is_one_clear_line(iolab: CommandLine, options: str, words: list[str]) -> None:
    text = FILLED.partition("[settings.new]")[0] + options + "\n"
    iolab("run", iolab.write("wrong.toml", text), status=None).assert_one_clear_line(2, *words)
