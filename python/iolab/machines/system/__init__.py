"""This Linux system: devices, mounts, control groups, tracing, locks, and the undo journal of what was changed."""
