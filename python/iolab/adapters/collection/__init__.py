"""A directory of runs: found, read once each, kept in an index; labelled and removed."""

from iolab.adapters.collection.collection import Collection

__all__ = ["Collection"]
