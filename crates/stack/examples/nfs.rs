//! The NFS/RDMA client against the figures of October 2019, and what it would do elsewhere:
//! `cargo run --release -p iolab-stack --example nfs [published|fit|sensitivity|thresholds|speed|mountstats]`.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock or a file; its measurement has to.

use std::path::PathBuf;
use std::time::Instant;

use stack::nfs::{
    Closed, Context, IommuMode, Kernel, Load, Mounted, NfsSpec, Operation, PerOperation,
};
use stack::time::SECOND;

fn main() {
    let spec = machine();
    match std::env::args().nth(1).as_deref().unwrap_or("published") {
        "published" => published(&spec),
        "fit" => fit(spec),
        "sensitivity" => sensitivity(&spec),
        "thresholds" => thresholds(&spec),
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
const CLOCK_HZ: f64 = 1.6e9;
const ALL_CLOCKS_HZ: f64 = 12.0 * CLOCK_HZ;

/// What a mail's tables say of one operation under one kernel; microseconds.
struct Row {
    name: &'static str,
    kernel: Kernel,
    operation: Operation,
    fitted: bool,
    iops: f64,
    queue_us: f64,
    rtt_us: f64,
    execute_us: f64,
    /// Utilisation of the first of the two tests, in percent of one CPU.
    cpu_percent: f64,
}

const ROWS: [Row; 4] = [
    Row {
        name: "READ, mapping kernel",
        kernel: Kernel::Before,
        operation: Operation::Read,
        fitted: true,
        iops: 25_146_066.0 / (451.762 + 452.543),
        queue_us: 92.140,
        rtt_us: 45.202,
        execute_us: 205.996,
        cpu_percent: 183.04,
    },
    Row {
        name: "WRITE, mapping kernel",
        kernel: Kernel::Before,
        operation: Operation::Write,
        fitted: true,
        iops: 25_161_863.0 / (496.136 + 500.266),
        queue_us: 94.913,
        rtt_us: 48.245,
        execute_us: 213.270,
        cpu_percent: 163.84,
    },
    Row {
        name: "WRITE, pull-up kernel",
        kernel: Kernel::After,
        operation: Operation::Write,
        fitted: false,
        iops: 25_159_897.0 / (453.318 + 458.717),
        queue_us: 80.036,
        rtt_us: 49.674,
        execute_us: 183.426,
        cpu_percent: 185.21,
    },
    Row {
        name: "READ, pull-up kernel",
        kernel: Kernel::After,
        operation: Operation::Read,
        fitted: false,
        iops: 25_149_527.0 / (451.248 + 451.113),
        queue_us: 91.011,
        rtt_us: 45.790,
        execute_us: 203.793,
        cpu_percent: 184.87,
    },
];

struct Modelled {
    iops: f64,
    queue_us: f64,
    rtt_us: f64,
    execute_us: f64,
    /// By context, per call.
    cpu_us: Vec<(&'static str, f64)>,
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

fn of_row(spec: &NfsSpec, row: &Row, records_per_thread: u64) -> Modelled {
    let mut spec = spec.clone();
    spec.transport.kernel = row.kernel;
    let load = Load {
        operation: row.operation,
        threads: THREADS,
        record_bytes: RECORD_BYTES,
        records_per_thread,
    };
    model(&spec, &load)
}

fn published(spec: &NfsSpec) {
    println!("                          IOPS     queue us       RTT us      rest us   execute us");
    let all: Vec<Modelled> = ROWS
        .iter()
        .map(|row| of_row(spec, row, RECORDS_PER_THREAD))
        .collect();
    for (row, ours) in ROWS.iter().zip(&all) {
        let theirs = [
            row.iops,
            row.queue_us,
            row.rtt_us,
            row.rest_us(),
            row.execute_us,
        ];
        let ours = [
            ours.iops,
            ours.queue_us,
            ours.rtt_us,
            ours.rest_us(),
            ours.execute_us,
        ];
        let kind = if row.fitted { "fitted" } else { "predicted" };
        println!("{} ({kind})", row.name);
        line("published", &theirs.map(|value| format!("{value:.1}")));
        line("modelled", &ours.map(|value| format!("{value:.1}")));
        let error = |(ours, theirs): (f64, f64)| format!("{:+.1} %", (ours / theirs - 1.0) * 100.0);
        let errors: Vec<String> = ours.into_iter().zip(theirs).map(error).collect();
        line("error", &errors);
    }
    gain(&all[1], &all[2]);
    println!();
    println!("cycles                    posted: all cycles        used by the threads");
    println!("                           per byte    per I/O     per byte    per I/O   CPU %");
    for (row, ours) in ROWS.iter().zip(&all) {
        println!("{}", row.name);
        cycles("published", row.iops, row.cpu_percent);
        cycles("modelled", ours.iops, ours.iops * ours.cpu_us[0].1 / 1e4);
    }
    println!();
    println!("CPU us per call, modelled; the kernel's contexts are estimates");
    for (row, ours) in ROWS.iter().zip(&all) {
        let contexts: Vec<String> = ours
            .cpu_us
            .iter()
            .map(|(name, us)| format!("{name} {us:.1}"))
            .collect();
        let waited = ours.replies_waited * 100.0;
        let contexts = contexts.join(", ");
        println!(
            "{:22} {contexts}; replies that waited for their Send: {waited:.0} %",
            row.name
        );
    }
}

fn line(name: &str, values: &[String]) {
    let values: Vec<String> = values.iter().map(|value| format!("{value:>12}")).collect();
    println!("  {name:12}{}", values.join(" "));
}

/// Where the gain of pulling up comes from.
fn gain(mapped: &Modelled, pulled: &Modelled) {
    println!("gain of pulling up, us    queue   rest    RTT   execute");
    println!("  published              14.9   16.4   -1.4      29.8");
    println!(
        "  modelled              {:5.1}  {:5.1}  {:5.1}     {:5.1}",
        mapped.queue_us - pulled.queue_us,
        mapped.rest_us() - pulled.rest_us(),
        mapped.rtt_us - pulled.rtt_us,
        mapped.execute_us - pulled.execute_us,
    );
}

fn cycles(name: &str, iops: f64, cpu_percent: f64) {
    let used_hz = cpu_percent / 100.0 * CLOCK_HZ;
    let record = f64::from(RECORD_BYTES);
    println!(
        "  {name:20} {:12.1} {:10.0} {:12.1} {:10.0} {cpu_percent:7.1}",
        ALL_CLOCKS_HZ / iops / record,
        ALL_CLOCKS_HZ / iops,
        used_hz / iops / record,
        used_hz / iops,
    );
}

/// Four parameters per operation, each from the figure that it moves: encode from queue, service from RTT, decode from
/// the rest, wait from IOPS. And one factor for what only mapped Sends cost, from the condition that without it a WRITE
/// would be as much work for the client as a READ. The pull-up kernel's figures are not looked at.
fn fit(mut spec: NfsSpec) {
    for round in 0..16 {
        for row in ROWS.iter().filter(|row| row.fitted) {
            let ours = of_row(&spec, row, RECORDS_OF_A_STEP);
            let of = row.operation;
            shift(&mut spec.costs.encode_ns, of, row.queue_us - ours.queue_us);
            shift(&mut spec.server.service_ns, of, row.rtt_us - ours.rtt_us);
            let rest_us = row.rest_us() - ours.rest_us();
            shift(&mut spec.costs.decode_ns, of, rest_us);
            let wait_us = row.outside_us() - outside_us(ours.iops, ours.execute_us);
            shift(&mut spec.process.wait_ns, of, wait_us);
        }
        let [read_us, write_us] = [Operation::Read, Operation::Write].map(|of| {
            let parts = [
                spec.costs.encode_ns,
                spec.costs.decode_ns,
                spec.process.cpu_ns,
                spec.process.wait_ns,
            ];
            parts.iter().map(|part| part.of(of)).sum::<u64>() as f64 / 1e3
        });
        let factor = (1.0 + (write_us - read_us) / 120.0).clamp(0.8, 1.25);
        for ns in mapped_only(&mut spec) {
            scale(ns, factor);
        }
        println!(
            "{round}: a READ is {read_us:.1} us of work, a WRITE {write_us:.1} us; mapping x {factor:.3}"
        );
    }
    println!("encode_ns {:?}", spec.costs.encode_ns);
    println!("decode_ns {:?}", spec.costs.decode_ns);
    println!("service_ns {:?}", spec.server.service_ns);
    println!("wait_ns {:?}", spec.process.wait_ns);
    println!("map, unmap, send_done {:?}", mapped_only(&mut spec));
    published(&spec);
}

/// What only mapped Sends cost, every time.
fn mapped_only(spec: &mut NfsSpec) -> [&mut u64; 3] {
    [
        &mut spec.iommu.map_ns,
        &mut spec.iommu.unmap_ns,
        &mut spec.costs.send_done_ns,
    ]
}

fn outside_us(iops: f64, execute_us: f64) -> f64 {
    f64::from(THREADS) * 1e6 / iops - execute_us
}

impl Row {
    fn rest_us(&self) -> f64 {
        self.execute_us - self.queue_us - self.rtt_us
    }

    fn outside_us(&self) -> f64 {
        outside_us(self.iops, self.execute_us)
    }
}

impl Modelled {
    fn rest_us(&self) -> f64 {
        self.execute_us - self.queue_us - self.rtt_us
    }
}

fn shift(value: &mut PerOperation<u64>, of: Operation, by_us: f64) {
    let value = match of {
        Operation::Read => &mut value.read,
        Operation::Write => &mut value.write,
    };
    *value = (*value as f64 + by_us * 1e3).max(0.0) as u64;
}

/// What the prediction owes to each estimate: it alone halved and doubled, everything else as it is.
fn sensitivity(spec: &NfsSpec) {
    type Change = fn(&mut NfsSpec, f64);
    let estimates: [(&str, Change); 6] = [
        ("transmit", |spec, by| {
            scale(&mut spec.costs.transmit_ns, by)
        }),
        ("map", |spec, by| scale(&mut spec.iommu.map_ns, by)),
        ("unmap", |spec, by| scale(&mut spec.iommu.unmap_ns, by)),
        ("send_done", |spec, by| {
            scale(&mut spec.costs.send_done_ns, by)
        }),
        ("completion_wakeup", |spec, by| {
            scale(&mut spec.costs.completion_wakeup_ns, by);
        }),
        ("process completion", |spec, by| {
            scale(&mut spec.process.completion_ns, by);
        }),
    ];
    println!("gain of pulling up, us       queue   rest    RTT   IOPS %");
    for (name, change) in estimates {
        for factor in [0.5, 1.0, 2.0] {
            let mut spec = spec.clone();
            change(&mut spec, factor);
            let [mapped, pulled] =
                [1, 2].map(|row: usize| of_row(&spec, &ROWS[row], RECORDS_OF_A_STEP));
            println!(
                "{name:20} x {factor:3} {:7.1} {:6.1} {:6.1} {:8.1}",
                mapped.queue_us - pulled.queue_us,
                mapped.rest_us() - pulled.rest_us(),
                mapped.rtt_us - pulled.rtt_us,
                (pulled.iops / mapped.iops - 1.0) * 100.0,
            );
        }
    }
}

fn scale(ns: &mut u64, by: f64) {
    *ns = (*ns as f64 * by) as u64;
}

/// Records on both sides of the threshold, for each IOMMU mode: where copying stops paying.
fn thresholds(spec: &NfsSpec) {
    println!("WRITE, 12 threads, kIOPS and kernel CPU us per call: mapped | pulled up");
    println!("record bytes             none                     lazy                   strict");
    for record_bytes in (8..=16).map(|power| 1u32 << power) {
        let cells: Vec<String> = [IommuMode::None, IommuMode::Lazy, IommuMode::Strict]
            .map(|mode| {
                let [mapped, pulled] = [64, 1 << 17].map(|send_buffer_bytes| {
                    let mut spec = spec.clone();
                    spec.transport.kernel = Kernel::After;
                    spec.transport.inline_bytes = Some(1 << 17);
                    spec.transport.send_buffer_bytes = Some(send_buffer_bytes);
                    spec.iommu.mode = mode;
                    let load = Load {
                        operation: Operation::Write,
                        threads: THREADS,
                        record_bytes,
                        records_per_thread: RECORDS_OF_A_STEP / 4,
                    };
                    model(&spec, &load)
                });
                let kernel_us =
                    |run: &Modelled| run.cpu_us[1..].iter().map(|(_, us)| us).sum::<f64>();
                format!(
                    "{:5.2} {:5.1} | {:5.2} {:5.1}",
                    mapped.iops / 1e3,
                    kernel_us(&mapped),
                    pulled.iops / 1e3,
                    kernel_us(&pulled)
                )
            })
            .to_vec();
        println!("{record_bytes:12}  {}", cells.join("  "));
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
