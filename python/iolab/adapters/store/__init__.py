"""The run directory: written durably by `iolab.adapters.run`, read back as frames by `read`."""

from iolab.adapters.store.directory import RunDirectory
from iolab.adapters.store.read import RunData, read

__all__ = ["RunData", "RunDirectory", "read"]
