"""The run directory: written durably by `iolab.studies.run`, read back as frames by `read`."""

from iolab.files.store.directory import RunDirectory
from iolab.files.store.read import RunData, read

__all__ = ["RunData", "RunDirectory", "read"]
