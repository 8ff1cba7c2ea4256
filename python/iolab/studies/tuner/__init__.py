"""Tunes: searches a space of settings on a machine, in runs of its own, and says what came out as commands."""
