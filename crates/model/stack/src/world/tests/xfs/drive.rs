//! What goes to the drive: the log, what the log has and is written in place, files' data; and who waits for it.

use std::collections::BTreeMap;

use super::*;

fn syncing(sync: &str, bytes: u64) -> Value {
    json!({ "/job/sync": sync, "/job/file_bytes": bytes, "/job/write_bytes": 16384 })
}

/// 512 blocks: 2 MiB, a checkpoint for each 256 KiB.
fn small_log() -> XfsSpec {
    XfsSpec { log_blocks: 512, ..filesystem(4) }
}

#[test]
fn a_log_that_is_full_makes_creates_as_fast_as_the_drive() {
    let elapsed = |latency_ns| {
        let cpus = processors(4, true);
        let mut machine = Machine::with_drive(cpus, latency_ns, &small_log(), Allocation::Direct);
        let results = run(&mut machine, &phase(2, 5_000, json!({})));
        let log = machine.blocks_written().log;
        assert!(log > 1_600, "{log}");
        elapsed_ns(&results)
    };
    let (fast, slow) = (elapsed(1_000), elapsed(40_000_000));
    assert!(slow > 2 * fast, "{slow} and {fast}");
}

/// A thread that makes 8,000 files, and the log's drive takes 20 ms for each buffer, of which there are 64 in a checkpoint:
/// the longest create in ns, and switches by site.
fn creates_beside_a_slow_log(cpus: Value, checkpoints: Checkpoints) -> (u64, BTreeMap<String, u64>) {
    let spec = XfsSpec { log_blocks: 4096, ..filesystem(4) };
    let drive = (20_000_000, 32);
    let form = Allocation::Direct;
    let mut machine = Machine::with_checkpoints(cpus, drive, &spec, form, checkpoints);
    let results = run(&mut machine, &phase(1, 8_000, json!({})));
    let log = machine.blocks_written().log;
    assert!(log >= 1_000, "two checkpoints: {log}");
    let thread = results.threads[0].as_ref().unwrap();
    let sites = results.switches.unwrap().report.sites;
    let sites = sites.into_iter().map(|site| (site.site, site.switches));
    (thread.ops[CREATE].latency.max_ns().unwrap(), sites.collect())
}

#[test]
fn a_worker_waits_for_the_logs_buffers_where_the_committing_thread_does_not() {
    let longest = |cpus, checkpoints| creates_beside_a_slow_log(cpus, checkpoints).0;
    for cpus in [processors(4, true), simple(4)] {
        let by_committer = longest(cpus.clone(), Checkpoints::ByCommitter);
        assert!(by_committer > 100_000_000, "{by_committer}");
        for checkpoints in [Checkpoints::ByBoundWorker, Checkpoints::ByWorker] {
            let by_worker = longest(cpus.clone(), checkpoints);
            assert!(by_worker < 3_000_000, "{checkpoints:?}: {by_worker}");
        }
    }
    let (_, sites) = creates_beside_a_slow_log(processors(4, true), Checkpoints::ByBoundWorker);
    assert!(sites.contains_key("xlog_state_get_iclog_space"), "{sites:?}");
}

#[test]
fn a_bound_worker_takes_the_cpu_of_the_committing_thread() {
    let cycles_of = |checkpoints| {
        let (longest, _) = creates_beside_a_slow_log(processors(4, true), checkpoints);
        longest
    };
    // 512 blocks of 1,500 cycles at 2 GHz.
    let (bound, unbound) = (cycles_of(Checkpoints::ByBoundWorker), cycles_of(Checkpoints::ByWorker));
    assert!(bound > unbound + 200_000, "{bound} and {unbound}");
}

#[test]
fn what_the_log_loses_room_for_is_written_in_place() {
    let mut machine = Machine::new(processors(4, true), &small_log(), Allocation::Direct);
    run(&mut machine, &phase(2, 10_000, json!({})));
    // 20,000 inodes, 16 a block, and the blocks of their directories, less what was changed last.
    let written = machine.blocks_written();
    assert!((1_000..3_000).contains(&written.metadata), "{written:?}");
}

#[test]
fn a_thread_that_syncs_waits_for_its_data_and_for_the_log() {
    for (cpus, latency_ns) in [(processors(4, true), 2_000_000), (simple(4), 2_000_000)] {
        let mut machine = Machine::with_drive(cpus, latency_ns, &filesystem(4), Allocation::Direct);
        let results = run(&mut machine, &phase(1, 50, syncing("before_close", 10_000)));
        // Data, then log, one after the other.
        let each = elapsed_ns(&results) / 50;
        assert!((4_000_000..4_400_000).contains(&each), "{each}");
    }
}

#[test]
fn threads_that_sync_share_the_logs_writes() {
    let elapsed = |threads| {
        let cpus = processors(8, true);
        let mut machine = Machine::with_drive(cpus, 2_000_000, &filesystem(8), Allocation::Direct);
        let results = run(&mut machine, &phase(threads, 50, syncing("before_close", 0)));
        elapsed_ns(&results)
    };
    let (one, eight) = (elapsed(1), elapsed(8));
    assert!(eight < 3 * one, "{eight} and {one}");
}

#[test]
fn each_way_of_syncing_leaves_nothing_dirty() {
    for sync in
        ["before_close", "system_then_first", "reverse", "system_then_reverse", "in_order", "system_then_in_order"]
    {
        let mut machine = Machine::new(processors(4, true), &filesystem(4), Allocation::Mapping);
        let results = run(&mut machine, &phase(3, 200, syncing(sync, 20_000)));
        assert_eq!(files(&results), 600);
        assert!(!machine.has_dirty(), "{sync}");
        assert_eq!(machine.delayed_blocks(), 0, "{sync}");
        assert_eq!(machine.blocks_written().data, 600 * 5, "{sync}");
    }
}

#[test]
fn on_simple_cpus_files_are_made_as_fast() {
    let rate = |cpus| {
        let mut machine = Machine::new(cpus, &filesystem(8), Allocation::Direct);
        elapsed_ns(&run(&mut machine, &phase(2, 2_000, json!({}))))
    };
    let (detailed, simple) = (rate(processors(4, true)), rate(simple(4)));
    let ratio = simple as f64 / detailed as f64;
    assert!((0.9..1.0).contains(&ratio), "{ratio}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// However small the log and slow the drive, and whatever is synced: all files are made, nobody sleeps for ever, and
    /// blocks, inodes, requests add up.
    #[test]
    fn nobody_waits_for_the_log_for_ever(
        threads in 1u32..9,
        log_blocks in 512u32..2048,
        log_buffers in 2u32..9,
        latency_ns in prop::sample::select(vec![1_000u64, 300_000, 20_000_000]),
        sync in prop::sample::select(vec!["none", "before_close", "in_order", "system_then_first"]),
        bytes in prop::sample::select(vec![0u64, 5_000, 70_000]),
        keep in any::<bool>(),
        simply in any::<bool>(),
        form in prop::sample::select(vec![Allocation::Direct, Allocation::Workqueue, Allocation::Mapping]),
    ) {
        let spec = XfsSpec { log_blocks, log_buffers, log_bytes_per_create: 40_000, ..filesystem(3) };
        let cpus = if simply { simple(3) } else { processors(3, false) };
        let mut machine = Machine::with_drive(cpus, latency_ns, &spec, form);
        let mut changes = syncing(sync, bytes);
        changes["/job/keep"] = json!(keep);
        for _ in 0..2 {
            let results = run(&mut machine, &phase(threads, 60, changes.clone()));
            prop_assert_eq!(files(&results), u64::from(threads) * 60);
        }
    }
}
