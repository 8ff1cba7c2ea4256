"""This iolab's version."""

VERSION = "0.2.0"
