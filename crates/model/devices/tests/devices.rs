//! The device files of machines/devices: each is the kind that it names, and those that stand for measured machines do
//! what was measured.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // Files are read here, in a test.

use std::path::PathBuf;

use block_layer::{Direction, Sector};
use devices::{Command, Device, DeviceSpec};
use events::time::{SECOND, Time};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../machines/devices")
}

fn spec(name: &str) -> DeviceSpec {
    let text = std::fs::read_to_string(folder().join(format!("{name}.toml"))).expect(name);
    toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn device(name: &str) -> Box<dyn Device> {
    spec(name).build().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Those that are whole by themselves: Python completes what is `like` others, and tests that every file gives a device.
#[test]
fn every_whole_file_gives_a_device() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if text.lines().any(|line| line.starts_with("like = ")) {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let device = device(name);
        assert!(device.sectors() >= 1 << 20, "{name}");
        let identity = spec(name).identity().unwrap();
        assert_eq!(identity.sectors, device.sectors(), "{name}");
        assert_eq!(identity.queue_depth, device.queue_depth(), "{name}");
        count += 1;
    }
    assert!(count >= 13);
}

#[test]
fn an_unknown_key_is_refused() {
    let text = std::fs::read_to_string(folder().join("null.toml")).unwrap();
    let error = toml::from_str::<DeviceSpec>(&format!("{text}spindles = 3\n")).unwrap_err();
    assert!(error.to_string().contains("spindles"), "{error}");
}

/// Sequential streams of commands, each at its depth; the rate in bytes per second, of all together. The first tenth
/// does not count: caches and prefetching have to get going.
fn stream(
    device: &mut dyn Device,
    direction: Direction,
    firsts: &[Sector],
    sectors: u32,
    depth: u32,
    each: u64,
) -> f64 {
    let mut sent = vec![0; firsts.len()];
    let mut inside = vec![0; firsts.len()];
    let (mut now, mut completed, mut done) = (0, Vec::new(), 0);
    let all = each * firsts.len() as u64;
    let mut began: (Time, u64) = (0, 0);
    while done < all {
        for (number, first) in firsts.iter().enumerate() {
            while inside[number] < depth && sent[number] < each && inside.iter().sum::<u32>() < device.queue_depth() {
                let start = first + sent[number] * u64::from(sectors);
                device.submit(
                    now,
                    Command {
                        tag: number as u32,
                        direction,
                        start,
                        sectors,
                        force_unit_access: false,
                        write_stream: 0,
                    },
                );
                sent[number] += 1;
                inside[number] += 1;
            }
        }
        now = device.next_event().expect("something is outstanding");
        device.advance(now, &mut completed);
        for command in completed.drain(..) {
            inside[command.tag as usize] -= 1;
            done += 1;
        }
        if began.0 == 0 && done * 10 >= all {
            began = (now, done);
        }
    }
    (done - began.1) as f64 * f64::from(sectors) * 512.0 * SECOND as f64 / (now - began.0) as f64
}

/// 512 MiB files, one behind the other as they were written.
fn files(count: u64) -> Vec<Sector> {
    (0..count).map(|number| number << 20).collect()
}

/// Without a host's pauses; with them and CFQ's it has the 217 MB/s that the latency was fitted to.
#[test]
fn eva_one_stream_of_128_kib_reads_with_two_in_flight_comes_near_the_port() {
    let rate = stream(&mut *device("eva_raid5"), Direction::Read, &files(1), 256, 2, 4000);
    assert!((335e6..365e6).contains(&rate), "{rate}");
}

#[test]
fn eva_many_streams_reach_the_port() {
    for count in [16, 64] {
        let rate = stream(&mut *device("eva_raid5"), Direction::Read, &files(count), 256, 2, 1000);
        assert!((360e6..385e6).contains(&rate), "{count} streams: {rate}");
    }
}

/// Outer raw rate of the disk (docs/model/sources/disks.md#disks), less the switches between tracks.
#[test]
fn disks_stream_at_the_rates_of_their_data_sheets() {
    for (name, outer) in [
        ("atlas_10k", 28.6e6),
        ("cheetah_9lp", 21.8e6),
        ("atlas_iii", 15.7e6),
        ("atlas_10k_v", 99.8e6),
        ("g4_4tb", 189e6),
    ] {
        let mut disk = device(name);
        let depth = disk.queue_depth().min(4);
        let rate = stream(&mut *disk, Direction::Read, &[0], 128, depth, 2000);
        assert!((0.78..1.0).contains(&(rate / outer)), "{name}: {rate}");
    }
}

#[test]
fn sequential_writes_through_a_queue_stream_on_the_scsi_disk() {
    let rate = stream(&mut *device("scsi_10k_2003"), Direction::Write, &[0], 256, 8, 2000);
    assert!((48e6..72e6).contains(&rate), "{rate}");
}

#[test]
fn every_second_4_kib_written_to_the_ide_disk_without_cache_is_half_a_megabyte_a_second() {
    let mut disk = device("ide_7200_2003");
    let (mut now, mut completed) = (0, Vec::new());
    for number in 0..500 {
        let start = number * 16;
        disk.submit(
            now,
            Command {
                tag: 0,
                direction: Direction::Write,
                start,
                sectors: 8,
                force_unit_access: false,
                write_stream: 0,
            },
        );
        while completed.pop().is_none() {
            now = disk.next_event().unwrap();
            disk.advance(now, &mut completed);
        }
    }
    let rate = 500.0 * 4096.0 * SECOND as f64 / now as f64;
    assert!((0.45e6..0.55e6).contains(&rate), "{rate}");
}

/// Random commands of 4 KiB within 1 GiB, `depth` at once, each sent `overhead_ns` after the last has come back: how
/// many a second.
fn random_iops(name: &str, direction: Direction, depth: usize, overhead_ns: Time) -> f64 {
    const COUNT: u64 = 20_000;
    let mut device = device(name);
    let (mut now, mut sent, mut completed, mut done) = (0, 0, Vec::new(), 0);
    // When each of those that are not at the device is sent.
    let mut to_send: std::collections::VecDeque<Time> = vec![0; depth].into();
    while done < COUNT {
        let next = to_send.front().copied().filter(|_| sent < COUNT);
        match (next, device.next_event()) {
            (Some(at), event) if event.is_none_or(|event| at <= event) => {
                now = at;
                to_send.pop_front();
                let command = Command {
                    tag: sent as u32,
                    direction,
                    start: sent * 7_919 % (1 << 18) * 8,
                    sectors: 8,
                    force_unit_access: false,
                    write_stream: 0,
                };
                device.submit(now, command);
                sent += 1;
            }
            (_, event) => {
                now = event.expect("something is outstanding");
                device.advance(now, &mut completed);
                done += completed.len() as u64;
                to_send.extend(completed.drain(..).map(|_| now + overhead_ns));
            }
        }
    }
    COUNT as f64 * SECOND as f64 / now as f64
}

#[test]
fn flash_devices_do_what_their_data_sheets_say() {
    use Direction::{Read, Write};
    for (name, direction, depth, sheet) in [
        ("sata_ssd_2018", Read, 1, 10_000.0),
        ("sata_ssd_2018", Read, 32, 98_000.0),
        ("sata_ssd_2018", Write, 1, 42_000.0),
        ("sata_ssd_2018", Write, 32, 90_000.0),
        ("xpoint_2017", Read, 16, 550_000.0),
        ("xpoint_2017", Write, 16, 500_000.0),
        // "Less than 10 us".
        ("xpoint_2017", Read, 1, 95_000.0),
    ] {
        let iops = random_iops(name, direction, depth, 2_000);
        let ratio = iops / sheet;
        let what = format!("{name} {direction:?} {depth}: {iops:.0}");
        let near = if name == "sata_ssd_2018" { 0.9..1.1 } else { 0.8..1.25 };
        assert!(near.contains(&ratio), "{what}");
    }
}
