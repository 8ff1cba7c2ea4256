"""A run whose trials are measured on other hosts: what it can't have, and on which host each of its rounds began."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.domain.executor import Executor
from iolab.domain.experiment import Experiment
from iolab.domain.machine import HOST, Host
from iolab.files.store.state import RunState


@runtime_checkable
class OnHosts(Protocol):
    """An executor that measures each round on one of several hosts."""

    def pin(self, host_of: Mapping[int, str]) -> None:
        """Gives the host on which rounds have begun: the rest of each is measured there."""


def check(experiment: Experiment, part: str | None, on: str | None) -> None:
    """InputError if the experiment needs something that several hosts can't do."""
    if on is None or not isinstance(experiment.machine, Host):
        return
    if part is not None:
        raise InputError("a part is a boot of one machine", where="--part", remedy="leave --on out, and run it there")
    if experiment.machine.target_by_default:
        raise InputError(
            "the experiment has no [target]; hosts differ in what is there",
            where="--on",
            remedy='name what each host has, such as target = { kind = "scratch", size = "1GiB" }',
        )


def check_resumable(path: Path, state: RunState, on: str | None) -> None:
    """InputError if a run on several hosts is to continue here, or a run of this machine elsewhere."""
    hosts = {event["host"] for event in state.finished.values() if "host" in event}
    begun = any(event["status"] != "impossible" for event in state.finished.values())
    if hosts and on is None:
        named = ", ".join(sorted(hosts))
        raise InputError(
            f"was measured on {named}", where=str(path), remedy="continue there, with --on as at its start"
        )
    of_host = state.started is not None and state.started["machine"] == HOST
    if on is not None and of_host and begun and not hosts:
        raise InputError("was measured on this machine", where=str(path), remedy="continue here, without --on")


def pin(executor: Executor, state: RunState) -> None:
    """Gives an executor of several hosts the host on which each of the run's rounds began."""
    if isinstance(executor, OnHosts):
        executor.pin({event["round"]: event["host"] for event in state.finished.values() if "host" in event})


def describe(on: str) -> JsonObject:
    """The content of machine.json for a run on several hosts; each record names its own host."""
    return {"cluster": {"address": on}, "versions": {"iolab": VERSION}}
