use super::*;
use crate::disk::test_disk;
use crate::trial::{command, mixture, random, run, run_from, run_streams, run_until_idle, sequential};
use events::time::{MILLISECOND, SECOND};
use proptest::prelude::*;

/// Five small disks as RAID 5 of 4+1, chunks of 8 KiB, 1 ms to the cache and back.
fn spec() -> ArraySpec {
    ArraySpec {
        queue_depth: 256,
        layout: LayoutSpec {
            level: Level::Raid5,
            disks: 5,
            groups: 1,
            stripe_disks: 5,
            chunk_bytes: 8192,
            extent_stripes: 1,
        },
        controller: ControllerSpec {
            controllers: 2,
            command_ns: 50_000,
            latency_ns: 100_000,
            port_bytes_per_s: 100_000_000,
        },
        cache: ArrayCache {
            line_bytes: 4096,
            read_bytes: 4 << 20,
            streams: 4,
            stream_after_commands: 2,
            prefetch_bytes: 256 << 10,
            write_bytes: 1 << 20,
            high_percent: 80,
            low_percent: 20,
            dirty_ns_max: SECOND,
            destages_max: 8,
            mirror: None,
        },
        disk: test_disk(),
    }
}

fn with(change: impl FnOnce(&mut ArraySpec)) -> Array {
    let mut spec = spec();
    change(&mut spec);
    Array::new(&spec).unwrap()
}

fn uncached() -> Array {
    with(|spec| {
        spec.cache.read_bytes = 0;
        spec.cache.prefetch_bytes = 0;
        spec.cache.write_bytes = 0;
    })
}

#[test]
fn a_hit_takes_latency_and_controller_and_port() {
    let mut array = with(|_| ());
    let reads = [command(Direction::Read, 0, 8), command(Direction::Read, 0, 8)];
    let run = run(&mut array, &reads, 1);
    assert_eq!(run.latency_of(1), 100_000 + 50_000 + 40_960);
}

#[test]
fn random_reads_go_as_deep_as_there_are_disks() {
    let reads = random(Direction::Read, 2000, 200_000);
    let iops = |depth| run(&mut uncached(), &reads, depth).iops();
    let (one, eight, deep) = (iops(1), iops(8), iops(128));
    assert!((85.0..105.0).contains(&one), "{one}");
    assert!(eight > 3.0 * one, "{eight}");
    assert!(deep > 5.0 * one, "{deep}");
}

/// Small writes: old data and parity are read, new ones written; four accesses instead of one.
#[test]
fn a_small_write_costs_raid_5_four_accesses_and_a_full_stripe_five_for_four_chunks() {
    let mut array = uncached();
    run(&mut array, &random(Direction::Write, 500, 200_000), 1);
    assert_eq!(array.disk_accesses(), 4 * 500);
    let mut array = uncached();
    run(&mut array, &sequential(Direction::Write, 0, 100, 64), 1);
    assert_eq!(array.disk_accesses(), 5 * 100);
}

#[test]
fn small_writes_to_raid_5_are_a_quarter_as_fast_as_reads() {
    let reads = run(&mut uncached(), &random(Direction::Read, 3000, 200_000), 128).iops();
    let writes = run(&mut uncached(), &random(Direction::Write, 3000, 200_000), 128).iops();
    assert!((3.0..5.5).contains(&(reads / writes)), "{reads} {writes}");
}

#[test]
fn the_cache_makes_full_stripes_of_small_sequential_writes() {
    let mut array = with(|_| ());
    let writes = sequential(Direction::Write, 0, 800, 8);
    run(&mut array, &writes, 4);
    run_until_idle(&mut array);
    // 100 stripes of 64 sectors.
    assert_eq!(array.disk_accesses(), 5 * 100);
}

#[test]
fn writes_are_acknowledged_from_the_cache_until_it_is_full() {
    let mut array = with(|_| ());
    let run = run(&mut array, &random(Direction::Write, 1000, 200_000), 4);
    let quick = run.latencies().filter(|&latency| latency < MILLISECOND).count();
    assert!((200..999).contains(&quick), "{quick}");
    assert!(run.latencies().max().unwrap() > 5 * MILLISECOND);
    run_until_idle(&mut array);
}

#[test]
fn destaging_waits_for_the_high_mark_and_ends_at_the_low_one() {
    let mut array = with(|spec| spec.cache.dirty_ns_max = 100 * SECOND / 10);
    let filled = run(&mut array, &random(Direction::Write, 180, 200_000), 4);
    assert_eq!(array.disk_accesses(), 0);
    let more = run_from(&mut array, filled.took, &[&random(Direction::Write, 60, 100_000)], 4);
    assert!(array.disk_accesses() > 0);
    let mut now = filled.took + more.took;
    while array.dirty_sectors() > 500 && now < 9 * SECOND {
        now = array.next_event().unwrap();
        array.advance(now, &mut Vec::new());
    }
    assert!((350..=500).contains(&array.dirty_sectors()), "{}", array.dirty_sectors());
    run_until_idle(&mut array);
}

#[test]
fn a_stream_is_fetched_ahead_and_random_reads_are_not() {
    let reads = sequential(Direction::Read, 0, 500, 64);
    let rate = |streams| {
        let mut array = with(|spec| {
            spec.cache.streams = streams;
            // The disks would do the same by themselves.
            spec.disk.cache.segments = 0;
        });
        run(&mut array, &reads, 1).rate_bytes_per_s()
    };
    let (ahead, not_ahead) = (rate(4), rate(0));
    assert!(ahead > 2.0 * not_ahead, "{ahead} {not_ahead}");
    let mut array = with(|_| ());
    run(&mut array, &random(Direction::Read, 300, 200_000), 1);
    assert!(array.disk_accesses() <= 300);
}

#[test]
fn more_streams_than_it_recognises_are_slower() {
    let stream = |number: u64| sequential(Direction::Read, number * 20_000, 200, 64);
    let streams: Vec<Vec<Command>> = (0..8).map(stream).collect();
    let streams: Vec<&[Command]> = streams.iter().map(Vec::as_slice).collect();
    let few = run_streams(&mut with(|_| ()), &streams[..4], 1).rate_bytes_per_s();
    let many = run_streams(&mut with(|_| ()), &streams, 1).rate_bytes_per_s();
    assert!(many < few, "{many} {few}");
}

#[test]
fn two_streams_on_raid_1_have_a_disk_each() {
    let rate = |count: usize| {
        let mut array = with(|spec| {
            spec.layout.level = Level::Raid1;
            (spec.layout.disks, spec.layout.stripe_disks) = (2, 2);
            spec.cache.read_bytes = 0;
            spec.cache.prefetch_bytes = 0;
        });
        let stream = |number: u64| sequential(Direction::Read, number * 4_000, 50, 64);
        let streams: Vec<Vec<Command>> = (0..count as u64).map(stream).collect();
        let streams: Vec<&[Command]> = streams.iter().map(Vec::as_slice).collect();
        run_streams(&mut array, &streams, 1).rate_bytes_per_s()
    };
    let (one, two) = (rate(1), rate(2));
    assert!(two > 1.8 * one, "{two} {one}");
}

#[test]
fn mirroring_costs_its_link() {
    let mirror = Some(MirrorSpec { latency_ns: 30_000, bytes_per_s: 50_000_000 });
    let write = [command(Direction::Write, 0, 8)];
    let alone = run(&mut with(|_| ()), &write, 1).took;
    let mirrored = run(&mut with(|spec| spec.cache.mirror = mirror), &write, 1).took;
    assert_eq!(mirrored - alone, 30_000 + 81_920);
}

#[test]
fn what_is_impossible_names_its_key() {
    let key = |change: fn(&mut ArraySpec)| {
        let mut spec = spec();
        change(&mut spec);
        Array::new(&spec).unwrap_err().key
    };
    assert_eq!(key(|spec| spec.layout.disks = 0), "layout.disks");
    assert_eq!(key(|spec| spec.layout.groups = 2), "layout.groups");
    assert_eq!(key(|spec| spec.layout.stripe_disks = 6), "layout.stripe_disks");
    assert_eq!(key(|spec| spec.layout.chunk_bytes = 0), "layout.chunk_bytes");
    assert_eq!(key(|spec| spec.layout.extent_stripes = 1 << 20), "layout.extent_stripes");
    assert_eq!(key(|spec| spec.controller.controllers = 0), "controller.controllers");
    assert_eq!(key(|spec| spec.cache.line_bytes = 16_384), "cache.line_bytes");
    assert_eq!(key(|spec| spec.cache.prefetch_bytes = 1 << 40), "cache.prefetch_bytes");
    assert_eq!(key(|spec| spec.disk.surfaces = 0), "disk.surfaces");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_command_completes_once_and_nothing_is_lost(
        kinds in prop::collection::vec((any::<u8>(), 0u64..70_000, 1u32..300), 1..100),
        depth in 1usize..40,
        level in prop::sample::select(vec![Level::Raid0, Level::Raid1, Level::Raid5]),
        (read_cache, write_cache, disk_cache) in any::<(bool, bool, bool)>(),
        disks in 3u32..8,
    ) {
        let array = || with(|spec| {
            spec.layout.level = level;
            spec.layout.disks = disks;
            spec.layout.stripe_disks = if level == Level::Raid1 { 2 } else { 3 };
            spec.disk.cache.write_back = disk_cache;
            spec.disk.queue.depth = 4;
            spec.cache.write_bytes *= u64::from(write_cache);
            spec.cache.read_bytes *= u64::from(read_cache);
            spec.cache.prefetch_bytes *= u64::from(read_cache);
        });
        let commands = mixture(&kinds, 70_000);
        let mut first = array();
        let result = run(&mut first, &commands, depth);
        run_until_idle(&mut first);
        prop_assert_eq!(result, run(&mut array(), &commands, depth));
    }
}

/// What it keeps between commands does not grow with simulated time.
#[test]
fn memory_is_bounded_by_what_is_in_flight() {
    let mut array = with(|spec| spec.cache.write_bytes = 64 << 10);
    let mut stream = base::rng::stream(3, 0);
    let kinds: Vec<(u8, u64, u32)> = (0..2000).map(|_| (stream.below(4) as u8, stream.below(190_000), 8)).collect();
    let commands = mixture(&kinds, 200_000);
    let mut from = 0;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        from += run_from(&mut array, from, &[&commands], 64).took;
        jobs.push(array.jobs.len());
        assert!(array.lines.len() <= 1024 && array.events.len() <= 256);
    }
    assert!(jobs[3] <= jobs[0] + 8, "{jobs:?}");
}
