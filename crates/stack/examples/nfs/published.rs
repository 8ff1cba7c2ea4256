//! The mail's figures, and the model's beside them.

use stack::nfs::{Kernel, Load, NfsSpec, Operation};

use crate::{Modelled, RECORD_BYTES, RECORDS_PER_THREAD, THREADS, model};

/// What a mail's tables say of one operation under one kernel; microseconds.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) kernel: Kernel,
    pub(crate) operation: Operation,
    pub(crate) fitted: bool,
    pub(crate) iops: f64,
    pub(crate) queue_us: f64,
    pub(crate) rtt_us: f64,
    pub(crate) execute_us: f64,
    /// Utilisation of the first of the two tests, in percent of one CPU.
    pub(crate) cpu_percent: f64,
}

pub(crate) const ROWS: [Row; 4] = [
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

const CLOCK_HZ: f64 = 1.6e9;
const ALL_CLOCKS_HZ: f64 = 12.0 * CLOCK_HZ;

pub(crate) fn show(spec: &NfsSpec) {
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

/// A row's run, with so many records for each thread.
pub(crate) fn of_row(spec: &NfsSpec, row: &Row, records_per_thread: u64) -> Modelled {
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

impl Row {
    pub(crate) fn rest_us(&self) -> f64 {
        self.execute_us - self.queue_us - self.rtt_us
    }

    /// What of a thread's cycle is not in the RPC layer.
    pub(crate) fn outside_us(&self) -> f64 {
        outside_us(self.iops, self.execute_us)
    }
}

pub(crate) fn outside_us(iops: f64, execute_us: f64) -> f64 {
    f64::from(THREADS) * 1e6 / iops - execute_us
}
