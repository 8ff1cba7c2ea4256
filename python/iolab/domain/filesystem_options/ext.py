"""Options of mke2fs(8) and of mounting ext2, ext3 and ext4 (ext4(5), Documentation/admin-guide/ext4.rst)."""

from __future__ import annotations

from iolab.domain.filesystem_options.form import (
    ALONE,
    LABEL,
    NAMES_A_PATH,
    NUMBER,
    OWN_UUID,
    OWNER,
    REAL,
    SIZE,
    SWITCH,
    WORDS,
    Form,
    Keys,
    RefusedForm,
    Value,
    flags,
    one_of,
)

EXTERNAL_JOURNAL = RefusedForm("it names a device; for a journal on a device of its own set log_size in [target]")
ERRORS = one_of("continue", "remount-ro")
"""Not `panic`: it would take the machine down."""

_EXTENDED: Keys = {
    "assume_storage_prezeroed": SWITCH.or_nothing,
    "discard": ALONE,
    "encoding": one_of("utf8", "utf8-12.1"),
    "encoding_flags": one_of("strict"),
    "hash_seed": OWN_UUID,
    "lazy_itable_init": SWITCH.or_nothing,
    "lazy_journal_init": SWITCH.or_nothing,
    "mmp_update_interval": NUMBER,
    "no_copy_xattrs": ALONE,
    "nodiscard": ALONE,
    "num_backup_sb": one_of("0", "1", "2"),
    "offset": RefusedForm("the filesystem would not begin where it is mounted"),
    "orphan_file_size": SIZE,
    "packed_meta_blocks": SWITCH.or_nothing,
    "quotatype": Value(r"(usr|grp|prj)quota(:(usr|grp|prj)quota)*", "usrquota, grpquota, prjquota, with colons"),
    "resize": SIZE,
    "root_owner": OWNER.or_nothing,
    "root_perms": Value(r"[0-7]{1,5}", "an octal number"),
    "stride": NUMBER,
    "stripe-width": NUMBER,
    "stripe_width": NUMBER,
    "test_fs": ALONE,
}

MKFS: dict[str, Form] = {
    "-b": SIZE,
    "-c": RefusedForm("iolab looks for no bad blocks"),
    "-C": SIZE,
    "-d": NAMES_A_PATH,
    "-D": ALONE,
    "-e": ERRORS,
    "-E": _EXTENDED,
    "-F": ALONE,
    "-g": NUMBER,
    "-G": NUMBER,
    "-i": SIZE,
    "-I": SIZE,
    "-j": ALONE,
    "-J": {
        "device": EXTERNAL_JOURNAL,
        "fast_commit_size": SIZE,
        "location": SIZE,
        "size": SIZE,
    },
    "-K": ALONE,
    "-l": NAMES_A_PATH,
    "-L": LABEL,
    "-m": REAL,
    "-M": NAMES_A_PATH,
    "-n": RefusedForm("no filesystem would be made"),
    "-N": NUMBER,
    "-o": one_of("linux", "hurd", "masix", "freebsd", "lites"),
    "-O": WORDS,
    "-q": ALONE,
    "-r": SWITCH,
    "-S": RefusedForm("no whole filesystem would be made"),
    "-t": RefusedForm("set filesystem instead"),
    "-T": WORDS,
    "-U": OWN_UUID,
    "-v": ALONE,
    "-V": RefusedForm("no filesystem would be made"),
    "-z": NAMES_A_PATH,
}

MOUNT: Keys = {
    **flags(
        "acl noacl auto_da_alloc noauto_da_alloc bh nobh block_validity noblock_validity bsddf minixdf bsdgroups "
        "sysvgroups grpid nogrpid nocheck debug delalloc nodelalloc dioread_lock dioread_nolock nodioread_nolock "
        "discard nodiscard grpquota usrquota prjquota quota noquota i_version inlinecrypt journal_async_commit "
        "journal_checksum nojournal_checksum lazytime nolazytime mballoc nomballoc mblk_io_submit nomblk_io_submit "
        "nobarrier nombcache no_mbcache noinit_itable noload norecovery nouid32 nofail oldalloc orlov "
        "prefetch_block_bitmaps no_prefetch_block_bitmaps reservation noreservation user_xattr nouser_xattr "
        "warn_on_error nowarn_on_error xip"
    ),
    "auto_da_alloc": SWITCH.or_nothing,
    "barrier": Value(r"[01]|none|flush", "0 or 1").or_nothing,
    "check": one_of("none"),
    "commit": NUMBER,
    "data": one_of("journal", "ordered", "writeback"),
    "data_err": one_of("abort", "ignore"),
    "dax": one_of("always", "never", "inode").or_nothing,
    "errors": ERRORS,
    "fc_debug_max_replay": NUMBER,
    "init_itable": NUMBER.or_nothing,
    "inode_readahead_blks": NUMBER,
    "journal": one_of("update"),
    "journal_dev": EXTERNAL_JOURNAL,
    "journal_ioprio": one_of(*map(str, range(8))),
    "journal_path": EXTERNAL_JOURNAL,
    "jqfmt": one_of("vfsold", "vfsv0", "vfsv1"),
    "grpjquota": NAMES_A_PATH,
    "max_batch_time": NUMBER,
    "max_dir_size_kb": NUMBER,
    "mb_optimize_scan": SWITCH,
    "min_batch_time": NUMBER,
    "resgid": NUMBER,
    "resuid": NUMBER,
    "sb": NUMBER,
    "stripe": NUMBER,
    "test_dummy_encryption": one_of("v1", "v2").or_nothing,
    "usrjquota": NAMES_A_PATH,
}
