"""What a run shows: rates from counts, time left from what trials took, few lines where there is no terminal."""

import io
from pathlib import Path

import pytest
from fake_machine import experiment, record_of
from iolab.domain.executor import Progress
from iolab.domain.trial import Trial
from iolab.presentation.progress import display, words
from iolab.presentation.progress.live import LiveDisplay
from iolab.presentation.progress.pace import Pace, Speedometer
from iolab.presentation.progress.plain import PlainDisplay
from iolab.studies.run import plan
from rich.console import Console

NS_PER_S = 1_000_000_000


def running(elapsed_s: float, ops: int, *, fraction: float | None = None, phase: str = "main") -> Progress:
    return Progress(
        phase, "running", elapsed_ns=int(elapsed_s * NS_PER_S), ops=ops, bytes=4096 * ops, fraction=fraction
    )


def trials() -> list[Trial]:
    return plan.trials(experiment(), 1, seed=7)


def test_the_rate_is_that_of_the_last_second_not_of_the_phase() -> None:
    meter = Speedometer()
    assert meter.rate(running(0, 0)) is None
    for tenth in range(1, 31):
        rate = meter.rate(running(tenth / 10, 100 * min(tenth, 10) + 1000 * max(0, tenth - 10)))
    assert rate is not None
    assert rate.ios_per_s == pytest.approx(10_000)
    assert rate.bytes_per_s == pytest.approx(10_000 * 4096)


def test_a_new_phase_starts_a_new_rate() -> None:
    meter = Speedometer()
    meter.rate(running(0, 0))
    meter.rate(running(1, 500))
    assert meter.rate(running(0.1, 5, phase="second")) is None
    rate = meter.rate(running(1.1, 105, phase="second"))
    assert rate is not None
    assert rate.ios_per_s == pytest.approx(100)


def test_time_left_is_what_each_workloads_trials_took() -> None:
    pace = Pace()
    pace.plan({"short": 3, "long": 2})
    assert pace.left_ns() is None
    pace.finished("short", NS_PER_S)
    assert pace.left_ns() == (2 + 2) * NS_PER_S
    pace.finished("long", 10 * NS_PER_S)
    assert pace.left_ns() == (2 + 10) * NS_PER_S
    assert pace.left_ns(spent_on_current_ns=3 * NS_PER_S) == (2 + 10 - 3) * NS_PER_S
    pace.plan({"short": 1})
    assert pace.to_come == 4


@pytest.mark.parametrize(
    ("duration_ns", "shown"), [(0, "0:00"), (59.6e9, "1:00"), (125e9, "2:05"), (3725e9, "1:02:05")]
)
def test_durations(duration_ns: float, shown: str) -> None:
    assert words.duration(duration_ns) == shown


def test_plain_lines_are_few() -> None:
    stream, now_ns = io.StringIO(), [0]
    plain = PlainDisplay(stream, monotonic_ns=lambda: now_ns[0])
    plain.begin(Path("run"), finished=0)
    plain.planned({"reads": 1, "both": 3})
    for trial in trials():
        plain.trial_started(trial)
        for tenth in range(200):
            now_ns[0] += NS_PER_S // 10
            plain.trial_progress(running(tenth / 10, 1000 * tenth, fraction=(tenth + 1) / 200))
        plain.trial_finished(trial, record_of(trial), 20 * NS_PER_S)
    plain.end()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1 + 4 * (4 + 1)
    assert lines[0] == "run in run"
    assert "10,000 IOPS" in lines[1]
    assert lines[1].startswith("[1/4] ")
    assert lines[1].endswith(" s left")
    assert lines[5].endswith("20.0 s, 1:00 left")
    assert lines[-1].startswith("[4/4] ")


def test_brief_lines_tell_only_what_went_wrong() -> None:
    stream = io.StringIO()
    plain = PlainDisplay(stream, brief=True, monotonic_ns=lambda: 0)
    plain.begin(Path("run"), finished=0)
    plain.planned({"reads": 2, "both": 2})
    for number, trial in enumerate(trials()):
        plain.trial_started(trial)
        plain.trial_finished(trial, record_of(trial, status="faulty" if number == 2 else "ok"), NS_PER_S)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("[3/4] ")
    assert "faulty, it broke (x2)" in lines[1]


def test_the_live_display_shows_bar_rate_and_time_left() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    live = LiveDisplay(screen)
    live.begin(Path("run"), finished=2)
    try:
        live.planned({"reads": 1, "both": 1})
        first, *_ = trials()
        live.trial_started(first)
        live.trial_progress(running(1, 1000, fraction=0.25))
        live.trial_progress(running(2, 3000, fraction=0.5))
        with screen.capture() as captured:
            screen.print(live._drawing())
    finally:
        live.end()
    shown = captured.get()
    assert "2 of 4 trials" in shown
    assert "2,000 IOPS" in shown
    assert "2.0 s left" in shown
    assert words.title(first) in shown


def test_without_a_terminal_lines_are_plain() -> None:
    assert isinstance(display(), PlainDisplay)
    assert isinstance(display(as_json=True), PlainDisplay)
