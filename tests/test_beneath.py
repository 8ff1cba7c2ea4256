"""The one way into directories that others may change, `iolab.base.beneath`, and that there is no other."""

import ast
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import iolab
import pytest
from iolab.base import beneath, durable, replaceable
from iolab.base.bounded_file import read_bounded
from iolab.base.errors import InputError

ANOTHER = 65534
PACKAGE = Path(iolab.__file__).parent

CHANGES = {
    *("write_text", "write_bytes", "mkdir", "makedirs", "rename", "unlink", "rmdir", "symlink_to", "hardlink_to"),
    *("symlink", "link", "touch", "rmtree", "copy2", "copyfile", "copytree", "mkstemp", "mkdtemp", "chmod", "chown"),
    *("TemporaryDirectory", "NamedTemporaryFile"),
}
"""Calls that write files or change names."""
BY_DESCRIPTOR = {"dir_fd", "src_dir_fd"}
READS = {"read_text", "read_bytes"}
ELSEWHERE = {
    "base/beneath.py": "the one way in",
    "base/durable.py": "by descriptor",
    "base/output_file.py": "by descriptor",
    "machines/host": "targets, by descriptor of directories that were checked, and files of the kernel",
    "machines/system": "targets, files of the kernel, and the state directory, which only this user may write",
    "machines/guest": "a directory of iolab's own, and a cache below the user's own",
    "studies/trace/record.py": "files of tracefs",
    "studies/cost/auto.py": "a temporary directory that only this user may enter",
    "studies/trace/synthetic.py": "a temporary directory that only this user may enter",
    "machines/cluster/agent.py": "a temporary directory that only this user may enter",
    "presentation/cli/reproduce.py": "a temporary directory that only this user may enter",
    "studies/run/origin.py": "the state directory, which only this user may write",
    "presentation/table/csv.py": "columns of a frame are renamed",
    "machines/module_process.py": "nothing but /dev/null",
    "presentation/cli/output.py": "nothing but /dev/null",
    "presentation/terminal.py": "nothing but /dev/null",
    "presentation/demo.py": "a file without a name that anybody could guess",
    "presentation/site/assets.py": "files that come with iolab",
}
"""Where files are changed that lie in no such directory, or by descriptor."""
OF_RUNS = (
    "files/store",
    "files/collection",
    "studies/tuner",
    "studies/run",
    "studies/cost/suite.py",
    "presentation/site",
)
"""Packages that read such directories: through `read_bounded(..., within=...)` and `beneath` alone."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text())


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def owner(node: ast.Call) -> str:
    """What the function is an attribute of, if that is a name."""
    value = node.func.value if isinstance(node.func, ast.Attribute) else None
    return value.id if isinstance(value, ast.Name) else ""


def opens_to_write(node: ast.Call) -> bool:
    """`path.open("wb")`, `open(path, "w")`, and `os.open` with anything but O_RDONLY."""
    if called(node) != "open":
        return False
    if owner(node) == "os":
        return not ast.unparse(node.args[1]).startswith("os.O_RDONLY")
    modes = [one.value for one in (*node.args, *(k.value for k in node.keywords)) if isinstance(one, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) <= set("rwaxbt+") and set(mode) & set("wax+") for mode in modes)


def is_in(name: str, places: object) -> bool:
    return any(name == place or name.startswith(f"{place}/") for place in places)  # type: ignore[attr-defined]


def renames_columns(node: ast.Call) -> bool:
    """Whether the call renames a frame's columns: names are given as they are."""
    return called(node) == "rename" and isinstance(node.args[0], ast.Constant | ast.Dict)


def is_kernels(node: ast.Call) -> bool:
    """A file of /proc that is named here."""
    return "Path('/proc" in ast.unparse(node)


def offence(name: str, node: ast.Call) -> bool:
    if is_in(name, ELSEWHERE) or owner(node) == "beneath" or is_kernels(node) or renames_columns(node):
        return False
    if any(one.arg in BY_DESCRIPTOR for one in node.keywords):
        return False
    if (called(node) in CHANGES and isinstance(node.func, ast.Attribute)) or opens_to_write(node):
        return True
    if not is_in(name, OF_RUNS):
        return False
    if called(node) == "read_bounded":
        return not any(one.arg == "within" for one in node.keywords)
    opens = called(node) == "open" and owner(node) in ("", "os", "path", "file")
    return opens or (called(node) in READS and isinstance(node.func, ast.Attribute))


def offences(files: Iterator[tuple[str, ast.Module]]) -> Iterator[str]:
    for name, tree in files:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and offence(name, node):
                yield f"{name}:{node.lineno}: {ast.unparse(node)[:80]}"


def test_nothing_else_opens_what_lies_in_directories_of_others() -> None:
    """Mend it with `beneath`, `durable` or `output_file`; add to ELSEWHERE only what lies in no such directory."""
    assert list(offences(sources())) == []


@pytest.mark.parametrize(
    "code",
    [
        *(
            "(run / 'x').write_text('')",
            "path.rename(other)",
            "open(path, 'w')",
            "path.open('wb')",
            "shutil.rmtree(path)",
        ),
        *("os.open(path, os.O_RDWR | os.O_CREAT)", "path.read_bytes()", "read_bounded(path, 1, 'x')"),
        "os.open(path, os.O_RDONLY)",
    ],
)
def test_another_way_is_found(code: str) -> None:
    assert list(offences(iter([("files/store/x.py", ast.parse(code))])))


def test_what_is_excused_is_there() -> None:
    assert [place for place in ELSEWHERE if not (PACKAGE / place).exists()] == []


def test_no_link_below_a_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "away" / "inside").mkdir(parents=True)
    (tmp_path / "away" / "inside" / "file").write_text("kept")
    run = tmp_path / "run"
    run.mkdir()
    (run / "inside").symlink_to(tmp_path / "away" / "inside")
    (run / "file").symlink_to(tmp_path / "away" / "inside" / "file")
    os.mkfifo(run / "pipe")
    for name in ("inside/file", "file", "pipe"):
        with pytest.raises(InputError, match=r"is a symbolic link|is not a regular file"):
            read_bounded(run / name, 100, "a file", within=run)
        with pytest.raises(InputError, match=r"is a symbolic link|is not a regular file"):
            beneath.open_file(run / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, run)
        assert not beneath.is_file(run / name, run)
    with pytest.raises(Exception, match="inside"):
        durable.write_atomically(run / "inside" / "file", b"other", run)
    durable.write_atomically(run / "file", b"other", run)
    assert (tmp_path / "away" / "inside" / "file").read_text() == "kept"
    assert (run / "file").read_text() == "other" and not (run / "file").is_symlink()
    # What the user names may be a link of their own.
    (tmp_path / "named").symlink_to(run)
    assert read_bounded(tmp_path / "named" / "file", 100, "a file", within=tmp_path / "named") == b"other"


@pytest.mark.root
def test_a_link_of_another_user_leads_no_output_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "link").symlink_to("away")
    os.lchown(tmp_path / "link", ANOTHER, ANOTHER)
    with pytest.raises(InputError, match="link that another user made, link"):
        durable.write_atomically(tmp_path / "link" / "file", b"")
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    durable.write_atomically(tmp_path / "link" / "file", b"")
    assert (tmp_path / "away" / "file").exists()


@pytest.mark.root
def test_root_trusts_who_calls_sudo_with_runs_and_not_with_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(tmp_path, ANOTHER, ANOTHER)
    with pytest.raises(InputError, match="sudo -u nobody iolab"):
        replaceable.refuse_strangers(tmp_path / "to be made" / "run")
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    replaceable.refuse_strangers(tmp_path / "to be made" / "run")
    with pytest.raises(InputError, match="sudo -u nobody iolab run"):
        replaceable.refuse_for_root(tmp_path)


def test_what_is_removed_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "gone" / "deep").mkdir(parents=True)
    (tmp_path / "gone" / "deep" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "gone" / "file").touch()
    beneath.remove_directory(tmp_path / "gone")
    assert [one.name for one in tmp_path.iterdir()] == ["kept"] and (tmp_path / "kept" / "file").exists()
    deep = tmp_path / "deep"
    deep.mkdir()
    at = os.open(deep, beneath.LISTED)
    for _ in range(beneath.DEPTH_MAX + 1):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", beneath.LISTED, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    try:
        with pytest.raises(OSError, match="too deep"):
            beneath.remove_directory(deep)
    finally:  # deeper than the removal of pytest's old directories goes
        subprocess.run(["rm", "-r", deep], check=True)


def test_temporary_names_cannot_be_guessed_and_are_known_again() -> None:
    name = "x" * 255
    first, second = beneath.temporary_name(name), beneath.temporary_name(name)
    assert first != second and len(first) <= 255
    assert beneath.is_temporary_of(name, first) and not beneath.is_temporary_of("y", first)
    assert not beneath.is_temporary_of("run", ".run.123.new")


def test_a_new_file_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    (tmp_path / "taken").symlink_to("elsewhere")
    with pytest.raises(FileExistsError):
        durable.write_durably(tmp_path / "taken", b"")
    assert stat.S_ISLNK((tmp_path / "taken").lstat().st_mode) and not (tmp_path / "elsewhere").exists()
