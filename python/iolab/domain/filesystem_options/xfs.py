"""Options of mkfs.xfs(8) and of mounting XFS (xfs(5), Documentation/admin-guide/xfs.rst)."""

from __future__ import annotations

from iolab.domain.filesystem_options.form import (
    ALONE,
    LABEL,
    NAMES_A_PATH,
    NUMBER,
    OWN_UUID,
    SIZE,
    SWITCH,
    Form,
    Keys,
    RefusedForm,
    flags,
    one_of,
)

OWN_DEVICE = RefusedForm("the device is iolab's to name")
EXTERNAL_LOG = RefusedForm("it names a device; for a log on a device of its own set log_size in [target]")
REALTIME = RefusedForm("it names a device; for a realtime section set realtime_size in [target]")

_BLOCK: Keys = {"log": NUMBER, "size": SIZE}
_SECTOR: Keys = {"log": NUMBER, "sectlog": NUMBER, "sectsize": SIZE, "size": SIZE}
_STRIPE: Keys = {"su": SIZE, "sunit": SIZE, "sw": NUMBER, "swidth": SIZE}
_SECTION: Keys = {"sectlog": NUMBER, "sectsize": SIZE, "size": SIZE}
_CONCURRENCY: Keys = {"concurrency": NUMBER.or_nothing, "noalign": SWITCH.or_nothing}

MKFS: dict[str, Form] = {
    "-b": _BLOCK,
    "-c": NAMES_A_PATH,
    "-C": ALONE,
    "-d": {
        **_STRIPE,
        **_SECTION,
        **_CONCURRENCY,
        "agcount": NUMBER,
        "agsize": SIZE,
        "cowextsize": SIZE,
        "daxinherit": SWITCH.or_nothing,
        "extszinherit": SIZE,
        "file": OWN_DEVICE,
        "name": OWN_DEVICE,
        "projinherit": NUMBER,
        "rtinherit": SWITCH.or_nothing,
        "unwritten": SWITCH.or_nothing,
    },
    "-f": ALONE,
    "-i": {
        "align": SWITCH.or_nothing,
        "attr": one_of("0", "1", "2"),
        "exchange": SWITCH.or_nothing,
        "log": NUMBER,
        "maxpct": NUMBER,
        "nrext64": SWITCH.or_nothing,
        "perblock": NUMBER,
        "projid32bit": SWITCH.or_nothing,
        "size": SIZE,
        "sparse": SWITCH.or_nothing,
    },
    "-K": ALONE,
    "-l": {
        **_SECTION,
        **_STRIPE,
        "agnum": NUMBER,
        "concurrency": NUMBER.or_nothing,
        "file": EXTERNAL_LOG,
        "internal": SWITCH.or_nothing,
        "lazy-count": SWITCH.or_nothing,
        "logdev": EXTERNAL_LOG,
        "name": EXTERNAL_LOG,
        "version": one_of("1", "2"),
    },
    "-L": LABEL,
    "-m": {
        **flags("uquota gquota pquota uqnoenforce gqnoenforce pqnoenforce"),
        "autofsck": SWITCH.or_nothing,
        "bigtime": SWITCH.or_nothing,
        "crc": SWITCH.or_nothing,
        "finobt": SWITCH.or_nothing,
        "inobtcount": SWITCH.or_nothing,
        "metadir": SWITCH.or_nothing,
        "reflink": SWITCH.or_nothing,
        "rmapbt": SWITCH.or_nothing,
        "uuid": OWN_UUID,
    },
    "-n": {
        "ftype": SWITCH.or_nothing,
        "log": NUMBER,
        "parent": SWITCH.or_nothing,
        "size": SIZE,
        "version": one_of("2", "ci"),
    },
    "-N": RefusedForm("no filesystem would be made"),
    "-p": NAMES_A_PATH,
    "-q": ALONE,
    "-r": {
        **_CONCURRENCY,
        "extsize": SIZE,
        "file": REALTIME,
        "name": REALTIME,
        "reserved": SIZE,
        "rgcount": NUMBER,
        "rgsize": SIZE,
        "rtdev": REALTIME,
        "size": SIZE,
        "start": SIZE,
        "zoned": SWITCH.or_nothing,
    },
    "-s": _SECTOR,
    "-V": RefusedForm("no filesystem would be made"),
}

MOUNT: Keys = {
    **flags(
        "attr2 noattr2 barrier nobarrier bsdgroups sysvgroups grpid nogrpid delaylog nodelaylog discard nodiscard "
        "filestreams ikeep noikeep inode32 inode64 largeio nolargeio lazytime lifetime nolifetime noalign norecovery "
        "nouuid noquota quota uquota usrquota uqnoenforce qnoenforce gquota grpquota gqnoenforce pquota prjquota "
        "pqnoenforce swalloc wsync osyncisdsync osyncisosync"
    ),
    "allocsize": SIZE,
    "biosize": NUMBER,
    "dax": one_of("always", "never", "inode").or_nothing,
    "ihashsize": NUMBER,
    "logbsize": SIZE,
    "logbufs": NUMBER,
    "logdev": EXTERNAL_LOG,
    "max_atomic_write": SIZE,
    "max_open_zones": NUMBER,
    "mtpt": NAMES_A_PATH,
    "rtdev": REALTIME,
    "sunit": NUMBER,
    "swidth": NUMBER,
}
