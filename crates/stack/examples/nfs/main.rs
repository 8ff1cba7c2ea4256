//! The NFS/RDMA client against the figures of October 2019, and what it would do elsewhere:
//! `cargo run --release -p iolab-stack --example nfs [published|fit|sensitivity|thresholds|speed|mountstats]`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

mod fit;
mod published;
mod what_if;

use std::path::PathBuf;
use std::time::Instant;

use stack::nfs::{Closed, Context, Load, Mounted, NfsSpec, Operation};
use stack::time::SECOND;

use published::{ROWS, of_row};

fn main() {
    let spec = machine();
    match std::env::args().nth(1).as_deref().unwrap_or("published") {
        "published" => published::show(&spec),
        "fit" => fit::fit(spec),
        "sensitivity" => fit::sensitivity(&spec),
        "thresholds" => what_if::thresholds(&spec),
        "speed" => speed(&spec),
        "mountstats" => mountstats(&spec),
        other => panic!("unknown: {other}"),
    }
}

const THREADS: u16 = 12;
const RECORD_BYTES: u32 = 1024;
/// An eighth of a published test's: means are stable to a part in a thousand.
const RECORDS_PER_THREAD: u64 = 1 << 17;
const RECORDS_OF_A_STEP: u64 = 20_000;
const SEED: u64 = 1;

/// What a run gave; means.
struct Modelled {
    iops: f64,
    queue_us: f64,
    rtt_us: f64,
    execute_us: f64,
    /// By context, per call.
    cpu_us: Vec<(&'static str, f64)>,
    /// Share of the calls whose reply waited for their Send.
    replies_waited: f64,
}

fn model(spec: &NfsSpec, load: &Load) -> Modelled {
    let mut closed = Closed::new(spec, SEED).expect("a possible client");
    let took_ns = closed.run(load);
    closed.check().expect("the model's laws hold");
    let counters = closed.mount().counters();
    let operation = counters.of(load.operation);
    let calls = operation.calls as f64;
    let [queue_us, rtt_us, execute_us] = operation.means_ns().expect("calls").map(|ns| ns / 1e3);
    let cpu = closed.cpu();
    Modelled {
        iops: calls / took_ns as f64 * SECOND as f64,
        queue_us,
        rtt_us,
        execute_us,
        cpu_us: Context::ALL
            .map(|context| (context.name(), cpu.of(context) as f64 / 1e3 / calls))
            .to_vec(),
        replies_waited: counters.replies_waited_for_send as f64 / calls,
    }
}

impl Modelled {
    fn rest_us(&self) -> f64 {
        self.execute_us - self.queue_us - self.rtt_us
    }

    /// All contexts but the process's.
    fn kernel_us(&self) -> f64 {
        self.cpu_us[1..].iter().map(|(_, us)| us).sum()
    }
}

fn speed(spec: &NfsSpec) {
    for row in &ROWS[..2] {
        let began = Instant::now();
        of_row(spec, row, 1_000_000 / u64::from(THREADS));
        let wall_s = began.elapsed().as_secs_f64();
        println!("{}\t{:.2}\ts for a million calls", row.name, wall_s);
    }
}

/// The text that tests/golden has.
fn mountstats(spec: &NfsSpec) {
    let mut closed = Closed::new(spec, SEED).expect("a possible client");
    for operation in [Operation::Write, Operation::Read] {
        closed.run(&Load {
            operation,
            threads: THREADS,
            record_bytes: RECORD_BYTES,
            records_per_thread: 1000,
        });
    }
    let mounted = Mounted {
        device: "server:/export",
        mount_point: "/mnt",
    };
    print!("{}", closed.mount().mountstats(closed.now(), &mounted));
}

fn machine() -> NfsSpec {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../machines/mounts/nfs-rdma.toml");
    let text = std::fs::read_to_string(path).expect("the file");
    toml::from_str(&text).expect("a client")
}
