//! On which CPUs bios are queued and requests complete.

use trace::block::Analysis;
use trace::event::{Device, Op, Step, TraceEvent};

fn event(at_ns: u64, cpu: u16, step: Step, sector: u64) -> TraceEvent {
    TraceEvent {
        cpu,
        device: Device(7 << 20),
        sector,
        sectors: 8,
        op: Op::Read,
        pid: 1,
        ..TraceEvent::new(at_ns, step)
    }
}

#[test]
fn bios_and_completions_are_counted_where_they_happen() {
    let mut analysis = Analysis::new(0, 1_000_000);
    for (request, queued_on, completed_on) in [(0, 0, 2), (1, 0, 2), (2, 1, 1)] {
        let sector = request * 8;
        let at_ns = request * 100;
        for (step, (cpu, what)) in [
            (queued_on, Step::Queue),
            (queued_on, Step::GetRequest),
            (queued_on, Step::Issue),
            (completed_on, Step::Complete),
        ]
        .into_iter()
        .enumerate()
        {
            analysis.add(&event(at_ns + step as u64, cpu, what, sector));
        }
    }
    let report = analysis.finish(1_000);
    let [device] = &report.devices[..] else { panic!("one device") };
    assert_eq!(device.queued_by_cpu, [2, 1]);
    assert_eq!(device.completed_by_cpu, [0, 1, 2]);
    assert_eq!(report.all.total.completions_local, 1);
}
