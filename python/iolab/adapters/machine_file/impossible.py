"""What is wrong with a machine: the key, and why."""

from __future__ import annotations


class Impossible(Exception):
    """`key` is the dotted path in the machine's file, such as `drives.0.device.zones.3.cylinders`."""

    def __init__(self, key: str, what: str) -> None:
        self.key = key
        self.what = what
        super().__init__(f"{key}: {what}" if key else what)

    @classmethod
    def told_by(cls, error: ValueError) -> Impossible:
        """Of the model's own error, (key, what)."""
        key, what = error.args if len(error.args) == 2 else ("", str(error))
        return cls(str(key), str(what))

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.key.split(".")) if self.key else ()

    @property
    def is_of_cell(self) -> bool:
        """Whether it is about where a drive's application runs and its requests are queued and completed."""
        return self.path[:1] == ("drives",) and self.path[2:3] == ("affinity",)
