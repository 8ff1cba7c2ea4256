//! fsync and the drive's cache.

use serde_json::{Value, json};

use super::tests::{load, run};
use super::*;

/// A disk of 7,200 revolutions per minute that acknowledges writes from its cache.
pub(super) fn disk() -> Value {
    json!({
        "kind": "disk", "revolutions_per_minute": 7200, "surfaces": 1, "head_switch_ns": 0, "write_settle_ns": 0,
        "command_read_ns": 0, "command_write_ns": 0, "hit_read_ns": 100_000, "hit_write_ns": 100_000,
        "interface_bytes_per_s": 300_000_000, "zones": [{ "cylinders": 4096, "sectors_per_track": 2048 }],
        "seeks": [{ "cylinders": 1, "time_ns": 1_000_000 }, { "cylinders": 4095, "time_ns": 8_000_000 }],
        "cache": {
            "segments": 8, "segment_sectors": 1024, "read_ahead_sectors": 0, "write_back": true,
            "dirty_sectors_max": 16384
        },
        "queue": { "depth": 32, "order": "shortest_positioning", "age_limit_ns": 1_000_000_000 }
    })
}

fn machine(kernel: &str, memory_bytes: u64, drive: Value) -> MachineSpec {
    let machine = MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": {
            "count": 2, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 300, "jitter": 0.05
        },
        "memory": { "bytes": memory_bytes },
        "drives": [drive]
    }));
    machine.unwrap()
}

/// One that writes in order, a call after the other.
fn writer(direct: bool) -> Value {
    let mut phase = load();
    let group = &mut phase["groups"][0];
    (group["engine"], group["direct"]) = (json!("psync"), json!(direct));
    let job = &mut group["jobs"][0];
    job["read_share"] = json!(0.0);
    job["pattern"] = json!({ "kind": "sequential" });
    job["queue_depth"] = json!(1);
    phase
}

/// Writes a second of 4 KiB in order, each with an fdatasync behind it.
fn synced_writes(kernel: &str, direct: bool, queue: Value) -> u64 {
    let drive = json!({ "queue": queue, "device": disk() });
    syncs(kernel, direct, drive, "fdatasync", false)
}

/// The syncs of a second, each behind a write of 4 KiB: in order, or always the same block.
fn syncs(kernel: &str, direct: bool, drive: Value, call: &str, same_block: bool) -> u64 {
    let mut model = Model::new(&machine(kernel, 256 << 20, drive)).unwrap();
    let mut phase = writer(direct);
    let job = &mut phase["groups"][0]["jobs"][0];
    job["sync"] = json!({ "kind": call, "every_writes": 1 });
    if same_block {
        job["length_bytes"] = json!(4096);
    }
    job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": 1_000_000_000 });
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    record["groups"][0]["jobs"][0]["sync"]["count"].as_u64().unwrap()
}

#[test]
fn each_fsync_waits_for_the_platter_where_the_cache_forgets() {
    for direct in [false, true] {
        // A write behind the last one waits for its sector: a revolution, 120 a second.
        let on_platter = synced_writes("6.1", direct, json!({}));
        assert!((100..=125).contains(&on_platter), "{on_platter}");
        let safe = synced_writes("6.1", direct, json!({ "write_cache": "write through" }));
        assert!(safe > 1_000, "{safe}");
    }
}

#[test]
fn before_2_6_37_no_fsync_does() {
    assert!(synced_writes("2.6.36", true, json!({})) > 1_000);
}

/// The disk with ext4 on it.
fn on_ext4(metadata: Value) -> Value {
    json!({ "device": disk(), "filesystem": { "kind": "ext4" }, "metadata": metadata })
}

#[test]
fn an_fsync_commits_the_journal_and_fdatasync_of_a_block_that_exists_does_not() {
    let drive = on_ext4(json!({}));
    let data_alone = syncs("6.1", false, drive.clone(), "fdatasync", true);
    let with_commit = syncs("6.1", false, drive, "fsync", true);
    // Data, then the log, then its record, each waited for on the platter, with a seek between.
    assert!((100..=125).contains(&data_alone), "{data_alone}");
    assert!((30..=80).contains(&with_commit), "{with_commit}");
    let without_barriers = on_ext4(json!({ "barrier": false }));
    let in_its_cache = syncs("6.1", false, without_barriers, "fsync", true);
    assert!(in_its_cache > 1_000, "{in_its_cache}");
}

/// Blocks of 4 KiB that 500 synced writes of 4 KiB to a file write on ext4 of 6.18: one that grows, or one block.
fn blocks_written(metadata: Value, same_block: bool) -> u64 {
    let mut model = Model::new(&machine("6.18", 256 << 20, on_ext4(metadata))).unwrap();
    let mut phase = writer(false);
    let job = &mut phase["groups"][0]["jobs"][0];
    job["sync"] = json!({ "kind": "fdatasync", "every_writes": 1 });
    if same_block {
        job["length_bytes"] = json!(4096);
    }
    job["until"] = json!({ "ops": 500, "bytes": null, "duration_ns": null });
    phase["probes"] = json!({ "block": { "interval_ns": 1_000_000_000, "trace": null } });
    model.begin(ObservedPhase::from_json(phase).unwrap()).unwrap();
    model.run(|_| true);
    model.check().unwrap();
    let record = serde_json::to_value(model.end(0, "test")).unwrap();
    let written = &record["probes"]["block"]["all"]["write"]["bytes_completed"];
    written.as_u64().unwrap() / 4096
}

/// Counted on a real host (docs/commits.md#what-modes-of-data-and-fast-commits-write), where the superblock of a log of 8192
/// blocks was written once: when a third of it was free.
#[test]
fn data_of_a_journal_are_written_in_its_log_and_in_their_places() {
    let mode = |mode: &str| json!({ "data": mode });
    let ordered = blocks_written(json!({}), false);
    assert_eq!(ordered, 500 * (1 + 5));
    assert_eq!(blocks_written(mode("ordered"), false), ordered);
    assert_eq!(blocks_written(mode("writeback"), false), ordered);
    assert_eq!(blocks_written(mode("journal"), false), 500 * (1 + 6) + 1);
    let overwritten = blocks_written(mode("journal"), true);
    assert!((500 * 5 - 10..=500 * 5 + 2).contains(&overwritten), "{overwritten}");
}

#[test]
fn direct_io_is_refused_where_data_go_to_the_journal() {
    let machine = machine("6.18", 256 << 20, on_ext4(json!({ "data": "journal" })));
    let error = check_load(&machine, load()).unwrap_err();
    assert_eq!(error.key, "groups.0.direct");
}

/// A writer who never syncs fills the log, and waits for checkpoints from then on.
#[test]
fn a_log_without_room_holds_up_writers_and_all_is_written_twice() {
    let run_of = |metadata: Value| {
        let mut model = Model::new(&machine("6.18", 1 << 30, on_ext4(metadata))).unwrap();
        let mut phase = writer(false);
        let until = json!({ "ops": 8000, "bytes": null, "duration_ns": null });
        phase["groups"][0]["jobs"][0]["until"] = until;
        let record = run(&mut model, serde_json::from_value(phase).unwrap());
        let record = serde_json::to_value(record).unwrap();
        let write = &record["groups"][0]["jobs"][0]["write"];
        assert_eq!(write["count"], 8000);
        write["latency"]["max_ns"].as_u64().unwrap()
    };
    let ordered = run_of(json!({ "journal_blocks": 1024 }));
    let journal = run_of(json!({ "journal_blocks": 1024, "data": "journal" }));
    let roomy = run_of(json!({ "journal_blocks": 65536, "data": "journal" }));
    assert!(journal > 10_000_000 && journal > 10 * ordered, "{journal} {ordered}");
    assert!(roomy < journal / 10, "{roomy} {journal}");
}

/// The longest read of a task that reads its file through the cache, or writes it as well, beside one that writes and syncs
/// another, on ext4 before a drive that takes 0.5 ms.
fn longest_read_ns(read_share: f64) -> u64 {
    let drive = json!({
        "filesystem": { "kind": "ext4" },
        "device": { "kind": "null", "capacity_bytes": 1u64 << 32, "latency_ns": 500_000, "queue_depth": 8 }
    });
    let mut model = Model::new(&machine("6.1", 256 << 20, drive)).unwrap();
    let mut phase = writer(false);
    phase["groups"][0]["jobs"][0]["until"] = json!({ "ops": null, "bytes": null, "duration_ns": 500_000_000 });
    let (mut file, mut group) = (phase["files"][0].clone(), phase["groups"][0].clone());
    phase["groups"][0]["jobs"][0]["sync"] = json!({ "kind": "fsync", "every_writes": 1 });
    (file["path"], group["name"]) = (json!("other"), json!("other"));
    let job = &mut group["jobs"][0];
    (job["files"], job["read_share"]) = (json!([1]), json!(read_share));
    job["length_bytes"] = json!(4096);
    job["arrival"] = json!({ "kind": "closed", "think_ns": 300_000, "think_every": 1 });
    phase["files"].as_array_mut().unwrap().push(file);
    phase["groups"].as_array_mut().unwrap().push(group);
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    let record = serde_json::to_value(record).unwrap();
    record["groups"][1]["jobs"][0]["read"]["latency"]["max_ns"].as_u64().unwrap()
}

#[test]
fn a_read_after_a_write_waits_for_the_commit_that_has_the_inodes_block() {
    let after_writes = longest_read_ns(0.5);
    assert!((200_000..=550_000).contains(&after_writes), "{after_writes}");
    let alone = longest_read_ns(1.0);
    assert!(alone < 50_000, "its time of access stays: {alone}");
}
