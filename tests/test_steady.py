"""A job that ends when its rate is steady by SNIA's rule, on a simulated machine."""

import pytest
from iolab.files import store
from support.command_line import CommandLine

WRITER = """\
machine = "model:nvme"
rounds = 1
seed = 1
[workloads.writer]
read_percent = 0
file_size = "16MiB"
queue_depth = 4
duration = "2s"
steady = {STEADY}
"""
METRICS = ("steady_after_ns", "steady_iops", "steady_slope_percent", "steady_spread_percent")


def test_a_job_ends_when_the_line_and_the_spread_of_a_window_are_within_their_limits(iolab: CommandLine) -> None:
    done = iolab("run", iolab.write("steady.toml", WRITER.replace("STEADY", ' window = "50ms" ')), "--out", "run")
    assert "steady state reached after" in done.stdout
    run = store.read(iolab.cwd / "run")
    after, iops, slope, spread = (run.values(metric, "writer")["default"][0] for metric in METRICS)
    # A window of five rounds of 10 ms is full after 50 ms.
    assert 50e6 <= after < 1e9
    assert slope < 10
    assert spread < 20
    assert run.values("elapsed_s", "writer")["default"][0] == pytest.approx(after / 1e9, abs=0.01)
    assert iops == pytest.approx(run.values("iops", "writer")["default"][0], rel=0.2)


def test_a_rate_that_is_not_steady_runs_to_the_bound_and_the_run_says_how_far_it_was(iolab: CommandLine) -> None:
    text = WRITER.replace("STEADY", ' window = "20ms", rounds = 2, spread = 0.000001 ').replace("2s", "100ms")
    text += 'rate_iops = 20000\nspacing = "poisson"\n'
    done = iolab("run", iolab.write("restless.toml", text), "--out", "run")
    assert "steady state not reached: slope of the IOPS" in done.stdout
    run = store.read(iolab.cwd / "run")
    assert run.values("steady_after_ns", "writer")["default"][0] is None
    assert run.values("steady_spread_percent", "writer")["default"][0] > 0
    assert run.values("elapsed_s", "writer")["default"][0] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("steady", "words"),
    [
        ("{ slop = 10 }", ["steady.slop", "unknown option", "did you mean slope?"]),
        ("{ slope = 0 }", ["steady.slope", "above 0"]),
        ('{ window = "1ms" }', ["steady.window", "50ms or more"]),
        ("10", ["steady", "expected a table"]),
        ("{ rounds = 1 }", ["steady.rounds", "from 2 to"]),
        ("{}\njobs = 2", ["steady", "2 copies", "queue_depth"]),
        ("{}\nduration = 0", ["duration"]),
    ],
)
def test_a_mistake_is_one_clear_line(iolab: CommandLine, steady: str, words: list[str]) -> None:
    text = WRITER.replace('duration = "2s"\n', "" if "duration" in steady else 'duration = "2s"\n')
    refused = iolab("run", iolab.write("wrong.toml", text.replace("{STEADY}", steady)), status=None)
    refused.assert_one_clear_line(2, *words)
