"""What the devices of a class have in common: everything but the three fitted keys, and how long a stall is.

All of it stands in the file of the device that they are like. The number of dies follows from the capacity.
"""

import math
import re
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.files import machine_file

DEVICES = Path(__file__).parents[2] / "machines" / "devices"
DIE_GB = 32
"""Of three bits a cell in 64 to 96 layers, 256 Gb (E)."""


@dataclass(frozen=True)
class DeviceClass:
    """Devices on the same link."""

    name: str
    like: str
    """The device that they are like, as `iolab list devices` names it."""
    read_key: str
    """What random reads are limited by, and so what is fitted to them."""


SATA = DeviceClass("SATA, 6 Gb/s", "sata_ssd_2018", "firmware.command_ns")
PCIE_3 = DeviceClass("PCIe 3.0 x4", "nvme_pcie_3", "timing.page_read_ns")
PCIE_4 = DeviceClass("PCIe 4.0 x4", "nvme_pcie_4", "timing.page_read_ns")
_LINKS = (
    (r"Samsung_SSD_8[67]0", SATA),
    (r"CT1000P3P|Lexar_SSD_NM790|MTFDKBA|Samsung_SSD_9[89]0|WD_BLACK_SN(770|850X)|WD_Blue_SN580", PCIE_4),
)
"""By the beginning of the model's name; the others are PCIe 3.0. From the manufacturers' data sheets."""
STALL_WRITES = 8192
"""From one stall to the next: several times what the benchmark has in flight (E)."""
READ_KEY, PROGRAM_KEY, WRITE_KEY = "read_key", "timing.page_program_ns", "firmware.write_ns"


def class_of(model: str) -> DeviceClass:
    """The class of a model, by its name."""
    return next((found for pattern, found in _LINKS if re.match(pattern, model)), PCIE_3)


def device_of(model: str, gb: int) -> dict[str, Any]:
    """The device's table before its keys are fitted."""
    kind = class_of(model)
    device = deepcopy(class_table(kind))
    if kind is not SATA:
        channels = device["geometry"]["channels"]
        device["geometry"]["dies_per_channel"] = max(channels, 2 ** round(math.log2(gb / DIE_GB))) // channels
    return device


def class_table(kind: DeviceClass) -> dict[str, Any]:
    """The table of the device that the class is like."""
    return machine_file.device_at(DEVICES / f"{kind.like}.toml").values
