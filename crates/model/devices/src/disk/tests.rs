use super::*;
use crate::trial::{command, mixture, random, run, run_from, run_streams, run_until_idle, sequential};
use events::time::{MICROSECOND, MILLISECOND, SECOND};
use proptest::prelude::*;

fn with(change: impl FnOnce(&mut DiskSpec)) -> Disk {
    let mut spec = test_disk();
    change(&mut spec);
    Disk::new(&spec).unwrap()
}

#[test]
fn a_random_read_takes_overhead_seek_half_a_turn_and_its_transfer() {
    let mut disk = with(|_| ());
    let mean = run(&mut disk, &random(Direction::Read, 2000, 52_000), 1).mean_ns();
    // 0.1 + 4.5..5 + 5 + 0.9 ms.
    assert!((10_200_000..11_200_000).contains(&mean), "{mean}");
}

#[test]
fn with_a_turnaround_a_revolution_serves_as_many_small_gaps_as_the_queue_has_commands() {
    // Every other piece of ten sectors, 1 ms of a revolution of 10 ms; 50 of them take 100 ms if none is missed.
    let writes: Vec<_> = (0..50).map(|n| command(Direction::Write, n * 20, 10)).collect();
    let took = |turnaround_ns, depth| {
        let mut disk = with(|spec| {
            spec.turnaround_ns = turnaround_ns;
            spec.queue.depth = depth;
        });
        run(&mut disk, &writes, depth as usize).took / MILLISECOND
    };
    assert!((100..130).contains(&took(0, 2)), "{}", took(0, 2));
    // The next piece passes 1 ms after the last: 1.5 ms miss it, so that of two only one is reached a time.
    assert!(took(1_500_000, 2) > 200, "{}", took(1_500_000, 2));
    assert!(took(1_500_000, 8) < took(1_500_000, 2));
    let whole = vec![command(Direction::Write, 0, 50), command(Direction::Write, 50, 50)];
    let streams = run(&mut with(|spec| spec.turnaround_ns = 1_500_000), &whole, 2).took;
    assert_eq!(streams, run(&mut with(|_| ()), &whole, 2).took);
}

#[test]
fn a_deeper_queue_shortens_the_way() {
    let reads = random(Direction::Read, 2000, 52_000);
    let one = run(&mut with(|_| ()), &reads, 1).took;
    let deep = run(&mut with(|_| ()), &reads, 32).took;
    let in_order = run(&mut with(|spec| spec.queue.order = Order::FirstCome), &reads, 32).took;
    assert!(deep * 3 < one * 2, "{deep} {one}");
    assert!(in_order * 10 > one * 9, "{in_order} {one}");
}

#[test]
fn sequential_reads_stream_at_the_rate_of_their_zone() {
    for (first, sectors_per_track) in [(0, 100), (20_000, 80)] {
        let mut disk = with(|_| ());
        let took = run(&mut disk, &sequential(Direction::Read, first, 500, 8), 1).took;
        let turns = 4000.0 / f64::from(sectors_per_track);
        // A turn of 10 ms, and a switch of at most 1.6 ms a track.
        let (least, most) = (turns * 10e6, turns * 11.6e6 + 20e6);
        assert!((least..most).contains(&(took as f64)), "{took}");
    }
}

#[test]
fn small_writes_through_to_the_medium_cost_a_revolution_each() {
    let mut disk = with(|_| ());
    let mean = run(&mut disk, &sequential(Direction::Write, 0, 200, 8), 1).mean_ns();
    assert!((10 * MILLISECOND..12 * MILLISECOND).contains(&mean), "{mean}");
}

#[test]
fn a_write_cache_acknowledges_at_once_until_it_is_full() {
    let mut disk = with(|spec| spec.cache.write_back = true);
    let written = run(&mut disk, &random(Direction::Write, 500, 52_000), 1);
    let quick = written.latencies().filter(|&latency| latency < MILLISECOND).count();
    assert!((50..500).contains(&quick), "{quick}");
    assert!(disk.dirty_sectors() > 0);
    run_until_idle(&mut disk);
}

#[test]
fn hits_take_turns_however_many_commands_the_disk_has() {
    let took_ns = |depth| {
        let mut disk = with(|spec| {
            spec.cache.write_back = true;
            spec.hit_write_ns = 100 * MICROSECOND;
        });
        run(&mut disk, &sequential(Direction::Write, 0, 20, 1), depth).took
    };
    let alone = took_ns(1);
    assert!(took_ns(16) * 10 > alone * 9, "{} {alone}", took_ns(16));
    assert!(alone >= 20 * 100 * MICROSECOND, "{alone}");
}

#[test]
fn a_written_sector_is_not_read_from_an_old_segment() {
    let mut disk = with(|_| ());
    let commands = [command(Direction::Read, 0, 8), command(Direction::Write, 0, 8), command(Direction::Read, 0, 8)];
    let run = run(&mut disk, &commands, 1);
    assert!(run.latency_of(2) > MILLISECOND, "{run:?}");
}

#[test]
fn the_nearest_first_does_not_starve_what_is_far_away() {
    let mut stream = base::rng::stream(2, 0);
    let mut reads: Vec<Command> = (0..3000).map(|_| command(Direction::Read, stream.below(50) * 8, 8)).collect();
    // Not the first: that finds the disk idle.
    reads[5].start = 51_000;
    let of_far = |age_limit_ns: u64| {
        let mut disk = with(|spec| {
            spec.cache.segments = 0;
            spec.queue.age_limit_ns = age_limit_ns;
        });
        run(&mut disk, &reads, 32).latency_of(5)
    };
    assert!(of_far(100 * MILLISECOND) < 500 * MILLISECOND);
    assert!(of_far(100 * SECOND) > of_far(100 * MILLISECOND));
}

#[test]
fn commands_in_the_queue_stream_without_losing_a_revolution() {
    for (direction, read_ahead_sectors) in [(Direction::Read, 200), (Direction::Read, 0), (Direction::Write, 0)] {
        let mut disk = with(|spec| spec.cache.read_ahead_sectors = read_ahead_sectors);
        let took = run(&mut disk, &sequential(direction, 0, 200, 20), 4).took;
        // 40 tracks of 10 ms, switches of 1.5 ms between them.
        assert!((400 * MILLISECOND..470 * MILLISECOND).contains(&took), "{direction:?} {read_ahead_sectors} {took}");
    }
}

#[test]
fn a_read_larger_than_the_read_ahead_continues_it() {
    let mut disk = with(|spec| spec.cache.read_ahead_sectors = 20);
    let took = run(&mut disk, &sequential(Direction::Read, 0, 40, 100), 1).took;
    assert!(took < 470 * MILLISECOND, "{took}");
}

#[test]
fn nothing_is_read_ahead_for_free_after_a_pause() {
    let mut disk = with(|_| ());
    run(&mut disk, &[command(Direction::Read, 0, 8)], 1);
    let mut ended = Vec::new();
    let pause = 10 * SECOND;
    // The first is in the cache; behind it the disk has to read on, a revolution and a half for 600 sectors more.
    disk.submit(pause, command(Direction::Read, 200, 8));
    disk.submit(pause, command(Direction::Read, 600, 8));
    let mut now = pause;
    while ended.len() < 2 {
        now = disk.next_event().unwrap();
        disk.advance(now, &mut ended);
    }
    assert!(now - pause > 8 * MILLISECOND, "{}", now - pause);
}

#[test]
fn two_interleaved_streams_are_slower_than_one() {
    let (first, second) = (sequential(Direction::Read, 0, 300, 8), sequential(Direction::Read, 30_000, 300, 8));
    let one = run(&mut with(|_| ()), &first, 1).rate_bytes_per_s();
    let two = run_streams(&mut with(|_| ()), &[&first, &second], 1).rate_bytes_per_s();
    assert!(two * 3.0 < one, "{two} {one}");
}

#[test]
fn a_minimum_is_read_ahead_whatever_waits() {
    let took = |least| {
        let streams = [0, 30_000].map(|from| sequential(Direction::Read, from, 200, 8));
        let mut disk = with(|spec| spec.cache.read_ahead_min_sectors = least);
        run_streams(&mut disk, &[&streams[0], &streams[1]], 1).took
    };
    // Each visit then brings the next six blocks too, at the price of half a revolution.
    assert!(took(48) * 2 < took(0), "{} {}", took(48), took(0));
}

#[test]
fn a_promise_from_the_read_ahead_keeps_the_arm() {
    let mut disk = with(|_| ());
    run(&mut disk, &[command(Direction::Read, 0, 8)], 1);
    let now = 10 * MILLISECOND;
    disk.submit(now, Command { tag: 1, ..command(Direction::Read, 180, 8) });
    disk.submit(now, Command { tag: 2, ..command(Direction::Read, 40_000, 8) });
    let mut ended = Vec::new();
    while ended.is_empty() {
        let at = disk.next_event().unwrap();
        disk.advance(at, &mut ended);
    }
    assert_eq!(ended[0].tag, 1);
}

#[test]
fn reads_are_served_while_writes_wait_for_room() {
    let mut disk = with(|spec| spec.cache.write_back = true);
    let (reads, writes) = (random(Direction::Read, 50, 52_000), random(Direction::Write, 2000, 52_000));
    let both = run_streams(&mut disk, &[&reads, &writes], 16);
    let last_read = both.completed.iter().position(|&(number, _)| number == 49).unwrap();
    assert!(last_read < 1500, "{last_read}");
}

/// What lies in the cache keeps nobody waiting: a read competes with the write that waits for room, not with what that
/// write waits behind.
#[test]
fn a_full_write_cache_starves_no_reads_whatever_the_order() {
    for order in [Order::FirstCome, Order::ShortestPositioning] {
        let mut disk = with(|spec| {
            spec.cache.write_back = true;
            spec.cache.dirty_sectors_max = 8_000;
            spec.queue.order = order;
        });
        // A thousand extents, of which the last have lain there for seconds.
        let fill = random(Direction::Write, 1500, 52_000);
        let filled = run(&mut disk, &fill, 4).took;
        let (reads, writes) = (random(Direction::Read, 100, 52_000), random(Direction::Write, 400, 52_000));
        let both = run_from(&mut disk, filled, &[&reads, &writes], 5);
        let last_read = both.completed.iter().position(|&(number, _)| number == 99).unwrap();
        assert!(last_read < 350, "{order:?}: {last_read}");
    }
}

/// The 20 against 0.5 MB/s of the second machine: 4 KiB at every second place, a revolution each.
#[test]
fn every_second_block_written_through_at_7200_rpm_is_half_a_megabyte_a_second() {
    let spec = |write_back| {
        let mut spec = test_disk();
        spec.revolutions_per_minute = 7200;
        spec.zones[0].sectors_per_track = 600;
        // Longer than the gap takes to pass.
        spec.command_write_ns = 300_000;
        spec.cache.write_back = write_back;
        spec.cache.dirty_sectors_max = 16_384;
        spec
    };
    let writes: Vec<Command> = (0..500).map(|n| command(Direction::Write, n * 16, 8)).collect();
    let through = run(&mut Disk::new(&spec(false)).unwrap(), &writes, 1).rate_bytes_per_s();
    let cached = run(&mut Disk::new(&spec(true)).unwrap(), &writes, 1).rate_bytes_per_s();
    assert!((0.45e6..0.55e6).contains(&through), "{through}");
    assert!(cached > 10.0 * through, "{cached}");
}

#[test]
fn what_is_impossible_names_its_key() {
    let key = |change: fn(&mut DiskSpec)| {
        let mut spec = test_disk();
        change(&mut spec);
        Disk::new(&spec).unwrap_err().key
    };
    assert_eq!(key(|spec| spec.surfaces = 0), "surfaces");
    assert_eq!(key(|spec| spec.zones.clear()), "zones");
    assert_eq!(key(|spec| spec.zones[1].sectors_per_track = 0), "zones.1.sectors_per_track");
    assert_eq!(key(|spec| spec.zones[1].cylinders = u32::MAX), "zones.1.cylinders");
    assert_eq!(key(|spec| spec.seeks.clear()), "seeks");
    assert_eq!(key(|spec| spec.seeks[1].time_ns = 0), "seeks.1");
    assert_eq!(key(|spec| spec.head_switch_ns = u64::MAX), "head_switch_ns");
    assert_eq!(key(|spec| spec.cache.read_ahead_sectors = 201), "cache.read_ahead_sectors");
    assert_eq!(key(|spec| spec.queue.depth = 0), "queue.depth");
    assert_eq!(key(|spec| spec.queue.age_limit_ns = 0), "queue.age_limit_ns");
}

proptest! {
    #[test]
    fn every_command_completes_once_and_nothing_is_lost(
        kinds in prop::collection::vec((any::<u8>(), 0u64..51_900, 1u32..300), 1..80),
        depth in 1usize..32,
        write_back: bool,
        segments in 0u32..5,
    ) {
        let disk = || with(|spec| {
            spec.cache.write_back = write_back;
            spec.cache.segments = segments;
        });
        let commands = mixture(&kinds, 52_000);
        let mut first = disk();
        let result = run(&mut first, &commands, depth);
        run_until_idle(&mut first);
        prop_assert_eq!(result, run(&mut disk(), &commands, depth), "the same input, the same output");
    }
}
