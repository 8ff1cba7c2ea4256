"""Phases that begin together, each run in a thread of its own by the runner of its kind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.domain.trial import LoadPhase, Phase
from iolab.machines.system import page_cache

if TYPE_CHECKING:
    from iolab.domain.phase_record import PhaseRecord
    from iolab.machines.host.surroundings import Surroundings

RunPhase = Callable[["Phase", "Surroundings"], "PhaseRecord"]


def run(phases: Sequence[Phase], around: Surroundings, run_phase: RunPhase) -> list[PhaseRecord]:
    """The records in the order of the phases. If the end of one stops the others, these were not stopped from
    outside. Raises what a runner raises, once all have ended."""
    notes = page_cache.drop(_files_of(phases)) if any(phase.drops_caches for phase in phases) else []
    phases = [phase.dropping_caches(False) for phase in phases]
    others_stop = threading.Event()
    ready = threading.Barrier(len(phases))
    records: list[PhaseRecord | None] = [None] * len(phases)
    failures: list[BaseException] = []
    stoppers = [phase for phase in phases if phase.beside is not None and phase.beside.stops_others]
    # Lines of two that report their progress would alternate.
    shown = (stoppers or phases)[0]
    shows = replace(around, should_stop=lambda: others_stop.is_set() or around.should_stop())
    silent = replace(shows, on_progress=lambda progress: None)

    def run_one(number: int, phase: Phase) -> None:
        try:
            ready.wait()
            records[number] = run_phase(phase, shows if phase is shown else silent)
        except BaseException as error:
            failures.append(error)
            others_stop.set()
        else:
            if phase in stoppers:
                others_stop.set()

    threads = [threading.Thread(target=run_one, args=one, daemon=True) for one in enumerate(phases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    done = [record for record in records if record is not None]
    done[0]["groups"][0]["notes"] += notes
    if not around.should_stop():
        for record in done:
            record["stopped"] = False
    return done


def _files_of(phases: Sequence[Phase]) -> list[Path]:
    return [Path(file["path"]) for phase in phases if isinstance(phase, LoadPhase) for file in phase.load["files"]]
