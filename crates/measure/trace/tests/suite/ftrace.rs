//! The text is what tracefs prints of the same events.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trace::event::{Device, Marks, Op, Step, TraceEvent};
use trace::ftrace::Text;

use crate::blktrace::events;
use crate::support;

fn text(events: &[TraceEvent], names: &[(u32, &str)]) -> String {
    let names = names.iter().map(|&(pid, name)| (pid, name.to_owned()));
    let mut text = Text::new(names.collect::<BTreeMap<_, _>>());
    events.iter().for_each(|event| text.add(event));
    text.finish()
}

/// Lines of a kernel, without the I/O priority that newer ones add to requests.
#[test]
fn is_what_a_kernel_printed() {
    let recorded = support::text("block.txt");
    let printed: Vec<String> = recorded
        .lines()
        .filter(|line| !line.starts_with('#'))
        .take(5)
        .map(|line| {
            let flags = line.find("] ").expect("a CPU") + 2;
            format!("{}.....{}", &line[..flags], &line[flags + 5..]).replace(" be,0,4", "")
        })
        .collect();
    let of = |at_us: u64, cpu: u16, pid: u32, step: Step| TraceEvent {
        cpu,
        device: Device::new(7, 0),
        pid,
        sectors: 2048,
        op: Op::Write,
        marks: Marks::SYNC,
        ..TraceEvent::new(at_us * 1000, step)
    };
    let lines = [
        of(13_254_911_813, 0, 5238, Step::Queue),
        of(13_254_911_819, 0, 5238, Step::GetRequest),
        of(13_254_911_822, 0, 5238, Step::Insert),
        of(13_254_911_825, 0, 5238, Step::Issue),
        of(13_254_912_771, 1, 22, Step::Complete),
    ];
    let written = text(&lines, &[(5238, "dd"), (22, "ksoftirqd/1")]);
    let events: Vec<&str> = written.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(events, printed);
    assert!(written.starts_with("# tracer: nop\n#\n# entries-in-buffer/entries-written: 5/5   #P:2\n"));
}

proptest! {
    /// As scripts for `perf script` and trace-cmd take a line apart.
    #[test]
    fn every_line_has_its_task_cpu_time_and_event(events in events()) {
        let written = text(&events, &[(7, "reader.0"), (8, "dd")]);
        let mut found = support::lines_of(&written).into_iter();
        for event in &events {
            let (cpu, at_us, name, rest) = found.next().expect("a line for each");
            prop_assert_eq!((cpu, at_us), (u32::from(event.cpu), support::microseconds(event.at_ns)));
            prop_assert!(name.starts_with("block_"));
            if event.step.is_of_bios() && event.step != Step::Split {
                let place = format!(" {} + {} ", event.sector, event.sectors);
                prop_assert!(rest.contains(&place), "{}", rest);
            }
        }
        prop_assert_eq!(found.next(), None);
    }
}

#[test]
fn what_a_scheduler_says_is_a_mark() {
    let mut text = Text::new(BTreeMap::new());
    let event = TraceEvent { device: Device::new(8, 0), ..TraceEvent::new(1_000, Step::Message) };
    text.add(&event);
    text.message(&event, "cfq arm_idle");
    let written = text.finish();
    let found = support::lines_of(&written);
    let expected = (0, 1, "tracing_mark_write".into(), "8,0 m N cfq arm_idle".into());
    assert_eq!(found, [expected]);
}
