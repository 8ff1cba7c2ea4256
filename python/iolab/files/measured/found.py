"""What a file has for a calibration."""

from __future__ import annotations

from dataclasses import dataclass, field

from iolab.domain.calibration.cell import Cell


@dataclass
class MeasuredCells:
    """The cells of one or several files, and why the others were left out."""

    cells: list[Cell] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """A line each: which, and why."""

    def add(self, other: MeasuredCells) -> None:
        """Adds those of another file."""
        self.cells += other.cells
        self.left_out += other.left_out
