"""Kernels of a tree compiled by ccache: the same images, and how many compilations it had."""

import shutil
import subprocess
from pathlib import Path

import pytest
from iolab.machines.guest import ccache, kernel, tree
from iolab.studies.cost import kernels

MAKEFILE = """\
allnoconfig: ; cp $(KCONFIG_ALLCONFIG) $(O)/.config
bzImage: ; mkdir -p $(O)/arch/x86/boot; touch $(O)/System.map
\tfor one in first second; do gcc -O2 -c $$one.c -o $(O)/$$one.o || exit 1; done
\tcat $(O)/first.o $(O)/second.o > $(O)/arch/x86/boot/bzImage
"""
STAND_IN = """\
#!/bin/sh
[ "$1" = --version ] || printf '# a\\ndirect_cache_hit\\nlocal_storage_hit\\n' >> "$CCACHE_STATSLOG"
exec /usr/bin/gcc "$@"
"""
OWN = ("-c", "user.name=a", "-c", "user.email=a@localhost")


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree that is no kernel's, but is made like one, of two commits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tree, "_check_tools", lambda name: None)
    made = tmp_path / "linux"
    made.mkdir()
    (made / "Makefile").write_text(MAKEFILE)
    (made / "second.c").write_text("int second(int given) { return 2 * given; }\n")
    git = ["git", *OWN, "-C", str(made)]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in (1, 2):
        (made / "first.c").write_text(f"int first(int given) {{ return given + {number}; }}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"{number}"], check=True)
    return made


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    find = ccache.command.find
    monkeypatch.setattr(ccache.command, "find", lambda name: None if name == "ccache" else find(name))


def test_ccache_compiles_if_it_is_there_and_its_share_is_noted(
    linux: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ccache").write_text(STAND_IN)
    (tools / "ccache").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    versions = kernels.of_range(linux, "HEAD~1..HEAD", each=False)
    found = kernels.prepared(versions, None, [].append)
    assert found.notes == [f"{side}: ccache had 2 of 2 compilations, 100%" for side in ("base", "tip")]
    assert kernels.prepared(versions, None, [].append).notes == [], "what is there was not built now"
    with_it = kernel.find(found.tip.kernel).image.read_bytes()
    shutil.rmtree(tmp_path / "cache")
    without(monkeypatch)
    again = kernels.prepared(versions, None, [].append)
    assert again.notes == [] and kernel.find(again.tip.kernel).image.read_bytes() == with_it


@pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")
def test_what_was_compiled_before_is_found(linux: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = kernels.of_range(linux, "HEAD~1..HEAD", each=False)
    notes = kernels.prepared(versions, None, [].append).notes
    assert notes == ["base: ccache had 0 of 2 compilations, 0%", "tip: ccache had 1 of 2 compilations, 50%"]
    image = kernel.find(versions.tip.kernel).image
    first = image.read_bytes()
    image.unlink()
    assert kernel.find(versions.tip.kernel).compiled == "ccache had 2 of 2 compilations, 100%"
    without(monkeypatch)
    image.unlink()
    assert kernel.find(versions.tip.kernel).compiled is None and image.read_bytes() == first


def test_the_number_of_a_build_is_no_part_of_a_kernel(linux: Path) -> None:
    """The kernel's own number grows with each build at one place."""
    (linux / "Makefile").write_text(MAKEFILE.replace("touch $(O)", "echo $(KBUILD_BUILD_VERSION) > $(O)"))
    subprocess.run(["git", *OWN, "-C", linux, "commit", "-qam", "3"], check=True)
    found = kernel.find(f"{linux}@HEAD")
    assert found.map is not None and found.map.read_text() == "1\n"
