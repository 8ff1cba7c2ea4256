"""This machine: what it is, what may be written on it, and how a trial runs here and leaves nothing behind."""
