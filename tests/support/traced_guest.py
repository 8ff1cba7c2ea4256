"""A guest whose measured phase is traced by tracefs: its text, as `cat /sys/kernel/tracing/trace` shows it."""

from pathlib import Path
from typing import Any

from iolab.domain import control
from iolab.files.experiment import loads
from iolab.machines.guest import guest, kernel, plan, programs, qemu
from iolab.machines.guest.limit import Deadline
from iolab.machines.guest.modules import Modules
from iolab.studies.run.plan import Plan
from iolab.studies.trace.record import EVENTS, OF_LAYERS

TRACING = "/sys/kernel/tracing"
BUFFER_KIB = 8192
LIMIT_S = 1200


def traced(experiment: str, directory: Path) -> str:
    """The events of the first trial's measured phase.

    Args:
        directory: an empty one, for the machine's files.
    """
    (trial,) = Plan(loads(experiment, "guest.toml"), 1).round(0)
    assert trial.guest is not None
    amended = control.amend(trial)
    found = kernel.find(trial.guest.kernel)
    made = plan.make(amended, Modules(found.modules))
    cat = programs.pack(made.archive, "cat", "coreutils")
    at = next(step for step, phase in made.phases.items() if phase.measured)
    before = [
        {"do": "mount", "source": "tracefs", "place": TRACING, "filesystem": "tracefs", "options": ""},
        _write("buffer_size_kb", str(BUFFER_KIB)),
        *(_write(f"events/block/{event}/enable", "1") for event in (*EVENTS, OF_LAYERS)),
    ]
    after: list[dict[str, Any]] = [_write("tracing_on", "0"), {"do": "console", "argv": [cat, f"{TRACING}/trace"]}]
    made.steps[at : at + 1] = [*before, made.steps[at], *after]
    (directory / "initramfs").write_bytes(made.packed())
    board = qemu.Board(
        found.image,
        directory / "initramfs",
        trial.guest.cpus,
        trial.guest.memory_bytes,
        " ".join(made.parameters),
        guest._drives(amended, directory),
        name=found.label,
    )
    report = qemu.run(
        board,
        directory,
        made.steps,
        deadline=Deadline.after(LIMIT_S),
        should_stop=lambda: False,
        on_look=lambda _: None,
    )
    assert report.failed is None, report.failed
    return (directory / "console").read_text(errors="replace").replace("\r", "")


def _write(file: str, value: str) -> dict[str, Any]:
    return {"do": "write", "path": f"{TRACING}/{file}", "value": value, "optional": False}
