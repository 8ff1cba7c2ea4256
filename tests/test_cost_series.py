"""What `iolab cost` makes kernels of: mails with patches, ranges of commits, and what does not apply or build."""

import mailbox
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.machines.guest import kernel, series, source_functions, tree
from iolab.machines.guest.tree import BuildFailed
from iolab.machines.system import git
from iolab.studies.cost import kernels
from test_bisect_git import run_git, state_of

LINES = "".join(f"line {number}\n" for number in range(40))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A tree on `main` whose branch `series` has three commits."""
    path = tmp_path / "tree"
    (path / "block").mkdir(parents=True)
    run_git(path, "init", "--quiet", "--initial-branch=main")
    for name in ("bio.c", "mq.c"):
        (path / "block" / name).write_text(LINES)
    commit(path, "start")
    run_git(path, "checkout", "--quiet", "-b", "series")
    for number, name in enumerate(("bio.c", "mq.c", "bio.c"), 1):
        text = (path / "block" / name).read_text()
        (path / "block" / name).write_text(text.replace(f"line {10 * number}\n", f"changed {number}\n"))
        commit(path, f"change {number}")
    run_git(path, "checkout", "--quiet", "main")
    return path


def commit(path: Path, subject: str) -> None:
    run_git(path, "add", ".")
    run_git(path, "commit", "--quiet", "-m", subject)


def mails(repository: Path, to: Path, *options: str) -> list[Path]:
    run_git(repository, "format-patch", "--quiet", *options, "-o", str(to), "main..series")
    return sorted(to.iterdir())


def applied_in(repository: Path, sha: str, name: str) -> str:
    return run_git(tree.place_of(repository) / "source", "show", f"{sha}:block/{name}")


def test_an_mbox_is_applied_in_a_clone_and_the_tree_stays_as_it_is(repository: Path, tmp_path: Path) -> None:
    mbox = tmp_path / "series.mbox"
    mbox.write_text("".join(one.read_text() for one in mails(repository, tmp_path / "mails", "--cover-letter")))
    before = state_of(repository)
    applied = series.apply(repository, "main", [mbox])
    assert [one.subject for one in applied] == ["change 1", "change 2", "change 3"]
    assert [one.files for one in applied] == [["block/bio.c"], ["block/mq.c"], ["block/bio.c"]]
    assert "changed 3" in applied_in(repository, applied[-1].sha, "bio.c")
    assert state_of(repository) == before
    assert not git.repository(repository).has(applied[0].sha), "the commits are the clone's alone"
    assert series.apply(repository, "main", [mbox]) == applied, "the same mails make the same commits"


def test_mails_of_a_maildir_are_applied_by_their_numbers(repository: Path, tmp_path: Path) -> None:
    box = mailbox.Maildir(tmp_path / "maildir")
    for one in reversed(mails(repository, tmp_path / "mails")):
        box.add(one.read_bytes())
    box.add(b"From: a@example.org\nSubject: Re: [PATCH 2/3] change 2\n\nReviewed-by: A <a@example.org>\n")
    applied = series.apply(repository, "main", [tmp_path / "maildir"])
    assert [one.subject for one in applied] == ["change 1", "change 2", "change 3"]


def test_single_mails_are_applied_as_they_are_named(repository: Path, tmp_path: Path) -> None:
    listed = mails(repository, tmp_path / "mails", "--no-numbered")
    assert [one.subject for one in series.apply(repository, "main", listed[:2])] == ["change 1", "change 2"]


def test_a_patch_that_does_not_apply_is_named_with_its_file(repository: Path, tmp_path: Path) -> None:
    listed = mails(repository, tmp_path / "mails")
    (repository / "block" / "mq.c").write_text(LINES.replace("line 20\n", "another line\n"))
    commit(repository, "in the way")
    with pytest.raises(InputError) as refused:
        series.apply(repository, "main", listed)
    assert "patch 2 of 3, 'change 2', does not apply to main" in refused.value.what
    assert "block/mq.c" in refused.value.what
    # What was left of it is no hindrance.
    assert len(series.apply(repository, "main~1", listed)) == 3


def test_a_patch_whose_lines_moved_is_merged(repository: Path, tmp_path: Path) -> None:
    listed = mails(repository, tmp_path / "mails")
    moved = LINES.replace("line 8\n", "").replace("line 13\n", "line 13\nmore\n")
    (repository / "block" / "bio.c").write_text(moved)
    commit(repository, "moved")
    applied = series.apply(repository, "main", listed)
    assert "changed 1" in applied_in(repository, applied[-1].sha, "bio.c")


def test_what_is_left_of_a_killed_application_does_not_matter(repository: Path, tmp_path: Path) -> None:
    listed = mails(repository, tmp_path / "mails")
    series.apply(repository, "main", listed)
    left = tree.place_of(repository) / "source" / ".git" / "rebase-apply"
    left.mkdir()
    (left / "applying").write_text("")
    assert len(series.apply(repository, "main", listed)) == 3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path, "no such file of patches"),
        (lambda path: path.mkdir() or path, "no maildir"),
        (lambda path: path.write_text("From: a@example.org\nSubject: hello\n\nno patch\n") and path, "holds a patch"),
        (lambda path: path.write_bytes(b"\0\xff" * 100) and path, "given"),
    ],
)
def test_what_holds_no_patch_is_refused(
    repository: Path, tmp_path: Path, make: Callable[[Path], Path], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        series.apply(repository, "main", [make(tmp_path / "given")])


def test_a_patch_cannot_leave_the_tree(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    mail = tmp_path / "evil.patch"
    text = "From: a@example.org\nSubject: [PATCH] out\n\n---\ndiff --git a/../x b/../x\nnew file mode 100644\n"
    for name in ("../../../../outside", ".git/hooks/post-checkout"):
        mail.write_text(text.replace("../x", name) + f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n--\n2.0\n")
        with pytest.raises(InputError, match="does not apply"):
            series.apply(repository, "main", [mail])
    assert not outside.exists()


def test_a_range_has_its_ends_and_the_commits_between(repository: Path) -> None:
    made = kernels.of_range(repository, "main..series", each=True)
    assert [one.setting for one in made.kernels] == ["base", "patch_1", "patch_2", "tip"]
    assert made.files == ["block/bio.c", "block/mq.c"]
    assert [one.setting for one in kernels.of_range(repository, "main..series", each=False).kernels] == ["base", "tip"]
    for text, said in (
        ("series..series", "no commit lies"),
        ("main...series", "a range"),
        ("series..main", "ancestor"),
    ):
        with pytest.raises(InputError, match=said):
            kernels.of_range(repository, text, each=False)


def failing(at: list[str]) -> Callable[..., Any]:
    def find(name: str, modules: object = None, config: object = None) -> Any:
        if name in at:
            source = tree.place_of(Path(name.partition("@")[0])) / "source"
            raise BuildFailed(f"make O=/x ... failed: {source}/block/mq.c:20:1: error: expected", where=name)
        return SimpleNamespace(config=None, configuration="plain", compiled=None if name in at else "ccache had 3 of 4")

    return find


def test_the_first_patch_that_does_not_build_is_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = kernels.of_range(repository, "main..series", each=False)
    broken = [one.kernel for one in (*made.steps[1:], made.tip)]
    monkeypatch.setattr(kernel, "find", failing(broken))
    with pytest.raises(InputError) as refused:
        kernels.prepared(made, None, lambda line: None)
    assert "patch 2 of 3" in refused.value.what and "change 2" in refused.value.what
    assert refused.value.what.endswith("does not build: block/mq.c:20:1: error: expected")
    monkeypatch.setattr(kernel, "find", failing([made.tip.kernel]))
    with pytest.raises(InputError, match="patch 3 of 3"):
        kernels.prepared(made, None, lambda line: None)
    monkeypatch.setattr(kernel, "find", failing([made.base.kernel]))
    with pytest.raises(InputError, match="the base"):
        kernels.prepared(made, None, lambda line: None)
    monkeypatch.setattr(kernel, "find", failing([]))
    assert kernels.prepared(made, None, lambda line: None).tip.how == "configured as plain"


def test_the_functions_of_a_file_are_those_of_its_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = tmp_path / "build" / "block"
    objects.mkdir(parents=True)
    source = tmp_path / "mq.c"
    source.write_text(
        "static __attribute__((noinline)) int a(int x) { return x + 1; }\nint b(int x) { return a(x); }\nint d;\n"
    )
    subprocess.run(["gcc", "-O1", "-c", source, "-o", objects / "mq.o"], check=True)
    (objects / ".mq.o.cmd").write_text(
        "deps_block/mq.o := \\\n  ../source/include/linux/mq.h \\\n    $(wildcard x) \\\n"
    )
    monkeypatch.setattr(tree, "objects", lambda path, config: tmp_path / "build")
    files = ["block/mq.c", "include/linux/mq.h", "include/linux/other.h", "fs/absent.c"]
    found = source_functions.functions_of(tmp_path, None, files)
    assert found["block/mq.c"] == {"a", "b"} == found["include/linux/mq.h"]
    assert found["include/linux/other.h"] == set() == found["fs/absent.c"]
