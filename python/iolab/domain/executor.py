"""Who runs a trial, and who observes it: small interfaces.

`iolab.machines.host.local_process` runs a trial on this machine, `iolab.machines.model` simulates it, here or on
the hosts of a cluster (`iolab.machines.cluster`). The loop over the trials (`iolab.studies.run`) calls the display,
`iolab.presentation.progress` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, runtime_checkable

from iolab.base.errors import InputError, InterruptedRun, IolabError, MachineError
from iolab.base.strict_json import JsonObject

if TYPE_CHECKING:
    from iolab.domain.record import Record
    from iolab.domain.trial import DeviceIdentity, Trial


Doing = Literal["preparing", "laying out", "running", "restoring"]


@dataclass(frozen=True)
class Progress:
    """What a trial is doing now; counts are those of the phase."""

    phase: str
    doing: Doing
    elapsed_ns: int = 0
    ops: int = 0
    bytes: int = 0
    errors: int = 0
    fraction: float | None = None
    """0 to 1 of the phase; None without a bound."""
    warming_up: bool = False
    waiting: str = ""
    """What does not answer, while nothing gets on."""


OnProgress = Callable[[Progress], None]
ShouldStop = Callable[[], bool]


class Executor(Protocol):
    """Who runs a trial, whatever the machine. Used by one thread, a trial at a time."""

    def expect(self, trials: Iterable[Trial]) -> None:
        """The trials that will be run next, in this order, for who can begin early. Some may never be asked for."""
        ...

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        """Whether the devices of a trial that writes to named devices may be written to, and what they are known by.

        Raises:
            InputError, MachineError: they may not, or are not those that the trial knows.
            InterruptedRun: `should_stop` became true.
        """
        ...

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        """Runs one trial to its record. The record's status is `interrupted` when `should_stop` became true.

        Raises:
            InputError, MachineError: the trial cannot run as it is, or here.
            TrialStalled: it got nowhere for too long.
            LeftBehind: it was stopped, and what it changed is not restored yet.
        """
        ...


@runtime_checkable
class ConcurrentExecutor(Executor, Protocol):
    """An executor that runs several trials at once, which end in any order."""

    def soonest(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Trial:
        """Waits until the record of `trial`, or of one that was expected, is there, and states which: the one to `run`
        next. `trial` itself when `should_stop` became true."""
        ...


class Pool(Protocol):
    """Runs trials side by side, somewhere: on this machine's cores, or on many hosts'. Used by one thread."""

    @property
    def slots(self) -> int:
        """How many run at once by now; it may change."""
        ...

    def begin(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Future[Record]:
        """Begins a trial as soon as a slot is free. The future raises what `Executor.run` raises."""
        ...

    def close(self) -> None:
        """Ends what still runs; nothing that was begun is waited for longer than stopping takes."""
        ...


class LeftBehind(InterruptedRun):
    """Stopped, and not everything is restored: what, and who will."""


class TrialStalled(MachineError):
    """A trial got nowhere for too long. What its target is, no other trial would fare better on it."""

    PREFIX = "a trial was given up: "

    def __init__(self, record: Record, why: str, *, where: str) -> None:
        """`record`: the trial's, with status `failed`."""
        super().__init__(
            f"{self.PREFIX}{why}",
            where=where,
            remedy="see to it that the target answers again, then: iolab restore",
        )
        self.record = record


class ErrorFields(TypedDict):
    """An error as it goes from a process to its parent."""

    what: str
    where: str | None
    remedy: str | None
    exit_status: int


class Answer(TypedDict, total=False):
    """The messages of the process that runs trials: its progress, and last one of the others."""

    progress: JsonObject
    """The fields of a `Progress`."""
    record: JsonObject
    admitted: list[JsonObject]
    """The `DeviceIdentity` of each device."""
    error: ErrorFields
    defect: str
    """What was raised that is no error of iolab's, in a line."""
    stuck: bool
    """The trial was given up: a thread of the process waits in the kernel, and the process ends."""


def error_to_json(error: IolabError) -> ErrorFields:
    """What `error_from_json` raises again on the other side."""
    return {
        "what": error.what,
        "where": error.where,
        "remedy": error.remedy,
        "exit_status": error.exit_status,
    }


def error_from_json(fields: ErrorFields) -> IolabError:
    """The error that `error_to_json` wrote; a MachineError for an exit status that is none of iolab's."""
    kinds: dict[int, type[IolabError]] = {kind.exit_status: kind for kind in (InputError, MachineError, InterruptedRun)}
    kind = kinds.get(fields["exit_status"], MachineError)
    return kind(fields["what"].split("\n"), where=fields["where"], remedy=fields["remedy"])


class Display(Protocol):
    """Gets from the loop (`iolab.studies.run`) what happens. Calls come from one thread, in this order."""

    def begin(self, path: Path, *, finished: int) -> None:
        """The run in `path` starts or goes on, with so many trials finished before."""

    def planned(self, trials_by_workload: Mapping[str, int]) -> None:
        """So many trials will run; called again when rounds are added."""

    def trial_started(self, trial: Trial) -> None:
        """The trial begins."""

    def trial_progress(self, progress: Progress) -> None:
        """What the trial that began is doing now; called some times per second."""

    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None:
        """The trial ended, with any status, `duration_ns` after it began."""

    def report_line(self, line: str) -> None:
        """Something worth knowing beside the trials: what was restored, what is still undecided."""

    def report_look(self, line: str) -> None:
        """What a look at the verdicts so far found, in place of what the one before it found."""

    def end(self) -> None:
        """No more trials; also after an error or an interruption."""
