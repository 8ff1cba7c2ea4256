"""Which kernel tests boot."""

import pytest
from iolab.base.errors import IolabError
from iolab.machines.guest import debian, kernel, programs


def kernel_or_skip(line: str = "") -> str:
    """A cached kernel, else the newest that the package index has; the test is skipped where there is none. `line`: how
    its version begins."""
    try:
        programs.qemu(), programs.agent(), programs.counter()
        cached = [one["name"] for one in kernel.listed() if one["state"] == "cached" and "-cloud" in one["name"]]
        cached = [name for name in cached if name.startswith(line)]
        names = cached or [
            name for name in debian.available() if name.startswith(line or "6.1.") and name.endswith("-cloud")
        ]
        if not names:
            pytest.skip("no kernel is cached, and the package index has none")
        kernel.find(names[-1])
    except IolabError as error:
        pytest.skip(f"no guest machine here: {error}")
    return names[-1]
