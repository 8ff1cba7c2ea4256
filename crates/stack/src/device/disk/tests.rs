use super::*;
use crate::time::{MILLISECOND, SECOND};
use proptest::prelude::*;

/// Commands one after the other at a depth: how long all of them took, and each one's latency in order of completion.
fn run(disk: &mut Disk, commands: &[Command], depth: usize) -> (Time, Vec<(u32, Time)>) {
    let (mut now, mut next, mut inside) = (0, 0, 0);
    let mut submitted = vec![0; commands.len()];
    let (mut latencies, mut completed) = (Vec::new(), Vec::new());
    while latencies.len() < commands.len() {
        while inside < depth && next < commands.len() {
            submitted[next] = now;
            disk.submit(
                now,
                Command {
                    tag: next as u32,
                    ..commands[next]
                },
            );
            next += 1;
            inside += 1;
        }
        now = disk.next_event().expect("something is outstanding");
        disk.advance(now, &mut completed);
        for done in completed.drain(..) {
            latencies.push((done.tag, now - submitted[done.tag as usize]));
            inside -= 1;
        }
    }
    (now, latencies)
}

fn at(direction: Direction, start: Sector, sectors: u32) -> Command {
    Command {
        tag: 0,
        direction,
        start,
        sectors,
        force_unit_access: false,
    }
}

fn random(direction: Direction, count: usize, sectors_max: Sector) -> Vec<Command> {
    let mut stream = workload::rng::stream(1, 0);
    (0..count)
        .map(|_| at(direction, stream.below(sectors_max / 8 - 1) * 8, 8))
        .collect()
}

fn with(change: impl FnOnce(&mut DiskSpec)) -> Disk {
    let mut spec = test_disk();
    change(&mut spec);
    Disk::new(&spec).unwrap()
}

#[test]
fn a_random_read_takes_overhead_seek_half_a_turn_and_its_transfer() {
    let mut disk = with(|_| ());
    let (took, _) = run(&mut disk, &random(Direction::Read, 2000, 52_000), 1);
    let mean = took / 2000;
    // 0.1 + 4.5..5 + 5 + 0.9 ms.
    assert!((10_200_000..11_200_000).contains(&mean), "{mean}");
}

#[test]
fn a_deeper_queue_shortens_the_way() {
    let reads = random(Direction::Read, 2000, 52_000);
    let one = run(&mut with(|_| ()), &reads, 1).0;
    let deep = run(&mut with(|_| ()), &reads, 32).0;
    let in_order = run(
        &mut with(|spec| spec.queue.order = Order::FirstCome),
        &reads,
        32,
    )
    .0;
    assert!(deep * 3 < one * 2, "{deep} {one}");
    assert!(in_order * 10 > one * 9, "{in_order} {one}");
}

#[test]
fn sequential_reads_stream_at_the_rate_of_their_zone() {
    for (first, sectors_per_track) in [(0, 100), (20_000, 80)] {
        let mut disk = with(|_| ());
        let reads: Vec<Command> = (0..500)
            .map(|n| at(Direction::Read, first + n * 8, 8))
            .collect();
        let (took, _) = run(&mut disk, &reads, 1);
        let turns = 4000.0 / f64::from(sectors_per_track);
        // A turn of 10 ms, and a switch of at most 1.6 ms a track.
        let (least, most) = (turns * 10e6, turns * 11.6e6 + 20e6);
        assert!((least..most).contains(&(took as f64)), "{took}");
    }
}

#[test]
fn small_writes_through_to_the_medium_cost_a_revolution_each() {
    let mut disk = with(|_| ());
    let writes: Vec<Command> = (0..200).map(|n| at(Direction::Write, n * 8, 8)).collect();
    let mean = run(&mut disk, &writes, 1).0 / 200;
    assert!(
        (10 * MILLISECOND..12 * MILLISECOND).contains(&mean),
        "{mean}"
    );
}

#[test]
fn a_write_cache_acknowledges_at_once_until_it_is_full() {
    let mut disk = with(|spec| spec.cache.write_back = true);
    let (_, latencies) = run(&mut disk, &random(Direction::Write, 500, 52_000), 1);
    let quick = latencies
        .iter()
        .filter(|(_, latency)| *latency < MILLISECOND)
        .count();
    assert!((50..500).contains(&quick), "{quick}");
    let end = 10 * SECOND;
    disk.advance(end, &mut Vec::new());
    while let Some(at) = disk.next_event() {
        disk.advance(at, &mut Vec::new());
    }
    assert_eq!(
        disk.dirty_sectors(),
        0,
        "what was acknowledged gets to the medium"
    );
}

#[test]
fn a_written_sector_is_not_read_from_an_old_segment() {
    let mut disk = with(|_| ());
    let commands = [
        at(Direction::Read, 0, 8),
        at(Direction::Write, 0, 8),
        at(Direction::Read, 0, 8),
    ];
    let (_, latencies) = run(&mut disk, &commands, 1);
    assert!(latencies[2].1 > MILLISECOND, "{latencies:?}");
}

#[test]
fn the_nearest_first_does_not_starve_what_is_far_away() {
    let mut disk = with(|spec| spec.queue.age_limit_ns = 100 * MILLISECOND);
    let mut reads = vec![at(Direction::Read, 51_000, 8)];
    let mut stream = workload::rng::stream(2, 0);
    reads.extend((0..3000).map(|_| at(Direction::Read, stream.below(50) * 8, 8)));
    let (_, latencies) = run(&mut with(|spec| spec.cache.segments = 0), &reads, 32);
    let (_, bounded) = run(&mut disk, &reads, 32);
    let of_first = |all: &[(u32, Time)]| all.iter().find(|(tag, _)| *tag == 0).unwrap().1;
    assert!(of_first(&bounded) < 500 * MILLISECOND);
    assert!(of_first(&latencies) >= of_first(&bounded));
}

proptest! {
    #[test]
    fn every_command_completes_once(
        kinds in prop::collection::vec((any::<bool>(), 0u64..51_900, 1u32..300, any::<bool>()), 1..80),
        depth in 1usize..32,
        write_back: bool,
        segments in 0u32..5,
    ) {
        let mut disk = with(|spec| {
            spec.cache.write_back = write_back;
            spec.cache.segments = segments;
        });
        let commands: Vec<Command> = kinds
            .iter()
            .map(|&(read, start, sectors, force_unit_access)| Command {
                force_unit_access,
                ..at(if read { Direction::Read } else { Direction::Write }, start, sectors.min(100))
            })
            .collect();
        let (_, latencies) = run(&mut disk, &commands, depth);
        let mut tags: Vec<u32> = latencies.iter().map(|&(tag, _)| tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..commands.len() as u32).collect::<Vec<_>>());
        let mut ended = Vec::new();
        while let Some(at) = disk.next_event() {
            disk.advance(at, &mut ended);
        }
        prop_assert!(ended.is_empty());
        prop_assert_eq!(disk.dirty_sectors(), 0);
    }
}
