//! What tasks do on a CPU, and what they use of it.

use base::usage::Usage;
use block_layer::TaskId;
use events::smp::TaskUsage;
use events::time::Time;
use memory::cache::FileId;

/// An hour: no call takes longer, so that sums of times do not overflow.
pub(crate) const CALL_NS_MAX: Time = 3_600_000_000_000;

/// What a task does on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Call {
    /// Submits an operation on so many pages, alone or as the first or a further one of its call, or finds that there is
    /// nothing to do.
    Submit { further: bool, pages: u64 },
    /// Reads through the page cache.
    Copy { pages: u64 },
    /// Syncs what the page cache has of a file.
    Sync,
    /// Writes to the page cache, and syncs what it has written.
    Write { pages: u64, syncs: bool },
    /// Continues with that, after this many pages.
    CopyOn { pages: u64 },
    /// Looks at a completed I/O, as the first or a further one of its call; a task that has polled for it was not
    /// interrupted. `by_call`: the call is another one than that which submits (io_getevents).
    Reap { polled: bool, further: bool, by_call: bool },
    /// Goes on with a call that has waited: what the call costs was spent before.
    Resume,
    /// The same for a request; `finds`: there is one now.
    Retry { finds: bool },
    /// Takes so long by itself: a mount's call, as the mount reports it, or what precedes a commit.
    Work { ns: Time },
}

/// Who makes a call, and where.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct CallContext {
    pub(in crate::world) task: TaskId,
    pub(in crate::world) cpu: u16,
    pub(in crate::world) call: Call,
    /// The drive that it submits to at once; None: to none.
    pub(in crate::world) drive: Option<usize>,
    /// The file of a filesystem that it writes to through the page cache; None: it writes to none.
    pub(in crate::world) writes: Option<FileId>,
}

/// Whether a task lost its CPU because it went to sleep.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) enum Switch {
    Voluntary,
    Involuntary,
}

/// What a task has used until now, and all tasks together.
#[derive(Debug)]
pub(in crate::world) struct UsageAccounts<'a> {
    pub(in crate::world) task: &'a mut Usage,
    pub(in crate::world) all: &'a mut Usage,
}

impl UsageAccounts<'_> {
    pub(super) fn system(self, ns: Time) {
        self.task.cpu_system_ns += ns;
        self.all.cpu_system_ns += ns;
    }

    pub(super) fn switched(self, switch: Switch) {
        for used in [self.task, self.all] {
            match switch {
                Switch::Voluntary => used.context_switches_voluntary += 1,
                Switch::Involuntary => used.context_switches_involuntary += 1,
            }
        }
    }

    /// The task has used that until now, whatever was known of it before.
    pub(super) fn reach(self, now: TaskUsage) {
        let UsageAccounts { task, all } = self;
        for (now, before, all) in [
            (now.user_ns, &mut task.cpu_user_ns, &mut all.cpu_user_ns),
            (now.system_ns, &mut task.cpu_system_ns, &mut all.cpu_system_ns),
            (now.slept, &mut task.context_switches_voluntary, &mut all.context_switches_voluntary),
            (now.gave_way, &mut task.context_switches_involuntary, &mut all.context_switches_involuntary),
        ] {
            *all += now - *before;
            *before = now;
        }
    }
}
