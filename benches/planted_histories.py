"""Histories of a kernel tree in which a few commits have known costs, of a kind that is drawn, and all others cost
nothing on the path of an I/O: the truth that benches/planted_kernels.py compares the search with."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

COMMITS = 12
"""Of a history."""
FIRST_DAY = 1577836800
"""Of the commits: the same seed makes the same hashes, whose kernels are then in the cache."""
OF_READS = """\
[target]
kind = "scratch"
size = "64MiB"
filesystem = "none"
[workloads.reads]
operations = 2000
pattern = "random"
engine = "psync"
file_size = "16MiB"
[compare]
metrics = ["kernel_instructions_per_op"]
same_instructions = 5
"""
UNDER_DEADLINE = OF_READS + '[settings.deadline]\nscheduler = "mq-deadline"\n'
OF_CREATES = """\
[target]
kind = "scratch"
size = "256MiB"
filesystem = "ext4"
[workloads.creates]
kind = "fs_mark"
files = 1000
file_size = "0"
sync = "none"
keep = true
[compare]
metrics = ["kernel_instructions_per_op"]
same_instructions = 200
"""


@dataclass(frozen=True)
class Site:
    """The beginning of a function that runs once for each operation, and the functions that may be named for it."""

    file: str
    definition: str
    symbols: tuple[str, ...]
    """Its own name first, then the functions that the compiler may inline it into."""


BLK_MQ, BIO, CORE = "block/blk-mq.c", "block/bio.c", "block/blk-core.c"
DEADLINE, NAMEI, IALLOC = "block/mq-deadline.c", "fs/ext4/namei.c", "fs/ext4/ialloc.c"
START = Site(BLK_MQ, "void blk_mq_start_request(", ("blk_mq_start_request",))
COMPLETION = (
    Site(BLK_MQ, "void blk_mq_end_request(", ("blk_mq_end_request",)),
    Site(BLK_MQ, "bool blk_update_request(", ("blk_update_request",)),
    Site(BIO, "void bio_endio(", ("bio_endio",)),
)
SUBMISSION = (
    Site(CORE, "void submit_bio_noacct(", ("submit_bio_noacct",)),
    Site(BLK_MQ, "void blk_mq_submit_bio(", ("blk_mq_submit_bio",)),
    START,
)
DISPATCH = (START, Site("drivers/block/null_blk/main.c", "static blk_status_t null_queue_rq(", ("null_queue_rq",)))
INLINED = (
    Site(CORE, "static inline void bio_check_ro(", ("bio_check_ro", "submit_bio_noacct")),
    Site(BLK_MQ, "static inline void blk_account_io_start(", ("blk_account_io_start", "blk_mq_submit_bio")),
)
SCHEDULER = (
    Site(DEADLINE, "static struct request *dd_dispatch_request(", ("dd_dispatch_request",)),
    Site(DEADLINE, "static void dd_insert_request(", ("dd_insert_request", "dd_insert_requests")),
    Site(DEADLINE, "static void dd_finish_request(", ("dd_finish_request",)),
)
CREATE = (
    Site(NAMEI, "static int ext4_create(", ("ext4_create",)),
    Site(NAMEI, "static int ext4_add_nondir(", ("ext4_add_nondir", "ext4_create")),
    Site(IALLOC, "struct inode *__ext4_new_inode(", ("__ext4_new_inode",)),
)
UNUSED = (
    (BLK_MQ, "void blk_mq_kick_requeue_list("),
    (BIO, "struct bio *bio_split("),
    (CORE, "void blk_sync_queue("),
    (DEADLINE, "static void dd_exit_sched("),
    ("block/blk-zoned.c", "int blkdev_zone_mgmt("),
    ("block/ioctl.c", "static int blk_ioctl_discard("),
    (NAMEI, "static int ext4_rmdir("),
    ("fs/ext4/resize.c", "int ext4_group_add("),
)
"""Functions that no load of these calls, in files that they do run."""
DOCUMENT = "Documentation/block/null_blk.rst"


def nops(instructions: int) -> str:
    return f'\tasm volatile(".rept {instructions}\\n\\tnop\\n\\t.endr");\n'


def loop(instructions: int) -> str:
    """Three to a turn. The turn may be changed for all that the compiler knows, so it writes no turns out."""
    turns = f"for (turn = 0; turn < {instructions // 3}; turn++)"
    return f'\t{{ unsigned int turn; {turns} asm volatile("" : "+r" (turn)); }}\n'


def of_each_eighth(instructions: int) -> str:
    """On average so many."""
    return f"\t{{ static unsigned int calls; if (!(calls++ & 7)) {nops(8 * instructions).strip()} }}\n"


def allocation(size: int) -> str:
    return f"\t{{ void *room = kmalloc({size}, GFP_ATOMIC); OPTIMIZER_HIDE_VAR(room); kfree(room); }}\n"


LOCK = """\
	{
		static DEFINE_SPINLOCK(counted);
		unsigned long flags;

		spin_lock_irqsave(&counted, flags);
		spin_unlock_irqrestore(&counted, flags);
	}
"""


@dataclass
class History:
    """What is planted where; commits are counted from 1."""

    kind: str
    experiment: str = OF_READS
    planted: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """By commit: the symbols, one of which has to be named for it."""
    unbuildable: set[int] = field(default_factory=set)
    counts: bool = True
    """Whether what is planted is more than the experiment's margin."""
    edits: dict[int, Callable[[Files], None]] = field(default_factory=dict)
    """By commit, the functions whose change is not innocent."""

    def plant(self, number: int, site: Site, statement: str, *, instead_of: str = "") -> None:
        self.planted[number] = site.symbols
        self.edits[number] = lambda files: files.put(site.file, site.definition, statement, instead_of)

    def breaks(self, first: int, last: int) -> None:
        """Commits from first to last do not build; the next one repairs them."""
        self.unbuildable.update(range(first, last + 1))


class Files:
    """The tree's files after this many commits, with those of the next commit."""

    def __init__(self, tree: Path, base: str) -> None:
        self._tree, self._base = tree, base
        self._now: dict[str, str] = {}
        self._changed: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self._now:
            self._now[name] = git(self._tree, "show", f"{self._base}:{name}")
        return self._now[name]

    def __setitem__(self, name: str, text: str) -> None:
        self._now[name] = text
        self._changed.add(name)

    def put(self, name: str, definition: str, statement: str, instead_of: str = "") -> None:
        """At the beginning of the function's body."""
        text = self[name]
        at = -1
        while (at := text.index(f"\n{definition}", at + 1)) >= 0:
            body, declared = text.index("{\n", at), text.find(";", at)
            if body < declared:
                break
        body += len("{\n")
        assert text.startswith(instead_of, body), f"{name}: {definition} begins otherwise"
        self[name] = text[:body] + statement + text[body + len(instead_of) :]

    def taken(self) -> dict[str, str]:
        """What has changed since the last call."""
        changed = {name: self._now[name] for name in sorted(self._changed)}
        self._changed.clear()
        return changed


def drawn(seed: int, number: int) -> History:
    """The history of this number in a campaign; each run of as many as there are kinds has every kind."""
    turn, place = divmod(number, len(KINDS))
    order = random.Random(f"{seed} {turn}").sample(list(KINDS), len(KINDS))
    chance = random.Random(f"{seed} history {number}")
    history = History(order[place])
    KINDS[order[place]](history, chance)
    return history


def written(history: History, tree: Path, base: str, seed: int, number: int) -> list[str]:
    """Makes it a branch of the tree; its commits, the base first. All histories of a campaign have the same commits
    before the first that is planted, whose kernels are built once."""
    trunk, own = random.Random(f"{seed} trunk"), random.Random(f"{seed} branch {number}")
    branch = f"planted-{seed}-{number}"
    first = min([*history.edits, *history.unbuildable, COMMITS + 1])
    files = Files(tree, base)
    stream: list[str] = []
    for place in range(1, COMMITS + 1):
        if place in history.edits:
            history.edits[place](files)
        else:
            innocent(files, place, trunk if place < first else own)
        _break_or_mend(files, history, place)
        changed = files.taken()
        stream.append(f"commit refs/heads/{branch}\ncommitter iolab <iolab@localhost> {FIRST_DAY + place} +0000\n")
        stream.append(_data(f"{Path(next(iter(changed))).stem}: change {place}\n"))
        stream.append(f"from {base}^0\n" if place == 1 else "")
        stream += [f"M 100644 inline {name}\n{_data(text)}" for name, text in changed.items()]
    git(tree, "fast-import", "--quiet", "--force", "--date-format=raw", given="".join(stream))
    return [git(tree, "rev-parse", base).strip(), *git(tree, "rev-list", "--reverse", f"{base}..{branch}").split()]


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _break_or_mend(files: Files, history: History, number: int) -> None:
    unfinished = "\n#error not finished\n"
    was, now = number - 1 in history.unbuildable, number in history.unbuildable
    if now and not was:
        files[BIO] += unfinished
    elif was and not now:
        files[BIO] = files[BIO].replace(unfinished, "")


def innocent(files: Files, number: int, chance: random.Random) -> None:
    """A change of code or text that no load of these executes: what moves other functions, what looks like a cost, and
    what compiles to nothing."""
    place = chance.randrange(4)
    name = chance.choice([BLK_MQ, BIO, CORE, NAMEI, IALLOC])
    if place == 0:
        files[DOCUMENT] += f"\nChange {number}.\n"
    elif place == 1:
        body = f"\treturn given + {number};\n"
        files[name] += f"\nstatic inline int __maybe_unused change_{number}(int given)\n{{\n{body}}}\n"
    elif place == 2:
        body = nops(chance.randint(1, 2000))
        files[name] += f"\nstatic noinline void __used change_{number}(void)\n{{\n{body}}}\n"
    else:
        files.put(*chance.choice(UNUSED), nops(chance.randint(10, 200)))


def _cost(chance: random.Random) -> str:
    return chance.choice([nops, loop])(round(15 * 14 ** chance.random()))


def _place(chance: random.Random) -> int:
    return chance.randint(2, COMMITS - 1)


def _places(chance: random.Random) -> tuple[int, int]:
    """Far enough apart that a version between them is examined."""
    apart = chance.randint(4, COMMITS - 4)
    first = chance.randint(2, COMMITS - apart)
    return first, first + apart


def _one(sites: tuple[Site, ...]) -> Callable[[History, random.Random], None]:
    return lambda history, chance: history.plant(_place(chance), chance.choice(sites), _cost(chance))


def _now_and_then(history: History, chance: random.Random) -> None:
    cost = of_each_eighth(chance.randint(10, 60))
    history.plant(_place(chance), chance.choice(SUBMISSION + COMPLETION), cost)


def _allocation(history: History, chance: random.Random) -> None:
    cost = allocation(chance.choice([32, 100, 256, 1000]))
    history.plant(_place(chance), chance.choice([SUBMISSION[0], COMPLETION[2]]), cost)


def _lock(history: History, chance: random.Random) -> None:
    history.plant(_place(chance), chance.choice(DISPATCH), LOCK)


def _scheduler(history: History, chance: random.Random) -> None:
    history.experiment = UNDER_DEADLINE
    history.plant(_place(chance), chance.choice(SCHEDULER), _cost(chance))


def _create(history: History, chance: random.Random) -> None:
    history.experiment = OF_CREATES
    cost = loop(round(500 * 6 ** chance.random()))
    history.plant(_place(chance), chance.choice(CREATE), cost)


def _two(history: History, chance: random.Random) -> None:
    sites = chance.sample(SUBMISSION + COMPLETION, 2)
    for number, site in zip(_places(chance), sites, strict=True):
        history.plant(number, site, _cost(chance))


def _partial_fix(history: History, chance: random.Random) -> None:
    first, second = _places(chance)
    site, instructions = chance.choice(SUBMISSION + COMPLETION), chance.randint(60, 210)
    left = nops(round(instructions * chance.uniform(0.3, 0.7)))
    history.plant(first, site, nops(instructions))
    history.plant(second, site, left, instead_of=nops(instructions))


def _undone(history: History, chance: random.Random) -> None:
    first, second = _places(chance)
    site, cost = chance.choice(SUBMISSION + COMPLETION), _cost(chance)
    history.plant(first, site, cost)
    history.plant(second, site, "", instead_of=cost)


def _beside_broken(history: History, chance: random.Random) -> None:
    """It may be one of them."""
    first = chance.randint(2, COMMITS - 4)
    history.breaks(first, first + chance.randrange(3))
    number = first + chance.randint(0, 3)
    history.plant(number, chance.choice(SUBMISSION + COMPLETION), _cost(chance))


def _below_the_margin(history: History, chance: random.Random) -> None:
    history.counts = False
    history.plant(_place(chance), chance.choice(SUBMISSION + COMPLETION), nops(2))


def _nothing(history: History, _chance: random.Random) -> None:
    history.counts = False


KINDS: dict[str, Callable[[History, random.Random], None]] = {
    "instructions in the completion of an I/O": _one(COMPLETION),
    "instructions in its submission": _one(SUBMISSION),
    "instructions in an inlined function": _one(INLINED),
    "instructions in one call of eight": _now_and_then,
    "an allocation for each bio": _allocation,
    "a lock for each dispatch": _lock,
    "instructions in mq-deadline": _scheduler,
    "instructions in a create on ext4": _create,
    "two commits": _two,
    "a cost and its partial fix": _partial_fix,
    "a cost and its revert": _undone,
    "beside commits that do not build": _beside_broken,
    "less than the margin": _below_the_margin,
    "nothing": _nothing,
}


def git(tree: Path, *arguments: str, given: str | None = None) -> str:
    command = ["git", "-c", "gc.auto=0", *arguments]
    return subprocess.run(command, cwd=tree, input=given, capture_output=True, text=True, check=True).stdout
