"""Makes a git tree of Debian's kernel source with a history of small commits, of which some cost instructions: what
`iolab bisect --git` is tried on (docs/bisection.md).

    tools/kernel_tree.py TREE [--version 6.1] [--commits 64] [--seed 1] [--branches none one two fifty]

The tree gets branches of so many commits on real files of block/ and fs/xfs/, all from the tag `base`:

    none    no commit costs anything
    one     one adds a loop to the start of every request
    two     one adds it, a later one adds another to the end of every request
    fifty   a single commit, which adds 50 instructions to the start of every request

`git notes` on the tip of each branch state which commits these are. Other commits add a comment and a function that
nobody calls; two in a row can't be built. The source comes from the package linux-source-VERSION, which iolab fetches
into its cache, and does not install.
"""

import argparse
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from iolab.base.errors import IolabError
from iolab.machines.guest import debian_source

AUTHOR = ("-c", "user.name=iolab", "-c", "user.email=iolab@localhost", "-c", "commit.gpgsign=false")
TOUCHED = ("block/*.c", "fs/xfs/*.c", "fs/xfs/libxfs/*.c")
LOOPS = 50
"""Turns of the loop that a costly commit adds, too many for a compiler to write out: about 150 instructions."""
LOOP = """\
	{ unsigned int turn; for (turn = 0; turn < %d; turn++) asm volatile("" : : "r" (turn)); }
"""
FIFTY = """\
	asm volatile(".rept 50\\n\\tnop\\n\\t.endr");
"""
COSTLY = (("block/blk-mq.c", "void blk_mq_start_request("), ("block/blk-mq.c", "void blk_mq_end_request("))
"""File and function that the first and the second costly commit change."""
UNFINISHED = "\n#error not finished\n"
BROKEN = 0.55
"""About where two commits of each branch stand that can't be built, as a share of its history."""
PLANTED = {"none": (), "one": (0.4,), "two": (0.25, 0.7)}
"""By branch: about where the costly commits stand, as a share of its history."""
ONE_COMMIT = "fifty"
"""The branch of a single commit."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path, help="where the tree is made; must not exist")
    parser.add_argument("--version", default="6.1", help="of the package linux-source-VERSION")
    parser.add_argument("--commits", type=int, default=64, help="on each branch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--branches", nargs="+", choices=[*PLANTED, ONE_COMMIT], default=[*PLANTED, ONE_COMMIT])
    arguments = parser.parse_args()
    if arguments.tree.exists():
        sys.exit(f"{arguments.tree}: exists already")
    try:
        source = debian_source.tree(f"linux-source-{arguments.version}", print)
    except IolabError as error:
        sys.exit(str(error))
    run(["git", "clone", "--quiet", "--no-checkout", str(source), str(arguments.tree)], ".")
    git(arguments.tree, "tag", "base")
    git(arguments.tree, "checkout", "--quiet", "--detach")
    git(arguments.tree, "branch", "--delete", "--force", "main")
    for branch in arguments.branches:
        git(arguments.tree, "checkout", "--quiet", "--force", "-B", branch, "base")
        if branch == ONE_COMMIT:
            add_fifty(arguments.tree)
        else:
            drawn = random.Random(f"{arguments.seed} {branch}")
            grow(arguments.tree, arguments.commits, PLANTED[branch], drawn)
    return 0


def add_fifty(tree: Path) -> None:
    name, function = COSTLY[0]
    add(FIFTY, tree / name, function)
    commit(tree, f"{Path(name).stem}: spend 50 instructions")


def grow(tree: Path, commits: int, shares: Sequence[float], drawn: random.Random) -> None:
    """The branch that is checked out."""
    files = sorted(path for pattern in TOUCHED for path in tree.glob(pattern))
    costly = {int(share * commits) + drawn.randrange(-3, 4): place for place, share in enumerate(shares)}
    broken = int(BROKEN * commits)
    planted = []
    for number in range(1, commits + 1):
        if number in (broken, broken + 2):
            file = tree / "block" / "bio.c"
            text = file.read_text().removesuffix(UNFINISHED)
            file.write_text(text if number > broken else text + UNFINISHED)
            commit(tree, "bio: finish change" if number > broken else "bio: begin change")
        elif number in costly:
            name, function = COSTLY[costly[number]]
            add(LOOP % LOOPS, tree / name, function)
            commit(tree, f"{Path(name).stem}: count twice")
            planted.append(git(tree, "rev-parse", "HEAD").strip())
        else:
            file = drawn.choice(files)
            with file.open("a") as source:
                source.write(f"\n/* Change {number}. */\nstatic inline int __maybe_unused change_{number}(int given)\n")
                source.write(f"{{\n\treturn given + {number};\n}}\n")
            commit(tree, f"{file.stem}: prepare for change {number + 1}")
    git(tree, "notes", "add", "--force", "-m", f"planted: {' '.join(planted) or 'nothing'}", "HEAD")


def add(statement: str, file: Path, function: str) -> None:
    """At the beginning of the function's body."""
    text = file.read_text()
    body = text.index("{\n", text.index(f"\n{function}")) + 2
    file.write_text(text[:body] + statement + text[body:])


def commit(tree: Path, subject: str) -> None:
    git(tree, "add", "--update")
    git(tree, *AUTHOR, "commit", "--quiet", "--no-verify", "-m", subject)


def git(tree: Path, *arguments: str) -> str:
    return run(["git", *AUTHOR, *arguments], str(tree))


def run(arguments: Sequence[str], at: str) -> str:
    done = subprocess.run(arguments, cwd=at, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
