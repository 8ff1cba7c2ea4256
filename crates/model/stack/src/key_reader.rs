//! The parts of a machine, and which keys of its file each of them reads: the one place that states this.

use std::collections::BTreeSet;

/// A part of a machine that reads keys of the machine's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyReader {
    /// CPUs that tasks run on.
    Cpus,
    /// What calls cost that do I/O on a drive.
    Calls,
    /// What calls cost that only return what has completed.
    ReapCalls,
    /// What further operations of a call cost.
    Batches,
    /// What further pages of an operation past the page cache cost.
    LargeOperations,
    /// What copying between a task and the page cache costs.
    Copies,
    /// The pages of files in memory.
    PageCache,
    /// Read-ahead of the page cache.
    ReadAhead,
    /// Dirty pages, who writes them back, and when.
    Writeback,
    /// Commits of a journal that write data first.
    Journal,
    /// The control groups whose tasks do I/O.
    Groups,
    /// The limits of control groups whose tasks do I/O.
    Limits,
    /// The latencies of control groups that are protected.
    Latencies,
    /// What control groups share drives by.
    Cost,
    /// The I/O priority of tasks, if a scheduler uses it.
    Priorities,
    /// What becomes of the I/O priority of control groups whose tasks do I/O, if a scheduler uses it.
    Policies,
    /// Timer interrupts, if a scheduler counts in them.
    Ticks,
    /// The request queue, the scheduler and the device of the drive of that number.
    Drive(u16),
    /// What distinguishes drives that seek, of that drive.
    Seeks(u16),
    /// How requests of that drive complete on detailed CPUs.
    Completion(u16),
    /// How tasks poll that drive for completions.
    Polling(u16),
    /// What becomes of what the drive's cache has acknowledged.
    Flushes(u16),
    /// The filesystem on that drive.
    Filesystem(u16),
    /// Inodes and directories of ext2, ext3 and ext4 on that drive, if files are made there.
    Metadata(u16),
    /// The journal of those files' metadata, of ext3 and ext4.
    MetadataJournal(u16),
    /// What a sync of a load's files costs and writes there, beside what the journal of made files has too.
    Allocation(u16),
    /// The mount of that number.
    Mount(u16),
    /// Memory that is too small, and where what it does not hold goes.
    Swap,
}

/// What a part reads, `#` for its number, `*` for any.
struct Reads {
    keys: &'static [&'static str],
    /// When it does so, in the words of errors.
    when: &'static str,
}

impl KeyReader {
    /// One of each kind.
    pub const ALL: [KeyReader; 28] = [
        KeyReader::Cpus,
        KeyReader::Calls,
        KeyReader::ReapCalls,
        KeyReader::Batches,
        KeyReader::LargeOperations,
        KeyReader::Copies,
        KeyReader::PageCache,
        KeyReader::ReadAhead,
        KeyReader::Writeback,
        KeyReader::Journal,
        KeyReader::Groups,
        KeyReader::Limits,
        KeyReader::Latencies,
        KeyReader::Cost,
        KeyReader::Priorities,
        KeyReader::Policies,
        KeyReader::Ticks,
        KeyReader::Drive(0),
        KeyReader::Seeks(0),
        KeyReader::Completion(0),
        KeyReader::Polling(0),
        KeyReader::Flushes(0),
        KeyReader::Filesystem(0),
        KeyReader::Metadata(0),
        KeyReader::MetadataJournal(0),
        KeyReader::Allocation(0),
        KeyReader::Mount(0),
        KeyReader::Swap,
    ];

    fn reads(self) -> Reads {
        let (keys, when): (&[&str], &str) = match self {
            KeyReader::Cpus => (
                &[
                    "cpus.count",
                    "cpus.time_slice_ns",
                    "cpus.start",
                    "cpus.timer_interrupts",
                    "cpus.clock_hz",
                    "cpus.topology",
                    "cpus.transfer_cycles",
                    "cpus.computing_stall_per_mille",
                    "cpus.idle_states",
                    "cpus.interrupts",
                    "cpus.scheduling",
                    "cpus.offline",
                ],
                "tasks run on CPUs",
            ),
            KeyReader::Calls => (
                &[
                    "cpus.call_ns",
                    "cpus.completion_ns",
                    "cpus.submit_cycles",
                    "cpus.user_cycles",
                    "cpus.reap_cycles",
                    "cpus.jitter",
                ],
                "reads and writes of a load go to a drive",
            ),
            KeyReader::ReapCalls => (&["cpus.reap_call_ns"], "a load reads or writes by libaio past the page cache"),
            KeyReader::Batches => {
                (&["cpus.further_op_ns"], "a load submits several reads or writes to a drive at once")
            }
            KeyReader::LargeOperations => {
                (&["cpus.further_page_ns"], "a load's direct reads or writes are longer than a page")
            }
            KeyReader::Copies => (
                &["cpus.copy_call_ns", "cpus.sync_call_ns", "cpus.page_copy_ns", "cpus.page_copy_cycles"],
                "a load's reads and writes are buffered",
            ),
            KeyReader::PageCache => {
                (&["kernel", "memory.bytes", "memory.lowmem_bytes"], "a load's reads and writes are buffered")
            }
            KeyReader::ReadAhead => (&["drives.*.queue.read_ahead_kb"], "a load's reads are buffered"),
            KeyReader::Writeback => (
                &[
                    "cpus.write_call_ns",
                    "cpus.page_write_ns",
                    "memory.former_bytes",
                    "memory.dirty_background_percent",
                    "memory.dirty_percent",
                    "memory.dirty_expire_ns",
                    "memory.dirty_writeback_interval_ns",
                    "drives.*.queue.wbt_lat_usec",
                ],
                "a load's writes are buffered",
            ),
            KeyReader::Journal => {
                (&["memory.commit_interval_ns"], "a load's writes are buffered on a filesystem with a journal")
            }
            KeyReader::Groups => (
                &["cgroups.*.name", "cgroups.*.weight"],
                "jobs in control groups do I/O on a drive whose scheduler is cfq or bfq",
            ),
            KeyReader::Limits => {
                (&["cgroups.*.name", "cgroups.*.io_max", "hz"], "jobs in control groups with limits do I/O on a drive")
            }
            KeyReader::Latencies => (
                &["kernel", "cgroups.*.name", "cgroups.*.io_latency_ns", "drives.*.queue.rotational"],
                "jobs in control groups do I/O on a drive, and one of them has a latency",
            ),
            KeyReader::Cost => (
                &["kernel", "io_cost", "cgroups.*.name", "cgroups.*.weight", "drives.*.queue.rotational", "hz"],
                "jobs in control groups do I/O on a drive, and the machine has io_cost",
            ),
            KeyReader::Priorities => {
                (&["io_priority"], "I/O goes to a drive whose scheduler is cfq, bfq or mq-deadline")
            }
            KeyReader::Policies => (
                &["kernel", "cgroups.*.name", "cgroups.*.io_prio_class"],
                "jobs in control groups do I/O on a drive whose scheduler is mq-deadline",
            ),
            KeyReader::Ticks => {
                (&["hz"], "I/O goes to a drive whose scheduler is cfq, anticipatory, bfq or mq-deadline")
            }
            KeyReader::Drive(_) => (
                &[
                    "kernel",
                    "drives.#.device",
                    "drives.#.scheduler",
                    "drives.#.peek",
                    "drives.#.queue.nr_requests",
                    "drives.#.queue.max_sectors_kb",
                    "drives.#.queue.max_segments",
                    "drives.#.queue.nomerges",
                    "drives.#.queue.hardware_queues",
                ],
                "I/O goes to that drive",
            ),
            KeyReader::Seeks(_) => (
                &["drives.#.queue.rotational"],
                "I/O goes to that drive under bfq or a scheduler before blk-mq, or its buffered writes are throttled",
            ),
            KeyReader::Completion(_) => (
                &[
                    "kernel",
                    "completion",
                    "drives.#.queue.rq_affinity",
                    "drives.#.interrupt_cpu",
                    "drives.#.affinity",
                    "drives.#.dma",
                ],
                "I/O goes to that drive, and detailed CPUs complete it",
            ),
            KeyReader::Polling(_) => (
                &[
                    "kernel",
                    "cpus.interrupt_ns",
                    "cpus.poll_cycles",
                    "drives.#.queue.io_poll",
                    "drives.#.queue.io_poll_delay",
                ],
                "a load polls for completions on that drive",
            ),
            KeyReader::Flushes(_) => (
                &["kernel", "drives.#.queue.write_cache", "drives.#.queue.fua"],
                "a load syncs what it writes to that drive, its buffered writes are throttled there, or files are made there",
            ),
            KeyReader::Filesystem(_) => (&["kernel", "drives.#.filesystem"], "files lie on that drive"),
            KeyReader::Metadata(_) => (
                &[
                    "kernel",
                    "drives.#.metadata.call_ns",
                    "drives.#.metadata.scan_block_ns",
                    "drives.#.metadata.dirsync",
                    "drives.#.metadata.min_batch_time",
                    "drives.#.metadata.max_batch_time",
                    "memory.bytes",
                    "memory.dirty_background_percent",
                    "cpus.call_ns",
                    "cpus.submit_cycles",
                    "cpus.page_copy_ns",
                    "cpus.page_copy_cycles",
                ],
                "files are made on that drive, whose filesystem is ext2, ext3 or ext4",
            ),
            KeyReader::MetadataJournal(_) => (
                &["drives.#.metadata.journal_blocks", "drives.#.metadata.barrier", "drives.#.metadata.data"],
                "files are made on that drive, whose filesystem is ext3 or ext4, or a load syncs what it writes there, or writes there with data = journal",
            ),
            KeyReader::Allocation(_) => (
                &["drives.#.metadata.allocate_ns", "drives.#.metadata.commit_ns", "drives.#.metadata.fast_commit"],
                "a load syncs what it writes to files on that drive, whose filesystem is ext3 or ext4",
            ),
            KeyReader::Mount(_) => (&["mounts.#"], "files lie on that mount"),
            KeyReader::Swap => (&["kernel", "swap", "memory.bytes"], "processes need more than memory"),
        };
        Reads { keys, when }
    }

    fn number(self) -> Option<u16> {
        match self {
            KeyReader::Drive(number)
            | KeyReader::Seeks(number)
            | KeyReader::Completion(number)
            | KeyReader::Polling(number)
            | KeyReader::Flushes(number)
            | KeyReader::Filesystem(number)
            | KeyReader::Metadata(number)
            | KeyReader::MetadataJournal(number)
            | KeyReader::Allocation(number)
            | KeyReader::Mount(number) => Some(number),
            _ => None,
        }
    }

    /// Whether the part reads the key of that dotted path, something inside it or what it is inside of.
    pub fn has_read(self, key: &str) -> bool {
        let number = self.number();
        self.reads().keys.iter().any(|pattern| {
            pattern.split('.').zip(key.split('.')).all(|(own, given)| {
                own == given || own == "*" || own == "#" && number.is_some_and(|number| given == number.to_string())
            })
        })
    }
}

/// Whether one of the parts reads the key.
pub fn is_read(key: &str, parts: &BTreeSet<KeyReader>) -> bool {
    parts.iter().any(|part| part.has_read(key))
}

/// When the key of that dotted path is read at all, for errors; None: by nothing, ever.
pub fn when_read(key: &str) -> Option<String> {
    let mut parts: Vec<&str> = key.split('.').collect();
    // A numbered part is any of its kind.
    if matches!(parts.first(), Some(&"drives" | &"mounts")) && parts.len() > 1 {
        parts[1] = "0";
    }
    let key = parts.join(".");
    let mut found: Vec<&str> = Vec::new();
    for part in KeyReader::ALL {
        if part.has_read(&key) && !found.contains(&part.reads().when) {
            found.push(part.reads().when);
        }
    }
    (!found.is_empty()).then(|| found.join(", or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_by_the_part_of_its_number() {
        let parts = BTreeSet::from([KeyReader::Drive(1), KeyReader::Cpus]);
        assert!(is_read("drives.1.scheduler", &parts));
        assert!(is_read("drives.1.scheduler.quantum", &parts));
        assert!(is_read("drives.1.queue", &parts));
        assert!(!is_read("drives.0.scheduler", &parts));
        assert!(!is_read("drives.1.queue.read_ahead_kb", &parts));
        assert!(!is_read("title", &parts));
    }

    #[test]
    fn an_error_says_when_a_key_would_be_read() {
        assert_eq!(when_read("drives.7.scheduler").as_deref(), Some("I/O goes to that drive"));
        assert_eq!(when_read("title"), None);
        let seeks = when_read("drives.0.queue.rotational").unwrap();
        assert!(seeks.contains("under bfq or a scheduler before blk-mq"));
    }

    /// Every key that a machine's file may have, but its title, has a reader.
    #[test]
    fn each_key_of_the_schema_has_a_reader() {
        let schema = serde_json::to_value(schemars::schema_for!(crate::machine::File)).unwrap();
        let mut unread = Vec::new();
        keys(&schema, &schema, "", 3, &mut |key| {
            if key != "title" && when_read(key).is_none() {
                unread.push(key.to_owned());
            }
        });
        assert_eq!(unread, Vec::<String>::new());
    }

    fn keys(
        root: &serde_json::Value,
        schema: &serde_json::Value,
        prefix: &str,
        depth: u32,
        found: &mut impl FnMut(&str),
    ) {
        if let Some(name) = schema["$ref"].as_str() {
            let target = root.pointer(name.trim_start_matches('#')).unwrap();
            return keys(root, target, prefix, depth, found);
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            for one in schema[choice].as_array().into_iter().flatten() {
                keys(root, one, prefix, depth, found);
            }
        }
        if schema["items"].is_object() {
            keys(root, &schema["items"], &format!("{prefix}0."), depth, found);
        }
        if depth == 0 {
            return;
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let key = format!("{prefix}{name}");
            found(&key);
            keys(root, inner, &format!("{key}."), depth - 1, found);
        }
    }
}
