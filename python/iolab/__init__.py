"""A laboratory for storage I/O on Linux."""

__version__ = "0.1.0"
