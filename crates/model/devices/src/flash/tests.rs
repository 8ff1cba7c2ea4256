use super::*;
use crate::DeviceSpec;
use crate::flash::skew::{SkewSpec, WrittenSize, WrittenZone};
use crate::trial::{command, mixture, random, run, run_from, run_streams, run_until_idle, sequential};
use events::time::{MICROSECOND, MILLISECOND};
use proptest::prelude::*;

/// Four channels of two dies of two planes, 64 blocks of 32 pages of 8 KiB: 256 MiB, a fifth of it spare.
fn spec() -> FlashSpec {
    FlashSpec {
        queue_depth: 256,
        geometry: Geometry {
            channels: 4,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 64,
            pages_per_block: 32,
            page_bytes: 8192,
            over_provision_per_mille: 200,
        },
        timing: Timing {
            page_read_ns: 75_000,
            page_program_ns: 750_000,
            block_erase_ns: 3_800_000,
            channel_bytes_per_s: 333_000_000,
            suspend: None,
            cache_register: None,
        },
        firmware: Firmware {
            command_ns: 5_000,
            write_ns: None,
            stall: None,
            cores: 2,
            unit_bytes: 4096,
            buffer_bytes: 1 << 20,
            power_loss_protection: None,
            reports_write_cache: None,
            flush_ns: None,
            buffer_ns_max: 10_000_000,
            collect_per_mille: 50,
            collect_only_per_mille: 5,
            collector: None,
            collect_window_per_mille: None,
            read_first: true,
            filled: true,
            steady: None,
            steady_block_bytes: None,
            steady_stride_bytes: None,
        },
        interface: Interface { bytes_per_s: 1_000_000_000, command_ns: None, half_duplex: false, coalesce: None },
        slc: None,
        skew: None,
        thermal: None,
        placement: None,
    }
}

/// With a cache of 12 blocks a plane, a quarter as large as others.
fn with_slc(idle_ns: u64) -> Flash {
    with(|spec| {
        spec.geometry.over_provision_per_mille = 300;
        spec.slc = Some(SlcCache { blocks_per_plane: 12, bits_per_cell: 4, page_program_ns: 150_000, idle_ns });
    })
}

fn with(change: impl FnOnce(&mut FlashSpec)) -> Flash {
    let mut spec = spec();
    change(&mut spec);
    Flash::new(&spec).unwrap()
}

fn sectors() -> Sector {
    with(|_| ()).sectors()
}

#[test]
fn a_read_takes_firmware_and_flash_and_channel_and_interface() {
    let run = run(&mut with(|_| ()), &random(Direction::Read, 200, sectors()), 1);
    // 5 + 75 + 12.3 + 4.1 us.
    assert!(run.latencies().all(|latency| latency.abs_diff(96_396) < 10));
}

#[test]
fn frames_of_a_command_hold_the_link_and_a_write_needs_more_firmware_than_a_read() {
    let latency = |direction, change: fn(&mut FlashSpec)| {
        let commands = random(direction, 50, sectors());
        run(&mut with(change), &commands, 1).latencies().max()
    };
    let frames = |spec: &mut FlashSpec| spec.interface.command_ns = Some(1_270);
    let place = |spec: &mut FlashSpec| spec.firmware.write_ns = Some(900);
    for direction in [Direction::Read, Direction::Write] {
        let plain = latency(direction, |_| ()).unwrap();
        assert_eq!(latency(direction, frames), Some(plain + 1_270));
        let further = if direction == Direction::Write { 900 } else { 0 };
        assert_eq!(latency(direction, place), Some(plain + further));
    }
    // Both directions of a half-duplex link wait for one another's frames.
    let both = (0..400u64).map(|n| ((n % 2) as u8, n * 7919, 8));
    let both = mixture(&both.collect::<Vec<_>>(), sectors());
    let rate = |half_duplex| {
        let mut flash = with(|spec| {
            spec.interface.half_duplex = half_duplex;
            spec.interface.command_ns = Some(20_000);
        });
        run(&mut flash, &both, 32).iops()
    };
    assert!(rate(true) < 50_000.0, "{}", rate(true));
    assert!(rate(false) > 50_000.0, "{}", rate(false));
}

#[test]
fn a_completion_waits_for_others_but_not_for_ever() {
    let latency = |completions, depth| {
        let mut flash = with(|spec| {
            let time_ns = 100 * MICROSECOND;
            spec.interface.coalesce = Some(Coalesce { completions, time_ns });
        });
        let reads = random(Direction::Read, 200, sectors());
        let run = run(&mut flash, &reads, depth);
        run.latencies().sum::<Time>() / 200
    };
    let alone = latency(1, 1);
    assert!(alone.abs_diff(96_396) < 10, "one brings its interrupt");
    assert!(latency(2, 1).abs_diff(alone + 100 * MICROSECOND) < 10);
    assert!(latency(2, 2) < latency(2, 1), "two wait for each other only");
}

#[test]
fn reads_go_as_deep_as_there_are_dies() {
    let reads = random(Direction::Read, 4000, sectors());
    let iops = |depth| run(&mut with(|_| ()), &reads, depth).iops();
    let (one, eight, deep) = (iops(1), iops(8), iops(128));
    assert!((10_300.0..10_450.0).contains(&one), "{one}");
    assert!((4.0 * one..7.5 * one).contains(&eight), "{eight}");
    // Eight dies, 87 us for each read with its transfer.
    assert!((75_000.0..92_000.0).contains(&deep), "{deep}");
}

#[test]
fn large_reads_are_as_fast_as_the_interface() {
    let rate = run(&mut with(|_| ()), &sequential(Direction::Read, 0, 500, 512), 8).rate_bytes_per_s();
    assert!((650e6..1001e6).contains(&rate), "{rate}");
    let slow = |spec: &mut FlashSpec| spec.interface.bytes_per_s = 300_000_000;
    let rate = run(&mut with(slow), &sequential(Direction::Read, 0, 500, 512), 8).rate_bytes_per_s();
    assert!((285e6..301e6).contains(&rate), "{rate}");
}

#[test]
fn writes_are_acknowledged_from_the_buffer_and_then_as_fast_as_dies_program() {
    let mut flash = with(|_| ());
    let written = run(&mut flash, &sequential(Direction::Write, 0, 2000, 64), 4);
    assert!(written.latency_of(0) < 50 * MICROSECOND);
    // Eight dies of 16 KiB in 750 us and the transfer of 49 us.
    let rate = written.rate_bytes_per_s();
    assert!((150e6..185e6).contains(&rate), "{rate}");
    run_until_idle(&mut flash);
}

#[test]
fn force_unit_access_waits_for_the_program() {
    let write = Command { force_unit_access: true, ..command(Direction::Write, 0, 8) };
    let took = run(&mut with(|_| ()), &[write], 1).took;
    assert!((750 * MICROSECOND..790 * MICROSECOND).contains(&took), "{took}");
}

/// From a flush behind a write of a unit, which is in the buffer then, until it completes.
fn flush_behind_a_write(change: impl FnOnce(&mut FlashSpec)) -> Time {
    let mut flash = with(change);
    let asked_at = run(&mut flash, &[command(Direction::Write, 0, 8)], 1).took;
    assert!(flash.flush(asked_at, 7));
    let (mut now, mut completed) = (asked_at, Vec::new());
    while completed.is_empty() {
        now = flash.next_event().expect("a flush that ends");
        flash.advance(now, &mut completed);
    }
    assert_eq!(completed[0].tag, 7);
    now - asked_at
}

#[test]
fn a_flush_waits_for_the_flash_but_where_capacitors_hold_the_buffer() {
    let protect = |spec: &mut FlashSpec| spec.firmware.power_loss_protection = Some(true);
    let cost = |spec: &mut FlashSpec| spec.firmware.flush_ns = Some(20_000);
    let slow = |spec: &mut FlashSpec| spec.firmware.flush_ns = Some(2_000_000);
    assert!((740 * MICROSECOND..790 * MICROSECOND).contains(&flush_behind_a_write(|_| ())));
    assert_eq!(flush_behind_a_write(protect), 5_000);
    let both = |spec: &mut FlashSpec| {
        protect(spec);
        cost(spec);
        spec.firmware.reports_write_cache = Some(true);
    };
    assert_eq!(flush_behind_a_write(both), 20_000);
    // The firmware works beside the programs that the flush waits for.
    assert_eq!(flush_behind_a_write(cost), flush_behind_a_write(|_| ()));
    assert_eq!(flush_behind_a_write(slow), 2_000_000);
}

#[test]
fn force_unit_access_waits_for_nothing_where_capacitors_hold_the_buffer() {
    let protected = || with(|spec| spec.firmware.power_loss_protection = Some(true));
    let write = command(Direction::Write, 0, 8);
    let forced = Command { force_unit_access: true, ..write };
    let took = |command| run(&mut protected(), &[command], 1).took;
    assert_eq!(took(forced), took(write));
}

#[test]
fn a_device_reports_a_volatile_cache_unless_it_is_protected_or_says_otherwise() {
    let reports = |protection, reported| {
        let mut spec = spec();
        spec.firmware.power_loss_protection = protection;
        spec.firmware.reports_write_cache = reported;
        let identity = DeviceSpec::Flash(spec).identity();
        identity.unwrap().volatile_cache
    };
    assert!(reports(None, None));
    assert!(!reports(Some(true), None));
    assert!(reports(Some(true), Some(true)));
    assert!(!reports(None, Some(false)));
}

#[test]
fn a_new_device_answers_reads_without_the_flash() {
    let run = run(&mut with(|spec| spec.firmware.filled = false), &random(Direction::Read, 10, sectors()), 1);
    assert!(run.latencies().all(|latency| latency < 10 * MICROSECOND));
}

/// Discards all but a sector at each end, before `LATER`.
fn discard_all(flash: &mut Flash) {
    assert!(flash.discard(0, 7, 1, sectors() - 2));
    let mut completed = Vec::new();
    flash.advance(LATER, &mut completed);
    let tags: Vec<u32> = completed.iter().map(|ended| ended.tag).collect();
    assert_eq!(tags, [7]);
}

const LATER: Time = 10 * MICROSECOND;

#[test]
fn what_is_discarded_needs_no_flash_but_for_units_that_it_covers_in_part() {
    let mut flash = with(|_| ());
    discard_all(&mut flash);
    let reads = [0, 8, sectors() - 8].map(|start| command(Direction::Read, start, 8));
    let run = run_from(&mut flash, LATER, &[&reads], 1);
    let from_flash: Vec<bool> = run.latencies().map(|ns| ns > 75 * MICROSECOND).collect();
    assert_eq!(from_flash, [true, false, true]);
}

#[test]
fn what_is_discarded_is_not_moved() {
    let moved = |discards: bool| {
        let mut flash = with(|_| ());
        if discards {
            discard_all(&mut flash);
        }
        let writes = random(Direction::Write, 20_000, sectors());
        let end = LATER + run_from(&mut flash, LATER, &[&writes], 32).took;
        flash.programmed(end).moved_units
    };
    assert!(moved(false) > 0);
    assert_eq!(moved(true), 0);
}

fn amplification(over_provision_per_mille: u32, writes: &[Command]) -> f64 {
    let mut flash = with(|spec| spec.geometry.over_provision_per_mille = over_provision_per_mille);
    let end = run(&mut flash, writes, 32).took;
    flash.programmed(end).amplification().unwrap()
}

#[test]
fn what_is_written_twice_comes_of_how_little_is_spare() {
    let random = |per_mille| {
        let writes =
            random(Direction::Write, 60_000, with(|spec| spec.geometry.over_provision_per_mille = per_mille).sectors());
        amplification(per_mille, &writes)
    };
    let (much, little) = (random(400), random(200));
    assert!((1.05..1.6).contains(&much), "{much}");
    assert!((much + 0.3..4.0).contains(&little), "{little}");
}

#[test]
fn hints_spare_a_drive_with_handles_and_no_other_what_it_moves() {
    let amplification = |handles: Option<u32>| {
        let mut flash = with(|spec| {
            spec.geometry.over_provision_per_mille = 250;
            spec.placement = handles.map(|handles| Placement { handles, isolation: Isolation::Initially });
        });
        // RWH_WRITE_LIFE_SHORT for what is written at random, RWH_WRITE_LIFE_EXTREME for what is written in sequence.
        let small = flash.sectors() / 20;
        let random = random(Direction::Write, 60_000, small);
        let large = (flash.sectors() - small) / 8;
        let in_sequence = (0..60_000).map(|number| {
            let start = small.next_multiple_of(8) + number % (large - 1) * 8;
            command(Direction::Write, start, 8)
        });
        let hinted = |write_stream| move |command| Command { write_stream, ..command };
        let writes: Vec<Command> = random
            .into_iter()
            .map(hinted(2))
            .zip(in_sequence.map(hinted(5)))
            .flat_map(|(one, other)| [one, other])
            .collect();
        let half = writes.len() / 2;
        let end = run(&mut flash, &writes[..half], 32).took;
        let before = flash.programmed(end);
        let end = end + run_from(&mut flash, end, &[&writes[half..]], 32).took;
        (flash.programmed(end) - before).amplification().unwrap()
    };
    let (none, enough, too_few) = (amplification(None), amplification(Some(8)), amplification(Some(1)));
    assert!(none > 1.3, "{none}");
    assert!(enough < 1.05, "{enough}");
    assert_eq!(none, too_few);
}

#[test]
fn sequential_overwriting_moves_next_to_nothing() {
    let commands: Vec<Command> =
        (0..2).flat_map(|_| sequential(Direction::Write, 0, (sectors() / 256) as usize, 256)).collect();
    let sequential = amplification(200, &commands);
    assert!(sequential < 1.1, "{sequential}");
}

#[test]
fn a_read_behind_an_erasure_waits_unless_that_can_be_suspended() {
    let slowest = |suspend| {
        let mut flash = with(|spec| spec.timing.suspend = suspend);
        let fill = random(Direction::Write, 20_000, sectors());
        let from = run(&mut flash, &fill, 32).took;
        let (reads, writes) = (random(Direction::Read, 3000, sectors()), random(Direction::Write, 3000, sectors()));
        let both = run_from(&mut flash, from, &[&reads, &writes], 2);
        let reads = both.completed.iter().filter(|&&(number, _)| number < 3000);
        reads.map(|&(_, latency)| latency).max().unwrap()
    };
    let suspend = Suspend { program_ns: 100_000, erase_ns: 700_000 };
    let (waiting, suspended) = (slowest(None), slowest(Some(suspend)));
    assert!(waiting > 3 * MILLISECOND, "{waiting}");
    assert!(suspended < waiting / 2, "{suspended} {waiting}");
}

#[test]
fn reads_first_are_faster_beside_writes() {
    let mean = |read_first| {
        let mut flash = with(|spec| spec.firmware.read_first = read_first);
        let (reads, writes) = (random(Direction::Read, 3000, sectors()), sequential(Direction::Write, 0, 3000, 64));
        let both = run_streams(&mut flash, &[&reads, &writes], 8);
        let reads = both.completed.iter().filter(|&&(number, _)| number < 3000);
        reads.map(|&(_, latency)| latency).sum::<Time>() / 3000
    };
    assert!(mean(true) < mean(false));
}

#[test]
fn what_is_impossible_names_its_key() {
    let key = |change: fn(&mut FlashSpec)| {
        let mut spec = spec();
        change(&mut spec);
        spec.check().unwrap_err().key
    };
    assert_eq!(key(|spec| spec.geometry.channels = 0), "geometry.channels");
    assert_eq!(key(|spec| spec.geometry.page_bytes = 1000), "geometry.page_bytes");
    assert_eq!(key(|spec| spec.geometry.blocks_per_plane = 8), "geometry.over_provision_per_mille");
    assert_eq!(key(|spec| spec.geometry.over_provision_per_mille = 10), "geometry.over_provision_per_mille");
    assert_eq!(key(|spec| spec.firmware.unit_bytes = 16_384), "firmware.unit_bytes");
    assert_eq!(key(|spec| spec.firmware.buffer_bytes = 0), "firmware.buffer_bytes");
    assert_eq!(key(|spec| spec.timing.page_read_ns = u64::MAX), "timing.page_read_ns");
    assert_eq!(key(|spec| spec.interface.bytes_per_s = 0), "interface.bytes_per_s");
    let never_flushed = |spec: &mut FlashSpec| {
        spec.firmware.power_loss_protection = Some(true);
        spec.firmware.flush_ns = Some(1);
    };
    assert_eq!(key(never_flushed), "firmware.flush_ns");
    let all_cache = |spec: &mut FlashSpec| {
        spec.slc = Some(SlcCache {
            blocks_per_plane: spec.geometry.blocks_per_plane,
            bits_per_cell: 3,
            page_program_ns: 1,
            idle_ns: 1,
        });
    };
    assert_eq!(key(all_cache), "slc.blocks_per_plane");
    let too_large = |spec: &mut FlashSpec| {
        (spec.geometry.blocks_per_plane, spec.geometry.pages_per_block) = (1 << 20, 1 << 16);
    };
    assert_eq!(key(too_large), "geometry");
    assert_eq!(key(|spec| spec.firmware.steady_block_bytes = Some(4096)), "firmware.steady_block_bytes");
    let stride = |steady, block, stride| {
        let mut changed = spec();
        changed.firmware.steady = Some(steady);
        changed.firmware.steady_block_bytes = Some(block);
        changed.firmware.steady_stride_bytes = Some(stride);
        changed.check().map_err(|error| error.key)
    };
    let wrong = Err("firmware.steady_stride_bytes".to_owned());
    assert_eq!(stride(SteadyPattern::Sequential, 8192, 65_536), Ok(()));
    assert_eq!(stride(SteadyPattern::Sequential, 8192, 12_288), wrong);
    assert_eq!(stride(SteadyPattern::Sequential, 2048, 65_536), wrong);
    assert_eq!(stride(SteadyPattern::Random, 8192, 65_536), wrong);
    let skewed = |change: fn(&mut SkewSpec)| {
        let mut skew = SkewSpec {
            zones: None,
            sizes: None,
            zipf_theta_per_mille: None,
            pareto_h_per_mille: None,
            normal_deviation_per_mille: None,
            scatter_seed: None,
            block_bytes: 4096,
        };
        change(&mut skew);
        skew.check(4096).map_err(|error| error.key)
    };
    assert_eq!(skewed(|_| ()).unwrap_err(), "zones");
    let idle = |skew: &mut SkewSpec| {
        skew.zones = Some(vec![WrittenZone { bytes: 4096, weight: 0 }]);
    };
    assert_eq!(skewed(idle).unwrap_err(), "zones");
    assert_eq!(skewed(|skew| skew.pareto_h_per_mille = Some(1000)).unwrap_err(), "pareto_h_per_mille");
    assert_eq!(skewed(|skew| skew.normal_deviation_per_mille = Some(0)), Ok(()));
    let both = |skew: &mut SkewSpec| {
        skew.zipf_theta_per_mille = Some(900);
        skew.pareto_h_per_mille = Some(200);
    };
    assert_eq!(skewed(both).unwrap_err(), "pareto_h_per_mille");
    let mixed = |skew: &mut SkewSpec| {
        skew.zipf_theta_per_mille = Some(900);
        skew.sizes = Some(vec![WrittenSize { bytes: 8192, weight: 1 }]);
    };
    assert_eq!(skewed(mixed).unwrap_err(), "sizes");
    let odd = |skew: &mut SkewSpec| {
        skew.sizes = Some(vec![WrittenSize { bytes: 6144, weight: 1 }]);
    };
    assert_eq!(skewed(odd).unwrap_err(), "sizes.0.bytes");
}

/// Rates of the first and of the last quarter of 48 MiB in sequence, and when they are written.
fn rates(flash: &mut Flash, from: Time) -> (f64, f64, Time) {
    let quarter = 384;
    let mut now = from;
    let rates = [0, quarter, 2 * quarter, 3 * quarter].map(|first: usize| {
        let writes = sequential(Direction::Write, first as Sector * 64, quarter, 64);
        let run = run_from(flash, now, &[&writes], 8);
        now += run.took;
        run.rate_bytes_per_s()
    });
    (rates[0], rates[3], now)
}

#[test]
fn a_cache_of_one_bit_a_cell_is_faster_until_it_is_full_and_again_after_a_pause() {
    // It holds 12 blocks of 8 pages of 16 KiB in each of 8 dies: 12 MiB.
    let mut flash = with_slc(20 * MILLISECOND);
    assert_eq!(flash.flash_space(0).slc_percent(), Some(0.0));
    let free = flash.flash_space(0).free_blocks;
    let (fast, slow, full_at) = rates(&mut flash, 0);
    assert!(fast > 2.0 * slow, "{fast} {slow}");
    let full = flash.flash_space(full_at);
    assert_eq!(full.slc_percent(), Some(100.0));
    assert!(full.free_blocks < free);
    let idle_at = run_until_idle(&mut flash);
    let programmed = flash.programmed(idle_at);
    assert!(programmed.moved_units > 0, "it is emptied when nothing is written");
    assert!(programmed.erased_blocks >= 90, "{programmed:?}");
    // A part of a block stays.
    let emptied = flash.flash_space(idle_at);
    assert!(emptied.slc_percent().unwrap() < 10.0, "{emptied:?}");
    assert!(emptied.free_blocks < full.free_blocks);
    let (again, _, end) = rates(&mut flash, idle_at);
    assert!((again / fast - 1.0).abs() < 0.1, "{again} {fast}");
    flash.check(end).unwrap();
}

#[test]
fn a_cache_that_never_gets_a_pause_stays_full() {
    let mut flash = with_slc(10_000 * MILLISECOND);
    let (fast, slow, end) = rates(&mut flash, 0);
    let (again, ..) = rates(&mut flash, end);
    assert!(again < 1.2 * slow, "{again} {slow} {fast}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_command_completes_once_and_nothing_is_lost(
        kinds in prop::collection::vec((any::<u8>(), 0u64..3000, 1u32..300), 1..400),
        depth in 1usize..40,
        (read_first, filled, suspend, half_duplex) in any::<(bool, bool, bool, bool)>(),
        (coalesce, cache, placed) in any::<(bool, bool, Option<bool>)>(),
    ) {
        // So small that it collects.
        let flash = || with(|spec| {
            (spec.geometry.channels, spec.geometry.dies_per_channel) = (1, 2);
            (spec.geometry.blocks_per_plane, spec.geometry.pages_per_block) = (24, 8);
            spec.geometry.over_provision_per_mille = 500;
            spec.placement = placed.map(|is_persistent| Placement {
                handles: 2,
                isolation: if is_persistent { Isolation::Persistently } else { Isolation::Initially },
            });
            if placed.is_some() {
                spec.geometry.blocks_per_plane = 40;
            }
            spec.firmware.buffer_bytes = 65_536;
            spec.firmware.read_first = read_first;
            spec.firmware.filled = filled;
            spec.interface.half_duplex = half_duplex;
            spec.interface.coalesce = coalesce.then_some(Coalesce {
                completions: 4,
                time_ns: 100 * MICROSECOND,
            });
            spec.slc = cache.then_some(SlcCache {
                blocks_per_plane: 4,
                bits_per_cell: 3,
                page_program_ns: 200_000,
                idle_ns: 1_000_000,
            });
            if suspend {
                spec.timing.suspend = Some(Suspend { program_ns: 100_000, erase_ns: 700_000 });
            }
        });
        let mut first = flash();
        let commands = mixture(&kinds, first.sectors());
        let result = run(&mut first, &commands, depth);
        run_until_idle(&mut first);
        prop_assert_eq!(result, run(&mut flash(), &commands, depth));
    }
}

/// When each of these completes, if the device is asked at least so often; and what it has programmed.
fn completions(flash: &mut Flash, commands: &[(Time, Command)], every: Time) -> (Vec<(u32, Time)>, ProgrammedUnits) {
    let (mut now, mut sent, mut ended) = (0, 0, Vec::new());
    let mut completed = Vec::new();
    while ended.len() < commands.len() {
        let next = commands.get(sent).map(|&(at, _)| at);
        now = [next, flash.next_event(), Some(now + every)].into_iter().flatten().min().expect("every is a time");
        flash.advance(now, &mut completed);
        ended.extend(completed.drain(..).map(|done| (done.tag, now)));
        while let Some(&(_, command)) = commands.get(sent).filter(|&&(at, _)| at <= now) {
            let tag = sent as u32;
            flash.submit(now, Command { tag, ..command });
            sent += 1;
        }
    }
    (ended, flash.programmed(now))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    /// Moves and erases are no events for the device's owner: it may see them late, and nothing changes.
    #[test]
    fn it_does_not_matter_how_often_the_device_is_asked(
        is_suspended: bool,
        read_first: bool,
        has_register: bool,
        seed: u64,
        every in 1_000u64..200_000,
    ) {
        let mut draws = base::rng::stream(seed, 0);
        let mut at = 0;
        let commands: Vec<_> = (0..3000)
            .map(|_| {
                at += draws.below(200_000);
                let direction = match draws.below(4) {
                    0 => Direction::Read,
                    _ => Direction::Write,
                };
                (at, command(direction, draws.below(sectors() / 8) * 8, 8))
            })
            .collect();
        let device = || with(|spec| {
            spec.firmware.steady = Some(SteadyPattern::Random);
            spec.firmware.read_first = read_first;
            spec.timing.cache_register = Some(has_register);
            spec.queue_depth = 4096;
            spec.timing.suspend = is_suspended.then_some(Suspend {
                program_ns: 100_000,
                erase_ns: 700_000,
            });
        });
        let seldom = completions(&mut device(), &commands, Time::MAX / 2);
        let often = completions(&mut device(), &commands, every);
        prop_assert!(seldom.1.moved_units > 0);
        prop_assert_eq!(seldom, often);
    }
}

#[test]
fn with_a_second_register_data_cross_the_channel_while_the_next_page_is_read() {
    // Eight planes' pages that one die reads: 75 us each, and 25 us to cross the channel.
    let reads: Vec<_> = (0..8).map(|number| command(Direction::Read, number * 8 * 2 * 32, 16)).collect();
    let took = |has| {
        let mut flash = with(|spec| spec.timing.cache_register = Some(has));
        run(&mut flash, &reads, 8).took
    };
    let (without, with_it) = (took(false), took(true));
    let crossing = 24_600;
    assert!(without > 8 * (75_000 + crossing), "{without}");
    assert!((8 * 75_000 + crossing..8 * 75_000 + 2 * crossing).contains(&with_it), "{with_it}");
}

#[test]
fn with_a_second_register_pages_are_loaded_while_others_are_programmed() {
    let rate = |has| {
        let mut flash = with(|spec| {
            spec.timing.cache_register = Some(has);
            spec.timing.page_program_ns = 100_000;
            spec.geometry.channels = 8;
            spec.geometry.dies_per_channel = 1;
            spec.interface.bytes_per_s = 8_000_000_000;
            spec.firmware.filled = false;
        });
        let writes = sequential(Direction::Write, 0, 2000, 64);
        run(&mut flash, &writes, 32).rate_bytes_per_s()
    };
    // 16 KiB of two planes cross in 49 us: 149 us for each page, or 100.
    let ratio = rate(true) / rate(false);
    assert!((1.35..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn what_writes_leave_to_do_holds_the_core_after_so_many_of_them() {
    let took = |stall| {
        let mut flash = with(|spec| {
            spec.firmware.cores = 1;
            spec.firmware.buffer_bytes = 1 << 30;
            spec.firmware.stall = stall;
        });
        run(&mut flash, &sequential(Direction::Write, 0, 99, 8), 32).took
    };
    let stall = WriteStall { writes: 25, ns: 4 * MILLISECOND };
    // Before the 25th, the 50th and the 75th.
    assert_eq!(took(Some(stall)), took(None) + 3 * stall.ns);
}

#[test]
fn a_device_that_gets_too_warm_is_throttled_and_writes_at_what_it_can_cool() {
    let thermal = Thermal {
        idle_celsius: 40,
        millikelvin_per_watt: 10_000,
        time_constant_ns: 100 * MILLISECOND,
        read_nanojoule: 0,
        program_nanojoule: 600_000,
        erase_nanojoule: 0,
        throttle_celsius: 80,
        resume_celsius: 79,
        throttle_per_mille: 10_000,
    };
    let rate = |thermal| {
        let mut flash = with(|spec| {
            spec.thermal = thermal;
            spec.firmware.filled = false;
        });
        let writes = sequential(Direction::Write, 0, 6000, 64);
        run(&mut flash, &writes, 32).rate_bytes_per_s()
    };
    // 4 W keep it at 80 degrees: 6,667 pages of 16 KiB a second, once it is there.
    let (cool, warm) = (rate(None), rate(Some(thermal)));
    let sustained = 4.0 / 600_000e-9 * 16_384.0;
    assert!(cool > 1.3 * sustained, "{cool} {sustained}");
    assert!((0.95..1.25).contains(&(warm / sustained)), "{warm} {sustained}");
}
