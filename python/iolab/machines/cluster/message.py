"""The messages between the run's process and its driver, which talks to Ray: JSON lines.

Trials and answers are texts inside, which the driver passes on as they are.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from iolab.domain.executor import ErrorFields

HOST_RESOURCE = "iolab_host:"
"""A node that offers a host has one of the resource of this name and the host's."""


class Request(TypedDict, total=False):
    """A line to the driver."""

    do: Literal["begin", "stop"]
    id: int
    trial: str
    """The trial's JSON; of a host also `{"describe": TRIAL}`."""
    host: str
    """The host that it is for; absent: any node with a free CPU."""


class Report(TypedDict, total=False):
    """A line from the driver."""

    slots: int
    """CPUs of all live nodes, sent every second or so with `hosts`: while it comes, the cluster answers."""
    hosts: list[str]
    """Those that offer themselves, in order; one that two nodes offer is twice in it."""
    id: int
    answer: str
    """JSON of an `iolab.domain.executor.Answer`."""
    lost: str
    """Why the trial ended without an answer: its host is gone."""
    error: ErrorFields
    """Nothing more can be done; the driver ends."""
