"""What mkfs and mount are told: an allow-list of forms that name no path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain import filesystem_options
from iolab.domain.filesystem_options import btrfs, checked_mount_options, ext, form, mkfs_arguments, xfs
from iolab.files.experiment import loads
from iolab.machines.system.filesystem import FILESYSTEMS

MKFS = {"ext4": ext.MKFS, "xfs": xfs.MKFS, "btrfs": btrfs.MKFS}
MOUNT = {"ext4": ext.MOUNT, "xfs": xfs.MOUNT, "btrfs": btrfs.MOUNT}
WORKLOAD = "[workloads.w]\noperations = 1\nfile_size = '1MiB'\n"


@pytest.mark.parametrize(
    ("filesystem", "options", "arguments"),
    [
        ("xfs", "-d agcount=8,su=64k,sw=4 -l version=2,size=64m", "-d agcount=8,su=64k,sw=4 -l version=2,size=64m"),
        ("xfs", "-m crc=1,reflink=0,bigtime -i size=1024,maxpct=25 -K", None),
        ("xfs", "-n size=8k -s size=4096 -b size=1k -l su=32k,lazy-count=1 -r extsize=1m", None),
        ("ext4", "-b 1024 -I 128 -i 16384 -m 0 -N 100000 -O ^has_journal,extent,uninit_bg", None),
        ("ext4", "-b1024", "-b 1024"),
        ("ext4", "-E stride=16,stripe-width=64,lazy_itable_init,nodiscard -J size=128 -G 16 -T largefile4", None),
        ("ext3", "-L 'a label' -J size=64,location=100", None),
        ("ext2", "-m 0.5 -D -K", None),
        ("btrfs", "-n 16k -d single -m dup -O no-holes,^extref -R free-space-tree --csum xxhash", None),
        ("btrfs", "--nodesize 16k -K", "--nodesize=16k -K"),
    ],
)
def test_what_engineers_tell_mkfs_is_handed_on(filesystem: str, options: str, arguments: str | None) -> None:
    plain = (arguments or options).replace("'a label'", "a label")
    assert " ".join(mkfs_arguments(filesystem, options)) == plain.replace("csum xx", "csum=xx")


@pytest.mark.parametrize(
    ("filesystem", "options"),
    [
        ("ext4", "noatime,data=journal,commit=30,barrier=0,nodelalloc,journal_async_commit,max_batch_time=0,dax"),
        ("ext4", "nobarrier,errors=remount-ro,stripe=64,inode_readahead_blks=64,auto_da_alloc=0,data_err=abort"),
        ("xfs", "inode64,logbufs=8,logbsize=256k,allocsize=64m,largeio,swalloc,noquota,sunit=128,swidth=512,wsync"),
        ("xfs", "uquota,pqnoenforce,discard,lazytime,context=system_u:object_r:tmp_t:s0"),
        ("btrfs", "compress=zstd:3,ssd,space_cache=v2,nodatacow,discard=async,commit=60,thread_pool=4,max_inline=2k"),
    ],
)
def test_what_engineers_tell_mount_is_handed_on(filesystem: str, options: str) -> None:
    assert checked_mount_options(filesystem, options) == options


@pytest.mark.parametrize(
    ("filesystem", "options", "words"),
    [
        ("xfs", "-l logdev=/dev/loop0", "log_size"),
        ("xfs", "-llogdev=/dev/loop0", "log_size"),
        ("xfs", "-l size=64m,logdev=/dev/loop0,version=2", "log_size"),
        ("xfs", "-l file,name=/tmp/x", "log_size"),
        ("xfs", "-r rtdev=/dev/loop0", "realtime_size"),
        ("xfs", "-d name=/dev/loop0", "refused"),
        ("xfs", "-d file=1,name=x", "refused"),
        ("xfs", "-d size=/dev/loop0", "expected a size"),
        ("xfs", "-p /etc/shadow", "names a file"),
        ("xfs", "-c options=/tmp/x", "names a file"),
        ("xfs", "/dev/loop0", "stands by itself"),
        ("xfs", "-- /dev/loop0", "unknown option '--'"),
        ("xfs", "-K/dev/loop0", "takes no value"),
        ("xfs", "-qf", "takes no value"),
        ("xfs", "-L", "needs a value"),
        ("xfs", "-L -f", "expected a label"),
        ("xfs", "-L ''", "expected a label"),
        ("xfs", "-L /dev/loop0", "expected a label"),
        ("xfs", "-d", "needs a value"),
        ("ext4", "-J device=/dev/loop0", "log_size"),
        ("ext4", "-J device=LABEL=x", "log_size"),
        ("ext4", "-E journal=1,offset=4096", "journal"),
        ("ext4", "-d /root", "names a file"),
        ("ext4", "-l /tmp/list", "names a file"),
        ("ext4", "-z /tmp/undo", "names a file"),
        ("ext4", "-e panic", "remount-ro"),
        ("ext4", "-m", "needs a value"),
        ("ext4", "-b 4096 /dev/loop0", "stands by itself"),
        ("ext4", "-U random", "UUID"),
        ("ext4", "-b '4096\n'", "expected a size"),
        ("btrfs", "-r /root", "names a file"),
        ("btrfs", "--rootdir=/root", "names a file"),
        ("btrfs", "--root /root", "unknown option"),
        ("btrfs", "/dev/loop0", "stands by itself"),
        ("btrfs", "-d raid1", "single"),
        ("ext4", "-b '", "cannot read"),
    ],
)
def test_what_names_a_path_or_swallows_the_device_is_refused(filesystem: str, options: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        mkfs_arguments(filesystem, options)


@pytest.mark.parametrize(
    ("filesystem", "options", "words"),
    [
        ("xfs", "logdev=/dev/loop0", "log_size"),
        ("xfs", "noatime,rtdev=/dev/loop0", "realtime_size"),
        ("ext4", "journal_path=/dev/loop0", "log_size"),
        ("ext4", "journal_dev=1793", "log_size"),
        ("ext4", "errors=panic", "remount-ro"),
        ("btrfs", "device=/dev/loop0", "names a device"),
        ("btrfs", "subvol=../x", "names a file"),
        ("ext4", "loop=/dev/loop0", "'loop' is not among"),
        ("ext4", "loop", "'loop' is not among"),
        ("ext4", "bind", "'bind' is not among"),
        ("ext4", "remount", "'remount' is not among"),
        ("ext4", "helper=x", "'helper' is not among"),
        ("ext4", "x-mount.mkdir", "not among"),
        ("ext4", "X-mount.subdir=x", "not among"),
        ("ext4", "no_such_option", "not among"),
        ("ext4", "noatime -t tmpfs", "not among"),
    ],
)
def test_a_mount_option_that_names_another_place_is_refused(filesystem: str, options: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        checked_mount_options(filesystem, options)


_WORD = st.sampled_from(
    [option for forms in MKFS.values() for option in forms]
    + [f"{key}=" for forms in MKFS.values() for form in forms.values() if isinstance(form, dict) for key in form]
    + list("/,=-'\" ")
    + ["/dev/loop0", "sda", "4k", "1", "logdev=/dev/loop0", "--", "\n"]
)


@given(filesystem=st.sampled_from(list(MKFS)), words=st.lists(_WORD | st.text(max_size=5), max_size=8))
def test_whatever_is_given_no_path_reaches_mkfs(filesystem: str, words: list[str]) -> None:
    for between in ("", " "):
        try:
            arguments = mkfs_arguments(filesystem, between.join(words))
        except InputError:
            continue
        left = iter(arguments)
        for option in left:
            assert option.startswith("-") and option != "--", arguments
            value = "" if option.startswith("--") or MKFS[filesystem][option] is ext.ALONE else next(left)
            assert "/" not in option + value and not value.startswith("-"), arguments


@given(
    filesystem=st.sampled_from(list(MOUNT)),
    entries=st.lists(
        st.tuples(
            st.sampled_from([key for keys in (form.COMMON_MOUNT, *MOUNT.values()) for key in keys]),
            st.sampled_from(["", "=", "=1", "=/dev/sda", "=always", '="', "=a,b"]) | st.text(max_size=5),
        ),
        max_size=4,
    ),
)
def test_whatever_is_given_no_path_reaches_mount(filesystem: str, entries: list[tuple[str, str]]) -> None:
    try:
        handed_on = checked_mount_options(filesystem, ",".join(key + value for key, value in entries))
    except InputError:
        return
    assert not set(handed_on) & set("/\"'\\ \n")


@pytest.mark.parametrize(
    ("target", "rest", "line", "words"),
    [
        ("filesystem = 'xfs'\nmkfs_options = '-l logdev=/dev/loop0'", "", "4: target.mkfs_options", "log_size"),
        ("mkfs_options = '-b 1024'", "[settings.s]\nfilesystem = 'xfs'", "3: target.mkfs_options", "mkfs.xfs"),
        ("", "[settings.s]\nmkfs_options = ['-m 0', '-d /root']", "8: settings.s.mkfs_options", "names a file"),
        ("", "[settings.s]\nmount_options = 'journal_path=/dev/sda'", "8: settings.s.mount_options", "log_size"),
        (
            "",
            "[workloads.m]\nkind = 'make-sequence'\nmkfs_options = '/dev/sda'",
            "9: workloads.m.mkfs_options",
            "itself",
        ),
        (
            "",
            "[workloads.m]\nkind = 'make-sequence'\n[settings.s]\nworkload = {mount_options = 'loop'}",
            "settings.s",
            "loop",
        ),
        ("filesystem = 'btrfs'\nlog_size = '64MiB'", "", "3: target.filesystem", "takes no log_size"),
        ("log_size = '64MiB'", "[settings.s]\nfilesystem = 'ext2'", "8: settings.s.filesystem", "takes no log_size"),
        ("realtime_size = '64MiB'", "", "target.filesystem", "takes no realtime_size"),
        ("log_backing = '/tmp'", "", "3: target.log_backing", "give log_size too"),
    ],
)
def test_an_experiment_says_it_on_its_line(target: str, rest: str, line: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        loads(f"[target]\nkind = 'scratch'\n{target}\n{WORKLOAD}{rest}\n", "x.toml")
    assert line in str(caught.value) and words in str(caught.value)


def test_every_filesystem_has_its_lists() -> None:
    assert tuple(FILESYSTEMS) == filesystem_options.NAMES
    for name in FILESYSTEMS:
        assert mkfs_arguments(name, "") == []
        assert checked_mount_options(name, "") == ""
