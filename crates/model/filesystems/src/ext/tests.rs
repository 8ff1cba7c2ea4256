//! What making files writes on each of the three, and when threads continue.

use std::collections::BTreeMap;

use block_layer::Priority;
use serde_json::{Value, json};
use workload::metadata::MetadataPhase;

use super::*;
use crate::allocator::{FilesystemSpec, GROUP_BLOCKS, Kind};
use crate::effect::BlockIo;
use crate::filesystem::{Filesystem, Results};
use events::Component;
use events::event_queue::EventQueue;
use events::time::SECOND;

/// What a drive takes for each write, whatever it is, and for a flush; CPUs without end.
const WRITE_NS: Time = 1_000_000;

#[derive(Clone, Copy)]
enum Event {
    Work(Actor),
    Io(u32),
    Flush(u32),
}

struct Machine {
    ext: Ext,
    events: EventQueue<Event>,
    now: Time,
    writes: Vec<BlockIo>,
    flushes: u32,
}

fn machine(kind: Kind, metadata: Value) -> Machine {
    let spec = json!({ "kind": kind_name(kind), "blocks": 4 * GROUP_BLOCKS });
    let spec: FilesystemSpec = serde_json::from_value(spec).unwrap();
    let metadata: ExtMetadata = serde_json::from_value(metadata).unwrap();
    let mount = Mount {
        variant: Variant {
            is_journaled: kind != Kind::Ext2,
            is_indexed: kind == Kind::Ext4,
            barrier: metadata.barrier.unwrap_or(kind == Kind::Ext4),
            fua: false,
            orders_data: metadata.data != Some(DataMode::Writeback),
            joins: Some(metadata.join_times()),
            fsync_has_handle: false,
            journal_priority: Priority::default(),
        },
        cpus: 2,
        blocks: spec.blocks,
        group_metadata_blocks: spec.group_metadata_blocks,
        group_inodes: spec.group_inodes,
        submit_ns: 1000,
        page_copy_ns: 1000,
        background_pages: 1000,
    };
    Machine {
        ext: Ext::new(&mount, metadata, spec.build().unwrap()).unwrap(),
        events: EventQueue::new(),
        now: 0,
        writes: Vec::new(),
        flushes: 0,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Ext2 => "ext2",
        Kind::Ext3 => "ext3",
        Kind::Ext3Windows => "ext3_windows",
        Kind::Ext4 => "ext4",
        Kind::Contiguous => "contiguous",
    }
}

fn phase(threads: u64, changes: Value) -> MetadataPhase {
    let thread = |number: u64| {
        let mut job = json!({
            "name": format!("t{number}"), "files": 10, "file_bytes": 8192, "write_bytes": 4096, "sync": "before_close",
            "keep": true, "until_full": false, "subdirectories": null,
            "names": { "bytes": 40, "random_bytes": 24, "first": number, "step": threads }, "seed": 5 + number
        });
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        json!({ "directory": format!("d{number}"), "beneath": null, "paths": "full", "cpus": null, "job": job })
    };
    let threads: Vec<Value> = (0..threads).map(thread).collect();
    serde_json::from_value(json!({ "name": "p", "threads": threads })).unwrap()
}

impl Machine {
    fn follow(&mut self) {
        let mut effects = Vec::new();
        self.ext.take_effects(&mut effects);
        for effect in effects {
            match effect {
                Effect::Work { cycles, of, .. } => {
                    let at = self.now + Time::from(cycles);
                    self.events.put(at, Event::Work(of.unwrap()));
                }
                Effect::Io(io) => {
                    self.writes.push(io);
                    self.events.put(self.now + WRITE_NS, Event::Io(io.tag));
                }
                Effect::Flush(number) => {
                    self.flushes += 1;
                    self.events.put(self.now + WRITE_NS, Event::Flush(number));
                }
                Effect::Task(_) | Effect::Exit(_) | Effect::Unblock { .. } => {}
            }
        }
    }

    fn step(&mut self) -> bool {
        self.follow();
        if let Some(at) = self.ext.next_event()
            && self.events.next_at().is_none_or(|other| at < other)
        {
            self.now = at;
            self.ext.advance(at);
            self.follow();
            return true;
        }
        let Some((at, event)) = self.events.take() else {
            return false;
        };
        self.now = at;
        match event {
            Event::Work(actor) => self.ext.worked(at, actor, 0),
            Event::Io(tag) => self.ext.completed(at, tag),
            Event::Flush(number) => self.ext.flushed(at, number),
        }
        self.follow();
        true
    }

    fn run(&mut self, phase: &MetadataPhase) -> Results {
        self.ext.begin(self.now, phase, None).unwrap();
        self.follow();
        while self.ext.is_active() {
            assert!(self.step(), "something is to come");
        }
        self.ext.check(self.now).unwrap();
        self.ext.end(self.now, (0, 0))
    }

    /// Until timers have nothing more to do.
    fn run_until_idle(&mut self) {
        while self.step() {}
        self.ext.check(self.now).unwrap();
    }

    fn blocks(&self, of: impl Fn(&BlockIo) -> bool) -> u64 {
        let found = self.writes.iter().filter(|io| of(io));
        found.map(|io| u64::from(io.blocks)).sum()
    }
}

fn made(results: &Results) -> u64 {
    let threads = results.threads.iter().flatten();
    threads.map(|thread| thread.ops[1].latency.count()).sum()
}

#[test]
fn a_synced_file_is_data_then_journal_then_record_on_ext3_and_flushed_around_the_record_on_ext4() {
    for (kind, flushes) in [(Kind::Ext3, 0), (Kind::Ext4, 20)] {
        let mut machine = machine(kind, json!({}));
        let results = machine.run(&phase(1, json!({})));
        assert_eq!(made(&results), 10);
        assert_eq!(machine.blocks(|io| !io.metadata), 20);
        // What each of ten commits changes, one descriptor and one record. The journal has indirect blocks too.
        let records = machine.writes.iter().filter(|io| io.metadata && io.blocks == 1);
        assert!((10..=12).contains(&records.count()), "{kind:?}");
        let log = machine.blocks(|io| io.metadata);
        assert!((60..=120).contains(&log), "{kind:?} {log}");
        assert_eq!(machine.flushes, flushes, "{kind:?}");
        let behind = machine.writes.iter().filter(|io| io.behind_flush);
        assert_eq!(behind.count() as u32, flushes / 2, "{kind:?}: records");
        // The data of one file, its blocks in the journal, its record.
        let first: Vec<bool> = machine.writes.iter().take(3).map(|io| io.metadata).collect();
        assert_eq!(first, [false, true, true], "{kind:?}");
        assert!(machine.writes[1].block + u64::from(machine.writes[1].blocks) == machine.writes[2].block);
    }
}

#[test]
fn ext2_writes_the_inode_in_its_place() {
    let mut machine = machine(Kind::Ext2, json!({}));
    machine.run(&phase(1, json!({})));
    // Inodes begin behind the bitmaps of their group.
    let inodes: Vec<u64> = machine.writes.iter().filter(|io| io.metadata).map(|io| io.block % GROUP_BLOCKS).collect();
    assert_eq!(inodes, [4; 10]);
}

#[test]
fn threads_that_sync_at_once_share_a_commit() {
    let alone = {
        let mut machine = machine(Kind::Ext3, json!({}));
        machine.run(&phase(1, json!({})));
        machine.now
    };
    let mut machine = machine(Kind::Ext3, json!({}));
    let results = machine.run(&phase(8, json!({})));
    assert_eq!(made(&results), 80);
    assert!(machine.now < 3 * alone, "{} {alone}", machine.now);
}

#[test]
fn what_is_not_synced_is_committed_after_five_seconds_and_in_place_after_thirty() {
    let mut machine = machine(Kind::Ext3, json!({}));
    machine.run(&phase(1, json!({ "sync": "none" })));
    assert!(machine.writes.is_empty());
    machine.run_until_idle();
    assert!((30 * SECOND..60 * SECOND).contains(&machine.now), "{}", machine.now);
    let in_place = machine.writes.iter().filter(|io| io.metadata && io.writeback).count();
    assert!(in_place > 0);
    assert!(machine.ext.journal.as_ref().unwrap().oldest().is_empty());
}

#[test]
fn a_small_journal_makes_threads_wait_for_their_blocks_to_be_in_place() {
    let many = json!({ "files": 40_000, "file_bytes": 0, "sync": "none", "keep": true });
    let mut small = machine(Kind::Ext3, json!({ "journal_blocks": 1024 }));
    assert_eq!(made(&small.run(&phase(1, many.clone()))), 40_000);
    assert!(small.blocks(|io| io.writeback) > 500);
    let mut large = machine(Kind::Ext3, json!({ "journal_blocks": 16_384 }));
    large.run(&phase(1, many));
    assert_eq!(large.blocks(|io| io.writeback), 0);
}

#[test]
fn everything_that_is_made_can_be_unlinked() {
    for kind in [Kind::Ext2, Kind::Ext3, Kind::Ext3Windows, Kind::Ext4] {
        for sync in ["none", "before_close", "system_then_in_order", "reverse"] {
            let mut machine = machine(kind, json!({}));
            let free = machine.ext.allocator.free_blocks();
            let changes = json!({ "files": 300, "keep": false, "sync": sync, "file_bytes": 60_000 });
            let results = machine.run(&phase(3, changes));
            assert_eq!(made(&results), 900);
            machine.run_until_idle();
            // What directories have stays.
            let kept = free - machine.ext.allocator.free_blocks();
            assert!(kept < 50, "{kind:?} {sync} {kept}");
        }
    }
}

#[test]
fn subdirectories_are_made_and_a_full_filesystem_ends_it() {
    let walk = json!({ "count": 3, "first": 0, "next_after": { "files": 4 } });
    let mut one = machine(Kind::Ext4, json!({}));
    let results = one.run(&phase(2, json!({ "subdirectories": walk })));
    assert_eq!(made(&results), 20);
    assert_eq!(one.ext.directories.len(), 2 + 2 * 3);
    let mut full = machine(Kind::Ext3, json!({}));
    let fill = json!({ "files": 1_000_000, "file_bytes": 4 << 20, "write_bytes": 1 << 20, "sync": "none", "until_full": true });
    let results = full.run(&phase(1, fill));
    assert!(results.filesystem_used_percent > 99.0, "{}", results.filesystem_used_percent);
}

#[test]
fn one_seed_one_result() {
    let run = || {
        let mut machine = machine(Kind::Ext4, json!({}));
        machine.run(&phase(4, json!({ "keep": false })));
        let writes: BTreeMap<u64, u32> = machine.writes.iter().map(|io| (io.block, io.blocks)).collect();
        (machine.now, writes)
    };
    assert_eq!(run(), run());
}

/// The commits of some threads that make files in directories of their own, and the time that takes.
fn committed_by(threads: u64, metadata: Value, fsync_has_handle: bool) -> (usize, Time) {
    let mut machine = machine(Kind::Ext4, metadata);
    machine.ext.variant.fsync_has_handle = fsync_has_handle;
    let mut phase = phase(threads, json!({}));
    for (number, thread) in (1..).zip(&mut phase.threads) {
        // Each at its own pace.
        thread.job.file_bytes = number * 64 * 4096;
    }
    let results = machine.run(&phase);
    assert_eq!(made(&results), 10 * threads);
    let records = machine.writes.iter().filter(|io| io.behind_flush);
    (records.count(), machine.now)
}

#[test]
fn synchronous_handles_wait_for_others_and_fsync_of_later_kernels_does_not() {
    // A single thread waits for nobody but once.
    let (alone, took) = committed_by(1, json!({}), false);
    let (with_handle, took_with) = committed_by(1, json!({ "min_batch_time": 5000 }), true);
    assert_eq!((alone, with_handle), (10, 10));
    assert_eq!(took_with - took, 5_000_000);
    // Eight share more of their commits if they wait.
    let (apart, _) = committed_by(8, json!({}), false);
    let (together, _) = committed_by(8, json!({ "min_batch_time": 5000 }), true);
    assert!(together < apart, "{together} {apart}");
    let (without, _) = committed_by(8, json!({ "max_batch_time": 0 }), true);
    assert!(together < without, "{together} {without}");
}

#[test]
fn with_dirsync_each_file_is_made_when_that_is_committed() {
    let (commits, _) = committed_by(1, json!({ "dirsync": true }), false);
    assert_eq!(commits, 20, "for its name, and for its data");
    let (together, _) = committed_by(8, json!({ "dirsync": true }), false);
    let (apart, _) = committed_by(8, json!({ "dirsync": true, "max_batch_time": 0 }), false);
    assert!(together < apart, "{together} {apart}");
}
