"""Which kernel tests boot."""

from __future__ import annotations

import pytest
from iolab.base.errors import IolabError
from iolab.machines.guest import debian, kernel, programs


def kernel_or_skip() -> str:
    """A cached kernel, else the newest that the package index has; the test is skipped where there is none."""
    try:
        programs.qemu(), programs.agent(), programs.counter()
        cached = [one["name"] for one in kernel.listed() if one["state"] == "cached" and "-cloud" in one["name"]]
        names = cached or [name for name in debian.available() if name.startswith("6.1.") and name.endswith("-cloud")]
        if not names:
            pytest.skip("no kernel is cached, and the package index has none")
        kernel.find(names[-1])
    except IolabError as error:
        pytest.skip(f"no guest machine here: {error}")
    return names[-1]
