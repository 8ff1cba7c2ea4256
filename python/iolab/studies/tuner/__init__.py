"""Tunes: searches a space of settings on a machine, in runs of its own, and states what came out as commands."""
