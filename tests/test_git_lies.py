"""A repository whose commits and configuration lie: nothing it names is run, and every subject is one field."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
from iolab.base.errors import InputError, MachineError
from iolab.machines.guest.modules import Modules
from iolab.machines.system import git
from test_bisect_git import run_git

ODD = ["a\u2028b", "a\u0085b", "a\fb", "a\vb", "a\x1cb", "a\x1db", "a\x1eb", "plain", "%x00 %H", "-n1"]


def commit(path: Path, subject: bytes, *more: bytes) -> None:
    arguments = [b"commit", b"--quiet", b"--allow-empty", b"--cleanup=verbatim", b"-m", subject, *more]
    run_git(path, *map(os.fsdecode, arguments))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    run_git(path, "init", "--quiet", "--initial-branch=main")
    for subject in ODD:
        commit(path, subject.encode())
    return path


def test_a_subject_is_one_field_whatever_ends_lines_in_it(repository: Path) -> None:
    commit(repository, b"a\rb")
    commits = git.repository(repository).commits("main~10", "main")
    assert [one.subject for one in commits[:-1]] == ODD
    assert [len(one.sha) for one in commits] == [40] * 11
    assert [one.parents for one in commits] == [0, *[1] * 10]


def test_what_is_printed_does_not_depend_on_the_configuration(repository: Path, tmp_path: Path) -> None:
    commit(repository, "süß".encode())
    for key, value in (
        ("i18n.logOutputEncoding", "UTF-16"),
        ("log.decorate", "full"),
        ("color.ui", "always"),
        ("log.mailmap", "true"),
        ("format.pretty", "fuller"),
        ("core.quotePath", "true"),
    ):
        run_git(repository, "config", key, value)
    commits = git.repository(repository).commits("main~1", "main")
    assert [one.subject for one in commits] == ["-n1", "süß"]


@pytest.mark.parametrize("whose", ["the repository's", "the user's"])
def test_no_program_of_a_configuration_runs(
    whose: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\nexit 1\n')
    program.chmod(0o755)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key))):
        run_git(repository, "config", name, value)
    commit(repository, b"signed", b"-S")
    settings = [
        ("log.showSignature", "true"),
        ("gpg.ssh.program", str(program)),
        ("gpg.program", str(program)),
        ("core.sshCommand", str(program)),
        ("core.fsmonitor", str(program)),
        ("core.pager", str(program)),
        ("core.alternateRefsCommand", str(program)),
        ("diff.external", str(program)),
        ("core.hooksPath", str(tmp_path / "hooks")),
        ("filter.odd.smudge", str(program)),
        ("uploadpack.packObjectsHook", str(program)),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://nowhere.invalid/x"),
        ("remote.origin.uploadpack", str(program)),
    ]
    (tmp_path / "hooks").mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (tmp_path / "hooks" / hook).symlink_to(program)
    (repository / ".gitattributes").write_text("* filter=odd\n")
    run_git(repository, "add", ".")
    commit(repository, b"attributes")
    home = tmp_path / "home"
    home.mkdir()
    where = ["config"] if whose == "the repository's" else ["config", "--file", str(home / ".gitconfig")]
    for name, value in settings:
        run_git(repository, *where, name, value)
    monkeypatch.setenv("HOME", str(home))
    found = git.repository(repository)
    last = found.commits("main~1", "main")[-1]
    clone = found.clone(tmp_path / "clone")
    clone.check_out(last.sha)
    assert (tmp_path / "clone" / ".gitattributes").exists()
    # A commit that is not there would be fetched from where it is promised.
    with pytest.raises(InputError, match="no commit"):
        found.sha("1" * 40)
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("name", ["HEAD", "config", "index", "packed-refs", "objects/info/alternates"])
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_file_of_git_s_that_never_ends_is_one_line(
    repository: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "QUESTION_S", 0.5)
    path = repository / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    with pytest.raises((InputError, MachineError), match=r"a pipe or a device|did not end|no git repository"):
        git.repository(repository).commits("main~1", "main")


def test_the_socket_of_git_s_daemon_is_left_alone(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / ".git")  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind("fsmonitor--daemon.ipc")
        assert git.repository(repository).sha("main")


def test_a_worktree_is_read_as_its_repository(repository: Path, tmp_path: Path) -> None:
    run_git(repository, "worktree", "add", "--quiet", "--detach", str(tmp_path / "beside"), "main")
    assert git.repository(tmp_path / "beside").sha("HEAD") == git.repository(repository).sha("main")


def test_a_failure_is_said_without_what_we_set(repository: Path) -> None:
    with pytest.raises(InputError) as refused:
        git.repository(repository.parent)
    assert "core.hooksPath" not in str(refused.value)


def test_a_pipe_in_the_place_of_a_list_of_modules_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "modules.builtin")
    with pytest.raises(InputError, match="is a pipe"):
        Modules(tmp_path).needed(["xfs"])
