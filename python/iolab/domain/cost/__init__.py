"""What a change of the kernel costs on the I/O path, in instructions: the report of `iolab cost`."""
