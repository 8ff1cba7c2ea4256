"""The run directory: written durably by `iolab.run`, read back as frames by `read`."""

from iolab.store.directory import RunDirectory
from iolab.store.read import RunData, read

__all__ = ["RunData", "RunDirectory", "read"]
