"""Small experiments for end-to-end tests: seconds at most, one thing varied."""

DEFAULT_WORKLOAD = """
[workloads.reads]
pattern = "random"
queue_depth = 4
file_size = "8MiB"
duration = "150ms"
interval = "50ms"
"""
TWO_SCHEDULERS = """
[settings.none]
scheduler = "none"
[settings.deadline]
scheduler = "mq-deadline"
nr_requests = 64
"""
TWO_DEPTHS = """
[settings.shallow]
workload = { queue_depth = 1 }
[settings.deep]
workload = { queue_depth = 8 }
"""
SCRATCH = 'kind = "scratch"\nsize = "64MiB"\nfilesystem = "ext4"'


def experiment(
    target: str, *, workload: str = DEFAULT_WORKLOAD, settings: str = TWO_DEPTHS, rounds: int = 2, seed: int = 1
) -> str:
    """The text of an experiment; `target` is the inside of its table."""
    return f"rounds = {rounds}\nseed = {seed}\n[target]\n{target}\n{workload}{settings}"


def reads_for(duration: str) -> str:
    return DEFAULT_WORKLOAD.replace("150ms", duration)
