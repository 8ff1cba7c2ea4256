"""Options of mkfs.btrfs(8) and of mounting btrfs (btrfs(5))."""

from __future__ import annotations

from iolab.domain.filesystem_options.form import (
    ALONE,
    LABEL,
    NAMES_A_PATH,
    NUMBER,
    OWN_UUID,
    SIZE,
    WORDS,
    Form,
    Keys,
    RefusedForm,
    Value,
    flags,
    one_of,
)

ANOTHER_DEVICE = RefusedForm("it names a device; a scratch filesystem has one")
_PROFILE = one_of("single", "dup", "SINGLE", "DUP")
"""Those of one device."""
_COMPRESS = Value(
    r"zlib(:[0-9])?|lzo|zstd(:-?[0-9]{1,2})?|no|none|[0-9]", "zlib, lzo, zstd, no, with a level such as zstd:3"
)

MKFS: dict[str, Form] = {
    "-A": SIZE,
    "--alloc-start": SIZE,
    "-b": SIZE,
    "--byte-count": SIZE,
    "--checksum": one_of("crc32c", "xxhash", "xxhash64", "sha256", "blake2", "blake2b"),
    "--csum": one_of("crc32c", "xxhash", "xxhash64", "sha256", "blake2", "blake2b"),
    "-d": _PROFILE,
    "--data": _PROFILE,
    "--device-uuid": OWN_UUID,
    "-f": ALONE,
    "--force": ALONE,
    "--features": WORDS,
    "-K": ALONE,
    "-l": SIZE,
    "-L": LABEL,
    "--label": LABEL,
    "--leafsize": SIZE,
    "-m": _PROFILE,
    "-M": ALONE,
    "--metadata": _PROFILE,
    "--mixed": ALONE,
    "-n": SIZE,
    "--nodesize": SIZE,
    "--nodiscard": ALONE,
    "-O": WORDS,
    "-q": ALONE,
    "--quiet": ALONE,
    "-r": NAMES_A_PATH,
    "-R": WORDS,
    "--rootdir": NAMES_A_PATH,
    "--runtime-features": WORDS,
    "-s": SIZE,
    "--sectorsize": SIZE,
    "--subvol": NAMES_A_PATH,
    "-u": NAMES_A_PATH,
    "-U": OWN_UUID,
    "--uuid": OWN_UUID,
    "-v": ALONE,
    "--verbose": ALONE,
    "-V": RefusedForm("no filesystem would be made"),
    "--version": RefusedForm("no filesystem would be made"),
}

MOUNT: Keys = {
    **flags(
        "acl noacl autodefrag noautodefrag barrier nobarrier clear_cache datacow nodatacow datasum nodatasum degraded "
        "enospc_debug noenospc_debug flushoncommit noflushoncommit inode_cache noinode_cache nodiscard nologreplay "
        "norecovery nospace_cache recovery ref_verify rescan_uuid_tree skip_balance ssd ssd_spread nossd nossd_spread "
        "treelog notreelog usebackuproot user_subvol_rm_allowed check_int check_int_data"
    ),
    "alloc_start": SIZE,
    "commit": NUMBER,
    "compress": _COMPRESS.or_nothing,
    "compress-force": _COMPRESS.or_nothing,
    "device": ANOTHER_DEVICE,
    "discard": one_of("sync", "async").or_nothing,
    "fragment": one_of("data", "metadata", "all"),
    "max_inline": SIZE,
    "metadata_ratio": NUMBER,
    "rescue": Value(r"[a-z]+(:[a-z]+)*", "words such as nologreplay:ignorebadroots"),
    "space_cache": one_of("v1", "v2").or_nothing,
    "subvol": NAMES_A_PATH,
    "subvolid": NUMBER,
    "thread_pool": NUMBER,
}
