"""The port of a kind of machine, which alone is imported: a host needs nothing of what emulates machines."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from iolab.domain.machine import Machine, Port


def port_of(machine: Machine) -> Port[Any]:
    """Who answers for the machine before trials run there."""
    return cast("Port[Any]", import_module(f"iolab.machines.{machine.kind}.port"))
