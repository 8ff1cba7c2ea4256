"""Why several metrics may have no value."""

from __future__ import annotations

NO_TIME = "no time was measured"
NO_OPERATION = "no such operation completed in the measured part"
NO_IO = "no I/O completed in the measured part"
