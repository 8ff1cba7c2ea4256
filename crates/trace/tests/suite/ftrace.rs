//! The text is what tracefs prints of the same events.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trace::block::{Device, Flags, Op, TraceLine, What};
use trace::ftrace::Text;

use crate::blktrace::lines;
use crate::support;

fn text(lines: &[TraceLine], names: &[(u32, &str)]) -> String {
    let names = names.iter().map(|&(pid, name)| (pid, name.to_owned()));
    let mut text = Text::new(names.collect::<BTreeMap<_, _>>());
    lines.iter().for_each(|line| text.add(line));
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
    let of = |at_us: u64, cpu: u32, pid: u32, what: What| TraceLine {
        at_ns: at_us * 1000,
        cpu,
        device: Device::new(7, 0),
        pid,
        sector: 0,
        sectors: 2048,
        op: Op::Write,
        flags: Flags {
            sync: true,
            ..Flags::default()
        },
        error: 0,
        what,
    };
    let lines = [
        of(13_254_911_813, 0, 5238, What::Queue),
        of(13_254_911_819, 0, 5238, What::GetRequest),
        of(13_254_911_822, 0, 5238, What::Insert),
        of(13_254_911_825, 0, 5238, What::Issue),
        of(13_254_912_771, 1, 22, What::Complete),
    ];
    let written = text(&lines, &[(5238, "dd"), (22, "ksoftirqd/1")]);
    let events: Vec<&str> = written
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(events, printed);
    assert!(
        written.starts_with("# tracer: nop\n#\n# entries-in-buffer/entries-written: 5/5   #P:2\n")
    );
}

proptest! {
    /// As scripts for `perf script` and trace-cmd take a line apart.
    #[test]
    fn every_line_has_its_task_cpu_time_and_event(lines in lines()) {
        let written = text(&lines, &[(7, "reader.0"), (8, "dd")]);
        let mut found = support::lines_of(&written).into_iter();
        for line in &lines {
            let (cpu, at_us, event, rest) = found.next().expect("a line for each");
            prop_assert_eq!((cpu, at_us), (line.cpu, support::microseconds(line.at_ns)));
            prop_assert!(event.starts_with("block_") || event == "tracing_mark_write");
            if line.event().is_some() {
                let place = format!(" {} + {} ", line.sector, line.sectors);
                prop_assert!(rest.contains(&place), "{}", rest);
            }
        }
        prop_assert_eq!(found.next(), None);
    }
}
