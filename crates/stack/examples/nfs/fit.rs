//! How the parameters were fitted, and what the prediction owes to those that were not.

use stack::nfs::{NfsSpec, Operation, PerOperation};

use crate::RECORDS_OF_A_STEP;
use crate::published::{self, ROWS, of_row, outside_us};

/// Four parameters per operation, each from the figure that it moves: encode from queue, service from RTT, decode from
/// the rest, wait from IOPS. And one factor for what only mapped Sends cost, from the condition that without it a WRITE
/// would be as much work for the client as a READ. The pull-up kernel's figures are not looked at.
pub(crate) fn fit(mut spec: NfsSpec) {
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
    published::show(&spec);
}

/// What only mapped Sends cost, every time.
fn mapped_only(spec: &mut NfsSpec) -> [&mut u64; 3] {
    [
        &mut spec.iommu.map_ns,
        &mut spec.iommu.unmap_ns,
        &mut spec.costs.send_done_ns,
    ]
}

fn shift(value: &mut PerOperation<u64>, of: Operation, by_us: f64) {
    let value = match of {
        Operation::Read => &mut value.read,
        Operation::Write => &mut value.write,
    };
    *value = (*value as f64 + by_us * 1e3).max(0.0) as u64;
}

/// What the prediction owes to each estimate: it alone halved and doubled, everything else as it is.
pub(crate) fn sensitivity(spec: &NfsSpec) {
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
