//! Where copying stops paying.

use stack::nfs::{IommuMode, Kernel, Load, NfsSpec, Operation};

use crate::{Modelled, RECORDS_OF_A_STEP, THREADS, model};

/// A message is pulled up below a threshold. So what a threshold should be is where the other two ways win: mapped page
/// by page, and registered as a chunk. Each record size goes each way, with inline messages as large as it takes.
pub(crate) fn thresholds(spec: &NfsSpec) {
    let sizes = (8..=16).map(|power| 1u32 << power);
    let all: Vec<(u32, Vec<Modelled>)> = sizes
        .map(|record_bytes| {
            let modes = [IommuMode::None, IommuMode::Lazy, IommuMode::Strict];
            let runs = modes.iter().flat_map(|&mode| {
                [Way::PulledUp, Way::Mapped, Way::Chunk]
                    .map(|way| run(spec, mode, way, record_bytes))
            });
            (record_bytes, runs.collect())
        })
        .collect();
    println!("WRITE, {THREADS} threads, each way: pulled up, mapped, chunk");
    table("thousand calls a second", &all, |run| run.iops / 1e3);
    table("kernel CPU us per call", &all, Modelled::kernel_us);
}

#[derive(Clone, Copy)]
enum Way {
    PulledUp,
    Mapped,
    Chunk,
}

fn run(spec: &NfsSpec, mode: IommuMode, way: Way, record_bytes: u32) -> Modelled {
    let mut spec = spec.clone();
    spec.iommu.mode = mode;
    let transport = &mut spec.transport;
    transport.kernel = Kernel::After;
    transport.inline_bytes = Some(1 << 17);
    match way {
        Way::PulledUp => transport.send_buffer_bytes = Some(1 << 17),
        Way::Mapped => transport.pull_up = Some(false),
        // Beside transport header, buffer and tail there is no element for a page.
        Way::Chunk => transport.send_fragments_max = Some(3),
    }
    let load = Load {
        operation: Operation::Write,
        threads: THREADS,
        record_bytes,
        records_per_thread: RECORDS_OF_A_STEP / 4,
    };
    model(&spec, &load)
}

fn table(title: &str, all: &[(u32, Vec<Modelled>)], of: impl Fn(&Modelled) -> f64) {
    println!("{title}");
    println!("record bytes  no IOMMU               lazy                   strict");
    for (record_bytes, runs) in all {
        let cells: Vec<String> = runs
            .chunks(3)
            .map(|mode| {
                let values: Vec<String> =
                    mode.iter().map(|run| format!("{:6.1}", of(run))).collect();
                values.join(" ")
            })
            .collect();
        println!("{record_bytes:12}  {}", cells.join("   "));
    }
}
