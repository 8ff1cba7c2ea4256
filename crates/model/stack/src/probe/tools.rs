//! blkparse and btt on a trace of the model: they find what the model counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::block::{BlockOptions, BlockProbe, Observation};
use super::*;
use crate::drive_name::{DriveName, Driver};
use block_layer::invariants::tapped_queue::{LoadOutcome, serve_tapped};
use block_layer::invariants::{self, Arrival};
use block_layer::scheduler::cfq::{Cfq, CfqTunables, Surroundings, Version};
use block_layer::{Counts, Direction, EventKind, RequestQueue};
use events::time::{MICROSECOND, MILLISECOND, Time};
use kernels::queue::{PlugRules, QueueRules};

/// Of all, on sectors of its own each: btt finds by sectors what belongs together.
const BIOS: u32 = 2000;
const SERVICE_NS: Time = MILLISECOND;

struct TappedRun {
    directory: PathBuf,
    served: LoadOutcome,
    events: Vec<EventKind>,
    counts: Counts,
    found: Observation,
}

impl Drop for TappedRun {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Four tasks, of which two read and two write, behind CFQ in a queue that plugs and has few requests.
fn written() -> TappedRun {
    let mut stream = base::rng::stream(1, 0);
    let mut next = [0, 100_000, 200_000, 300_000];
    let load: Vec<Arrival> = (0..BIOS)
        .map(|n| {
            let task = stream.below(4) as usize;
            let (gap, blocks) = (stream.below(5) / 4 * 100, 1 + stream.below(4));
            next[task] += gap + blocks;
            Arrival {
                after_ns: stream.below(4) / 3 * 7 * MILLISECOND + stream.below(300) * MICROSECOND,
                direction: [Direction::Read, Direction::Write][task % 2],
                sync: n % 50 > 25 || matches!(task, 0 | 2),
                block: next[task] - blocks,
                blocks: blocks as u32,
                task: task as u32,
            }
        })
        .collect();
    let surroundings = Surroundings { hz: 1000, rotational: true };
    let scheduler = Cfq::new(Version::GroupIdleV2, CfqTunables::default(), surroundings, &[1000]);
    let rules = QueueRules { plug: PlugRules::SELF, ..invariants::rules() };
    let mut queue = RequestQueue::new(rules, Box::new(scheduler));
    let mut served = serve_tapped(&mut queue, &load, 4, SERVICE_NS);
    let events = served.events.iter().map(|event| event.kind).collect();
    let options = BlockOptions { interval_ns: 100 * MILLISECOND, trace: Some(TraceFormat::Blktrace) };
    let names = ["reader.0", "writer.0", "reader.1", "writer.1"].map(str::to_owned);
    let tasks: Vec<(u32, String)> = (0..).zip(names).collect();
    let mut probe = BlockProbe::new(&options, 0, &tasks, DriveName::of([Driver::Scsi]));
    probe.events(&mut served.events);
    let (found, files) = probe.finish(served.ended, &[]);
    let directory = std::env::temp_dir().join(format!("iolab-blktrace-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, bytes) in files {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
    TappedRun { directory, served, events, counts: queue.counts(), found }
}

fn output(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn blkparse_and_btt_find_what_the_model_counted() {
    let found = |program: &&str| Command::new(program).arg("-V").output().is_ok();
    if !["blkparse", "btt"].iter().all(found) {
        eprintln!("SKIPPED: no blkparse and btt here; sudo apt-get install blktrace");
        return;
    }
    let written = written();
    let all = &written.found.report.all.total;
    let counts = written.counts;

    let text = output(&written.directory, "blkparse", &["-i", "sda", "-d", "merged"]);
    let (_, total) = text.rsplit_once("Total (sda):").unwrap();
    let both = |what: [&str; 2]| what.map(|name| number_after(total, name)).iter().sum::<f64>() as u64;
    assert_eq!(both(["Reads Queued:", "Writes Queued:"]), counts.bios);
    assert_eq!(both(["Read Dispatches:", "Write Dispatches:"]), counts.issued);
    assert_eq!(both(["Reads Completed:", "Writes Completed:"]), counts.completed);
    let merges = counts.merges_back + counts.merges_front + counts.merges_of_requests;
    assert_eq!(both(["Read Merges:", "Write Merges:"]), merges);
    let events = &written.events;
    let unplugs = events.iter().filter(|kind| matches!(kind, EventKind::Unplug { .. }));
    assert_eq!(both(["IO unplugs:", "Timer unplugs:"]), unplugs.count() as u64);
    assert!(total.contains("Skips: 0 forward"), "{total}");
    let says = |text: &str, what: &str| text.lines().any(|line| line.contains("  m   N cfq") && line.contains(what));
    assert!(says(&text, "arm_idle: 8 group_idle: 0") && says(&text, " sl_used="));

    let text = output(&written.directory, "btt", &["-i", "merged"]);
    let times = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let columns: Vec<f64> =
            line.unwrap().split_whitespace().skip(1).map(|column| column.parse().unwrap()).collect();
        (columns[1] * 1e9, columns[3] as u64)
    };
    let of_bios = written.served.total_ns.iter().sum::<Time>() as f64 / f64::from(BIOS);
    let near = |(mean_ns, count): (f64, u64), expected_ns: f64, expected: u64| {
        assert_eq!(count, expected);
        // Printed in whole nanoseconds; what takes no time counts as one.
        assert!((mean_ns - expected_ns).abs() <= 2.0, "{mean_ns} {expected_ns}");
    };
    near(times("Q2C"), of_bios, counts.bios);
    near(times("I2D"), all.time_in_scheduler_ns.mean().unwrap(), counts.issued);
    near(times("D2C"), SERVICE_NS as f64, counts.bios);
}

/// The first number behind a name in blkparse's summary.
fn number_after(text: &str, name: &str) -> f64 {
    let (_, rest) = text.split_once(name).unwrap();
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}
