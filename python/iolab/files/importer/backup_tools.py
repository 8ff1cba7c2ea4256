"""Reports of programs that back up: Borg and restic."""

from __future__ import annotations

from iolab.files.importer.figures import NUMBER, figures_format, of, rule

_LASTED = r"\d[\d.]{0,12}[\d. a-z]{0,60}? seconds"
BORG = figures_format(
    "borg",
    "borg create --stats: how long it took",
    recognised_by=rf"Duration: {_LASTED}\s*+$",
    words=("Archive name:", "Archive fingerprint", "Duration:", "This archive:", "Chunk index:"),
    titled=True,
    rules=[
        rule(r"Archive name: ", begins=True),
        rule(rf"Duration: (?P<elapsed>{_LASTED})\s*+$", elapsed=of("elapsed_s")),
    ],
)

_AGO = r"(?:\d++:)?\d++:\d\d"
RESTIC = figures_format(
    "restic",
    "restic's last lines of a backup: how much it read, and how long it took",
    recognised_by=rf"processed \d++ files, [\d.]++ [KMGT]?i?B in {_AGO}|duration: {_AGO}, [\d.]++[KMGT]iB/s",
    repeats=r"\[[\d:]++\] [\d.]++%",
    words=("processed", "files,", "Added to the repository", "snapshot", "saved"),
    titled=True,
    rules=[
        rule(
            rf"processed {NUMBER} files, (?P<size>{NUMBER}) (?P<size_unit>[KMGT]?i?B) in (?P<elapsed>{_AGO})",
            size=of("bytes"),
            elapsed=of("elapsed_s"),
        ),
        # Versions before 0.9.
        rule(
            rf"duration: (?P<elapsed>{_AGO}), (?P<rate>{NUMBER})(?P<rate_unit>[KMGT]iB)/s",
            elapsed=of("elapsed_s"),
            rate=of("rate_bytes_per_s"),
        ),
    ],
)
FORMATS = (BORG, RESTIC)
