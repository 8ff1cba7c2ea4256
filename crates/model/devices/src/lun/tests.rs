use super::*;
use crate::DeviceSpec;
use crate::trial::{command, mixture, random, run, run_from, run_until_idle, sequential};
use events::time::{MICROSECOND, MILLISECOND};
use proptest::prelude::*;

/// 2 Gb/s, 256 MB, 70 to 120 us at depth 1 (docs/model/sources/disks.md#cached-lun).
fn spec() -> LunSpec {
    LunSpec {
        capacity_bytes: 64 << 30,
        queue_depth: 256,
        adapter_ns: 10_000,
        link_ns: 5_000,
        controller_ns: 40_000,
        controller_commands_per_s: 30_000,
        link_bytes_per_s: 200_000_000,
        cache: LunCache {
            line_bytes: 4096,
            read_bytes: 128 << 20,
            write_bytes: 128 << 20,
            high_percent: 80,
            low_percent: 40,
            idle_flush_ns: 100_000_000,
        },
        back_end: BackEnd {
            access_ns: 6_000_000,
            servers: 6,
            bytes_per_s: 170_000_000,
            holds_server: None,
            write_access_ns: None,
            write_bytes_per_s: None,
        },
        flush_ns: None,
    }
}

fn lun() -> Lun {
    Lun::new(&spec()).unwrap()
}

/// Reads the first 2 MiB; the time at which it has.
fn warm(lun: &mut Lun) -> Time {
    run(lun, &sequential(Direction::Read, 0, 16, 256), 1).took
}

/// 4 KiB in a 2 MB range: 13,000 a second on each port, 77 us at depth 1 (seed 000, derived).
#[test]
fn small_reads_in_a_small_range_come_from_the_cache_in_some_70_us() {
    let mut lun = lun();
    let from = warm(&mut lun);
    let hits = run_from(&mut lun, from, &[&random(Direction::Read, 5000, 4096)], 1);
    assert!((70 * MICROSECOND..80 * MICROSECOND).contains(&hits.latencies().max().unwrap()));
}

#[test]
fn the_controller_limits_commands_and_the_link_bytes() {
    let mut lun = lun();
    let from = warm(&mut lun);
    let small = run_from(&mut lun, from, &[&random(Direction::Read, 20_000, 4096)], 64);
    assert!((29_000.0..31_000.0).contains(&small.iops()), "{}", small.iops());
    let large: Vec<Command> = (0..2000).map(|n| command(Direction::Read, n % 4 * 512, 512)).collect();
    let from = from + small.took;
    let large = run_from(&mut lun, from, &[&large], 64).rate_bytes_per_s();
    assert!((195e6..201e6).contains(&large), "{large}");
}

#[test]
fn random_reads_go_as_deep_as_there_are_spindles() {
    let reads = random(Direction::Read, 2000, 64 << 21);
    let iops = |depth| run(&mut lun(), &reads, depth).iops();
    assert!((150.0..170.0).contains(&iops(1)));
    assert!((900.0..1010.0).contains(&iops(6)));
    assert!((980.0..1010.0).contains(&iops(32)));
}

#[test]
fn writes_are_fast_until_the_cache_is_full_and_then_as_fast_as_the_back_end() {
    let mut lun = lun();
    let writes = sequential(Direction::Write, 0, 4096, 256);
    let run = run(&mut lun, &writes, 16);
    let quick = run.latencies().filter(|&latency| latency < 12 * MILLISECOND).count();
    assert!((900..3500).contains(&quick), "{quick}");
    let rate = run.rate_bytes_per_s();
    assert!((120e6..190e6).contains(&rate), "{rate}");
    run_until_idle(&mut lun);
}

/// A worker that copies: commands one after the other, each with its bytes; another rate for writes; a flush in turn.
#[test]
fn an_access_that_holds_its_server_takes_its_time_and_that_of_its_bytes() {
    let mut spec = spec();
    (spec.cache.read_bytes, spec.cache.write_bytes) = (0, 0);
    (spec.controller_commands_per_s, spec.link_bytes_per_s) = (1_000_000_000, 100_000_000_000);
    (spec.adapter_ns, spec.link_ns, spec.controller_ns) = (20_000, 0, 0);
    spec.flush_ns = Some(3_000_000);
    spec.back_end = BackEnd {
        access_ns: 4_000,
        servers: 1,
        bytes_per_s: 4_096_000_000,
        holds_server: Some(true),
        write_access_ns: Some(6_000),
        write_bytes_per_s: Some(2_048_000_000),
    };
    let iops = |direction, sectors, depth| {
        let commands: Vec<Command> =
            (0..2000).map(|number| command(direction, number * u64::from(sectors), sectors)).collect();
        run(&mut Lun::new(&spec).unwrap(), &commands, depth).iops()
    };
    for (direction, sectors, depth, each_ns) in [
        (Direction::Read, 8, 1, 25_000.0),
        (Direction::Read, 8, 32, 5_000.0),
        (Direction::Read, 128, 32, 20_000.0),
        (Direction::Write, 8, 32, 8_000.0),
        (Direction::Write, 128, 32, 38_000.0),
    ] {
        let found = 1e9 / iops(direction, sectors, depth);
        assert!((found / each_ns - 1.0).abs() < 0.03, "{found} {each_ns}");
    }
    let mut lun = Lun::new(&spec).unwrap();
    assert!(DeviceSpec::Lun(spec).identity().unwrap().volatile_cache);
    assert!(lun.flush(0, 7) && lun.flush(0, 8));
    let mut completed = Vec::new();
    lun.advance(3_000_000, &mut completed);
    assert_eq!(completed.len(), 1);
    assert_eq!(lun.next_event(), Some(6_000_000));
}

#[test]
fn what_is_impossible_names_its_key() {
    let key = |change: fn(&mut LunSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Lun::new(&spec).unwrap_err().key
    };
    assert_eq!(key(|spec| spec.capacity_bytes = 0), "capacity_bytes");
    assert_eq!(key(|spec| spec.cache.write_bytes = 5), "cache.write_bytes");
    assert_eq!(key(|spec| spec.cache.low_percent = 90), "cache.low_percent");
    assert_eq!(key(|spec| spec.back_end.servers = 0), "back_end.servers");
    assert_eq!(key(|spec| spec.controller_commands_per_s = 0), "controller_commands_per_s");
    assert_eq!(key(|spec| spec.adapter_ns = u64::MAX), "adapter_ns");
    assert_eq!(key(|spec| spec.back_end.write_access_ns = Some(1)), "back_end.write_access_ns");
}

proptest! {
    #[test]
    fn every_command_completes_once_and_nothing_is_lost(
        kinds in prop::collection::vec((any::<u8>(), 0u64..3000, 1u32..300), 1..100),
        depth in 1usize..40,
        write_lines in 0u64..100,
        read_lines in 0u64..100,
    ) {
        let mut spec = spec();
        spec.cache.write_bytes = write_lines * 4096;
        spec.cache.read_bytes = read_lines * 4096;
        let commands = mixture(&kinds, 10_000);
        let mut first = Lun::new(&spec).unwrap();
        let result = run(&mut first, &commands, depth);
        run_until_idle(&mut first);
        prop_assert_eq!(result, run(&mut Lun::new(&spec).unwrap(), &commands, depth));
    }
}
