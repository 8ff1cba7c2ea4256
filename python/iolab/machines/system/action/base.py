"""An action: what it needs to know to be undone, and how that ends."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict


class CannotUndo(Exception):
    """One line why; `for_good`: trying again later would not help."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


@dataclass(frozen=True)
class Outcome:
    """What an undo did, in one line, and whether that is unusual."""

    line: str
    unusual: bool = False
    """Worth a line even after a trial that went well."""


@dataclass(frozen=True)
class Action(ABC):
    """A change that the undo journal holds: its fields are the entry's."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=True)
    outlives_reboot: ClassVar[bool] = False
    """Files stay; kernel settings, mounts and loop devices are gone with the kernel that had them."""

    @property
    @abstractmethod
    def to_do(self) -> str:
        """What undoing it does, as in "cannot ..."."""

    @property
    def is_iolabs_own(self) -> bool:
        """Whether iolab itself makes such changes there. A journal's entry that it never would have written is not
        undone."""
        return True

    @property
    def shared(self) -> str | None:
        """The lock (`iolab.machines.system.lock.of_shared`) of what other runs change too, and may be changing now."""
        return None

    @property
    def order(self) -> str | None:
        """What it is of, if changes of the same can be undone in their order alone, the newest first: as long as one
        is not undone, the older ones wait."""
        return None

    @abstractmethod
    def undo(self) -> Outcome | None:
        """Takes the change back; None when there was nothing to do.

        Raises:
            CannotUndo, MachineError: not now; neither stops the undoing of others.
        """


@contextlib.contextmanager
def refusal(to_do: str) -> Iterator[None]:
    """The kernel's refusal inside as one line."""
    try:
        yield
    except OSError as error:
        raise CannotUndo(f"cannot {to_do}: {error.strerror}") from error
