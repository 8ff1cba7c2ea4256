"""Whether what is done with an input takes time that grows as the input does."""

import time
from collections.abc import Callable

TIMES = 16
"""As many times as much takes about as many times as long, and 256 times where it takes the square."""
TIMES_MAX = 64.0
"""Halfway by logarithm: noise on either side has to reach a factor of 4."""
NOISE_S = 0.05
"""What takes less of the processor is not looked at: a square takes ten times that at the sizes of these tests."""
ATTEMPTS = 3


def assert_linear(of_size: Callable[[int], Callable[[], object]], size: int) -> None:
    """`of_size` makes what is done with an input of so many pieces: it is done with `size` and a sixteenth of it, in
    turn, so that what the machine does beside meets both; again if it seems too slow."""
    much, little = of_size(size), of_size(size // TIMES)
    much_s = cpu_s(much)
    if much_s > NOISE_S:
        little_s = min(cpu_s(little) for _ in range(ATTEMPTS))
        for _ in range(ATTEMPTS - 1):
            if much_s < TIMES_MAX * max(little_s, NOISE_S / TIMES):
                return
            much_s, little_s = min(much_s, cpu_s(much)), min(little_s, cpu_s(little))
        said = f"{little_s:.4f} s, and {much_s:.4f} s for {TIMES} times as much"
        assert much_s < TIMES_MAX * max(little_s, NOISE_S / TIMES), said


def cpu_s(action: Callable[[], object]) -> float:
    """The CPU time of this thread."""
    began = time.thread_time()
    action()
    return time.thread_time() - began
