"""The ports of all kinds of machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iolab.domain.machine import Machine, Port
from iolab.domain.trial.trial import Kind
from iolab.machines.guest import port as guest
from iolab.machines.host import port as host
from iolab.machines.model import port as model

PORTS: Mapping[Kind, Port[Any]] = {"host": host, "guest": guest, "model": model}


def port_of(machine: Machine) -> Port[Any]:
    """Who answers for the machine before trials run there."""
    return PORTS[machine.kind]
