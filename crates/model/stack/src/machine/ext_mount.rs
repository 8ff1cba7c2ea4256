//! How a kernel mounts ext2, ext3 and ext4.

use block_layer::Priority;
use events::SpecError;
use events::time::SECOND;
use filesystems::allocator::Kind;
use filesystems::ext::{DataMode, ExtMetadata, JoinTimes, Variant};
use kernels::Kernel;

/// ext4 empties the drive's cache at each commit by default, and ext3 from 3.1 on.
pub(super) fn variant(kind: Kind, metadata: &ExtMetadata, kernel: &Kernel) -> Option<Variant> {
    let (is_journaled, is_indexed, barrier) = match kind {
        Kind::Ext2 => (false, false, false),
        Kind::Ext3 | Kind::Ext3Windows => (true, false, kernel.ext3_has_barriers()),
        Kind::Ext4 => (true, true, true),
        Kind::Contiguous => return None,
    };
    // The code of ext3 waits for at most a tick.
    let of_ext3 = || JoinTimes { least_ns: 0, most_ns: SECOND / u64::from(kernel.hz()) };
    let joins = kernel.handles_join().then(|| match has_batch_times(kind, kernel) {
        true => metadata.join_times(),
        false => of_ext3(),
    });
    Some(Variant {
        is_journaled,
        is_indexed,
        orders_data: orders_data(metadata),
        barrier: is_journaled && metadata.barrier.unwrap_or(barrier),
        fua: false,
        joins,
        fsync_has_handle: joins.is_some() && kernel.fsync_has_handle(),
        journal_priority: journal_priority(kind, kernel),
    })
}

/// Whether the mount has the options that are given.
pub(super) fn check(kind: Kind, metadata: &ExtMetadata, kernel: &Kernel) -> Result<(), SpecError> {
    if metadata.dirsync && kind == Kind::Ext2 {
        let what = "only ext3 and ext4 have it: what the model makes on ext2 is written by fsync alone";
        return Err(SpecError::of("dirsync", what));
    }
    if metadata.fast_commit && !(kind == Kind::Ext4 && kernel.has_fast_commits()) {
        let what = "only ext4 from 5.10 on has it";
        return Err(SpecError::of("fast_commit", what));
    }
    check_data(kind, metadata, kernel)?;
    let given = metadata.batch_times().into_iter();
    for (key, _) in given.filter(|(_, time)| time.is_some()) {
        if !has_batch_times(kind, kernel) {
            let what = "only ext4 from 2.6.29 on has it, and ext3 from 4.3 on, which ext4's code mounts";
            return Err(SpecError::of(key, what));
        }
        if !metadata.dirsync && !kernel.fsync_has_handle() {
            let what = "nothing waits so: fsync does until 2.6.32, and calls with dirsync = true";
            return Err(SpecError::of(key, what));
        }
    }
    Ok(())
}

fn check_data(kind: Kind, metadata: &ExtMetadata, kernel: &Kernel) -> Result<(), SpecError> {
    let what = match metadata.data {
        None => return Ok(()),
        Some(_) if kind == Kind::Ext2 => "ext2 has no journal, and no such mount option",
        Some(DataMode::Journal) if !is_ext4_code(kind, kernel) => {
            "the journal of ext3's own code is simulated as ordered or writeback; take ext4, or a kernel from 4.3 on"
        }
        Some(DataMode::Journal) if !kernel.ext4_commits_before_writeback() => {
            "journal is simulated as from 6.4 on, where a sync also writes in place; take such a kernel, or ordered or writeback"
        }
        Some(DataMode::Journal) if metadata.fast_commit => {
            "ext4 makes no fast commits with data = \"journal\": leave one of the two out"
        }
        Some(_) => return Ok(()),
    };
    Err(SpecError::of("data", what))
}

/// Whether the mount is in ordered mode, the default.
pub(super) fn orders_data(metadata: &ExtMetadata) -> bool {
    metadata.data.unwrap_or(DataMode::Ordered) == DataMode::Ordered
}

/// One level before that of others, where ext4's code sets it (`DEFAULT_JOURNAL_IOPRIO`, 6.1).
fn journal_priority(kind: Kind, kernel: &Kernel) -> Priority {
    let usual = Priority::default();
    match has_batch_times(kind, kernel) {
        true => Priority { level: 3, ..usual },
        false => usual,
    }
}

/// Whether it has `min_batch_time` and `max_batch_time`.
fn has_batch_times(kind: Kind, kernel: &Kernel) -> bool {
    is_ext4_code(kind, kernel) && kernel.handles_join()
}

/// Whether ext4's code mounts it.
fn is_ext4_code(kind: Kind, kernel: &Kernel) -> bool {
    match kind {
        Kind::Ext4 => true,
        Kind::Ext3 | Kind::Ext3Windows => kernel.mounts_ext3_as_ext4(),
        Kind::Ext2 | Kind::Contiguous => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_ext4_commits_one_level_before_others() {
        let level = |kind, kernel| {
            let kernel = Kernel::named(kernel).unwrap();
            journal_priority(kind, &kernel).level
        };
        assert_eq!([level(Kind::Ext4, "6.1"), level(Kind::Ext3, "6.1")], [3, 3]);
        assert_eq!(level(Kind::Ext3, "3.0"), 4);
    }

    #[test]
    fn modes_of_data_are_those_of_a_filesystem_with_a_journal() {
        use DataMode::{Journal, Ordered, Writeback};
        let refused = |kind, kernel, data, fast_commit| {
            let metadata = ExtMetadata { data: Some(data), fast_commit, ..ExtMetadata::default() };
            let checked = check(kind, &metadata, &Kernel::named(kernel).unwrap());
            checked.err().map(|error| error.key)
        };
        let key = Some("data".to_string());
        assert_eq!(refused(Kind::Ext4, "6.4", Journal, false), None);
        assert_eq!(refused(Kind::Ext3, "6.18", Journal, false), None);
        assert_eq!(refused(Kind::Ext4, "6.3", Journal, false), key);
        assert_eq!(refused(Kind::Ext3, "4.2", Journal, false), key);
        assert_eq!(refused(Kind::Ext4, "6.18", Journal, true), key);
        assert_eq!(refused(Kind::Ext4, "6.18", Writeback, true), None);
        assert_eq!(refused(Kind::Ext3, "2.6.18", Writeback, false), None);
        assert_eq!(refused(Kind::Ext2, "6.18", Ordered, false), key);
    }

    #[test]
    fn only_ext4_from_5_10_on_has_fast_commits() {
        let refused = |kind, kernel| {
            let metadata = ExtMetadata { fast_commit: true, ..ExtMetadata::default() };
            let checked = check(kind, &metadata, &Kernel::named(kernel).unwrap());
            checked.err().map(|error| error.key)
        };
        assert_eq!(refused(Kind::Ext4, "5.10"), None);
        let key = Some("fast_commit".to_string());
        assert_eq!(refused(Kind::Ext4, "5.9"), key);
        assert_eq!(refused(Kind::Ext3, "6.1"), key);
    }
}
