"""A block device in memory that does its I/O in the call of whoever submits it: no other thread is needed."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from result import NotMeasured

CONTROL = Path("/sys/class/zram-control")
MIB = 1 << 20


@contextlib.contextmanager
def filled(*, size_mib: int) -> Iterator[Path]:
    """Yields a device of random bytes, which it can't compress."""
    if not CONTROL.exists():
        raise NotMeasured("this kernel has no zram (CONFIG_ZRAM)")
    number = (CONTROL / "hot_add").read_text().strip()
    settings, device = Path("/sys/block", f"zram{number}"), Path("/dev", f"zram{number}")
    try:
        (settings / "disksize").write_text(f"{size_mib}M")
        with device.open("wb", buffering=0) as file:
            for _ in range(size_mib):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        yield device
    finally:
        (settings / "reset").write_text("1")
        (CONTROL / "hot_remove").write_text(number)
