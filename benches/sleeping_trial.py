"""A trial that only waits, as one does whose I/O takes time: what sweep_scale has nodes run."""

import time

SLEEP_S = 0.5


def simulate(trial: str, version: str) -> str:
    """The answer to a trial, both as JSON, `SLEEP_S` later."""
    time.sleep(SLEEP_S)
    return f'{{"record":{record(trial)}}}'


def record(trial: str) -> str:
    """A record without phases, as JSON."""
    return (
        f'{{"spec":{trial},"status":"ok","started_unix_ns":1,"ended_unix_ns":2,"controls_applied":{{}},'
        '"controls_absent":{},"phases":[],"observed":{},"faults":[],"notes":[]}'
    )
