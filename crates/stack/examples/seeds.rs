//! Runs the two seeds' loads on a machine file given as JSON, quickly: `seeds MACHINE.json tiobench THREADS TOTAL_MB` or
//! `seeds MACHINE.json readers READERS_PER_GROUP FILE_MB SECONDS`.

use std::time::Instant;

use stack::machine::MachineSpec;
use stack::time::SECOND;
use stack::world::{FileSpec, GroupSpec, Path, PhaseSpec, Place, Results};
use workload::spec::{Arrival, BlockSize, FileOrder, JobSpec, Pattern, Until};
use workload::timeline::totals;

fn job(name: String, file: u32, bytes: u64, read_share: f64, duration_ns: Option<u64>) -> JobSpec {
    JobSpec {
        name,
        files: vec![file],
        file_order: FileOrder::Sequential,
        pattern: Pattern::Sequential,
        read_share,
        blocks: vec![BlockSize {
            bytes: 4096,
            weight: 1.0,
        }],
        align_bytes: 4096,
        offset_bytes: 0,
        length_bytes: bytes,
        queue_depth: 1,
        arrival: Arrival::Closed {
            think_ns: 0,
            think_every: 1,
        },
        until: Until {
            ops: None,
            bytes: Some(bytes),
            duration_ns,
        },
        sync: None,
        sync_at_end: read_share == 0.0,
        seed: 1,
    }
}

fn done(results: &Results) -> Vec<(u64, u64, u64)> {
    let jobs = results.groups.iter().map(|group| &group.jobs[0]);
    jobs.map(|job| {
        let total = totals(&job.intervals, 0);
        let ops = total.read.latency.count() + total.write.latency.count();
        (ops, total.read.bytes + total.write.bytes, job.finished)
    })
    .collect()
}

fn show(what: &str, results: &Results, threads: usize, started: Instant) {
    let done = done(results);
    let ops: u64 = done.iter().map(|job| job.0).sum();
    let bytes: u64 = done.iter().map(|job| job.1).sum();
    let last = done.iter().map(|job| job.2).max().unwrap();
    let cpu_ns = results.groups[0].last_sample.process.cpu_system_ns;
    println!(
        "{what} {threads} threads: {:.2} MB/s (2^20) in {:.1} s, average latency {:.3} ms, CPU so far {:.1} s, {:.1} s of wall time, requests {:?}",
        bytes as f64 / (1 << 20) as f64 / (last as f64 / 1e9),
        last as f64 / 1e9,
        last as f64 * threads as f64 / ops as f64 / 1e6,
        cpu_ns as f64 / 1e9,
        started.elapsed().as_secs_f64(),
        results.requests[0],
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let machine = MachineSpec::from_json(serde_json::from_str(&text).unwrap())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut world = machine.build().unwrap();
    let number = |index: usize| -> u64 { args[index].parse().unwrap() };
    if args[2] == "tiobench" {
        let (threads, total_mb) = (number(3) as u32, number(4));
        let bytes = (total_mb << 20) / u64::from(threads);
        let files: Vec<u32> = (0..threads)
            .map(|n| {
                world.add_file(FileSpec {
                    name: format!("f{n}"),
                    drive: 0,
                    size_bytes: bytes,
                    place: Place::Allocated { directory: 0 },
                })
            })
            .collect();
        for (what, read_share) in [("write", 0.0), ("read", 1.0)] {
            let started = Instant::now();
            let groups = (0..threads)
                .map(|n| GroupSpec {
                    path: Path::Buffered,
                    cgroup: 0,
                    priority: stack::block::Priority::default(),
                    jobs: vec![job(format!("t{n}"), n, bytes, read_share, None)],
                })
                .collect();
            world
                .begin_phase(&PhaseSpec {
                    groups,
                    files: files.clone(),
                    warm_up_ns: 0,
                    interval_ns: SECOND,
                    ends_with_first: false,
                    seed: 1,
                })
                .unwrap();
            world.run(|_| true);
            show(what, &world.end_phase(), threads as usize, started);
            if what == "write" {
                let extents = world.extents(0);
                println!(
                    "file 0: {} extents, mean {:.0} bytes, first {:?}",
                    extents.len(),
                    bytes as f64 / extents.len() as f64,
                    &extents[..extents.len().min(4)]
                );
            }
        }
    } else {
        let (per_group, file_mb, seconds) = (number(3), number(4), number(5));
        let bytes = file_mb << 20;
        let started = Instant::now();
        let mut groups = Vec::new();
        let mut files = Vec::new();
        for group in 1..=8u16 {
            for reader in 0..per_group {
                let place = Place::Contiguous((files.len() as u64 * bytes) / 512);
                files.push(world.add_file(FileSpec {
                    name: format!("g{group}r{reader}"),
                    drive: 0,
                    size_bytes: bytes,
                    place,
                }));
                let name = format!("test{group}.{reader}");
                groups.push(GroupSpec {
                    path: Path::Buffered,
                    cgroup: group,
                    priority: stack::block::Priority::default(),
                    jobs: vec![job(
                        name,
                        files.len() as u32 - 1,
                        bytes,
                        1.0,
                        Some(seconds * SECOND),
                    )],
                });
            }
        }
        let total = groups.len();
        world
            .begin_phase(&PhaseSpec {
                groups,
                files,
                warm_up_ns: 0,
                interval_ns: SECOND,
                ends_with_first: true,
                seed: 1,
            })
            .unwrap();
        world.run(|_| true);
        let results = world.end_phase();
        show("read", &results, total, started);
        let mut rates = vec![0.0; 8];
        for (number, (_, bytes, finished_ns)) in done(&results).into_iter().enumerate() {
            rates[number / per_group as usize] +=
                bytes as f64 / 1024.0 / (finished_ns as f64 / 1e9);
        }
        println!(
            "KB/s by group: {:?} total {:.0}",
            rates.iter().map(|rate| *rate as u64).collect::<Vec<_>>(),
            rates.iter().sum::<f64>()
        );
    }
}
