"""Trials, records, metrics, verdicts, workloads: what iolab is about, as plain data and pure functions."""
