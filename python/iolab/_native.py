"""Stands for the extension if that is not built: Python takes `_native.abi3.so` before this file."""

raise ImportError("iolab's compiled extension is missing; build it with: make demo, or install iolab again")
