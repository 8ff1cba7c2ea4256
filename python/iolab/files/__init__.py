"""What iolab reads and writes: experiments, machine files, files of other tools, runs and collections of them."""
