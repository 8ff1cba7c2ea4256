//! What is written of a trace is read back, byte for byte and line for line.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trace::blktrace::{FileSet, Malformed, Note, Record, Records, WallTime};
use trace::block::{Device, Flags, Op, TraceLine, What};

const DEVICE: Device = Device(8 << 20 | 16);
const BEGAN: WallTime = WallTime {
    seconds: 1_280_000_000,
    nanoseconds: 5,
};

pub fn line(at_ns: u64, what: What) -> TraceLine {
    TraceLine {
        at_ns,
        cpu: 0,
        device: DEVICE,
        pid: 7,
        sector: 2048,
        sectors: 8,
        op: Op::Read,
        flags: Flags::default(),
        error: 0,
        what,
    }
}

fn written(lines: &[TraceLine]) -> Vec<Vec<u8>> {
    let names = BTreeMap::from([
        (7, "a name that is too long".to_owned()),
        (8, "b".to_owned()),
    ]);
    let mut set = FileSet::new(DEVICE, BEGAN, names);
    lines.iter().for_each(|line| set.add(line));
    set.finish()
}

fn records(file: &[u8]) -> Vec<Record<'_>> {
    Records::of(file)
        .collect::<Result<_, _>>()
        .expect("what was written is well-formed")
}

/// A record of a real v7 file, little-endian: a completed read of 8 sectors at 2048.
#[test]
fn a_record_lies_as_the_kernel_lays_it() {
    let files = written(&[line(0x0102, What::Complete)]);
    let record = &files[0][files[0].len() - 48..];
    let mut expected = vec![
        0x07, 0x74, 0x61, 0x65, 1, 0, 0, 0, 0x02, 0x01, 0, 0, 0, 0, 0, 0,
    ];
    expected.extend([0, 8, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 8, 0, 0x81, 0]);
    expected.extend([7, 0, 0, 0, 16, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(record, expected);
}

#[test]
fn files_begin_with_the_wall_clock_and_name_each_task_before_its_first_event() {
    let on_cpu_2 = TraceLine {
        cpu: 2,
        pid: 9,
        ..line(20, What::Queue)
    };
    let files = written(&[line(10, What::Queue), line(11, What::Plug), on_cpu_2]);
    assert_eq!(files.len(), 3);
    for file in &files {
        let began = Note::Began {
            seconds: BEGAN.seconds,
            nanoseconds: BEGAN.nanoseconds,
        };
        assert_eq!(records(file)[0].note(), Some(began));
    }
    let name = "a name that is ".to_owned();
    assert_eq!(
        records(&files[0])[1].note(),
        Some(Note::Process { pid: 7, name })
    );
    let sequences: Vec<u32> = records(&files[0]).iter().map(|one| one.sequence).collect();
    assert_eq!(sequences, [0, 0, 1, 2]);
    // A task without a name has no note.
    assert_eq!((records(&files[1]).len(), records(&files[2]).len()), (1, 2));
}

#[test]
fn what_is_no_such_file_is_refused() {
    let mut file = written(&[line(10, What::Queue)]).remove(0);
    let end = file.len();
    let last = |file: &[u8]| Records::of(file).find_map(Result::err);
    assert_eq!(
        last(&file[..end - 1]),
        Some(Malformed::Short { at: end - 48 })
    );
    file[end - 48] = 8;
    let (at, version) = (end - 48, 8);
    assert_eq!(last(&file), Some(Malformed::Version { at, version }));
    file[end - 46] = 0;
    assert_eq!(last(&file), Some(Malformed::NoMagic { at }));
}

#[test]
fn the_kernels_letters() {
    let flags = Flags {
        sync: true,
        read_ahead: true,
        metadata: true,
    };
    for (op, flags, expected) in [
        (Op::Read, Flags::default(), "R"),
        (Op::Write, flags, "WASM"),
        (Op::Discard, Flags::default(), "D"),
    ] {
        let line = TraceLine {
            op,
            flags,
            ..line(0, What::Queue)
        };
        assert_eq!(line.rwbs().to_string(), expected);
    }
}

pub fn lines() -> impl Strategy<Value = Vec<TraceLine>> {
    let what = prop_oneof![
        prop::sample::select(vec![
            What::Queue,
            What::GetRequest,
            What::Sleep,
            What::BackMerge,
            What::FrontMerge,
            What::Insert,
            What::Issue,
            What::Requeue,
            What::Complete,
            What::Plug,
        ]),
        (any::<u64>(), any::<bool>())
            .prop_map(|(requests, by_timer)| What::Unplug { requests, by_timer }),
    ];
    let place = (any::<u64>(), 0u32..1 << 23);
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Discard, Op::Flush, Op::Other]);
    let flags = any::<[bool; 3]>().prop_map(|[sync, read_ahead, metadata]| Flags {
        sync,
        read_ahead,
        metadata,
    });
    let of_events = (
        0..1000u64,
        0..4u32,
        6..10u32,
        place,
        op,
        flags,
        any::<i16>(),
        what,
    );
    let event = of_events.prop_map(
        |(at_ns, cpu, pid, (sector, sectors), op, flags, error, what)| TraceLine {
            at_ns,
            cpu,
            device: DEVICE,
            pid,
            sector,
            sectors,
            op,
            flags,
            error,
            what,
        },
    );
    let message = (0..1000u64, 0..4u32, "[ -~]{0,40}").prop_map(|(at_ns, cpu, text)| TraceLine {
        cpu,
        sector: 0,
        sectors: 0,
        ..line(at_ns, What::Message(text))
    });
    let lines = prop::collection::vec(prop_oneof![9 => event, 1 => message], 0..60);
    lines.prop_map(|mut lines| {
        lines.sort_by_key(|line| line.at_ns);
        lines
    })
}

proptest! {
    #[test]
    fn lines_are_read_back(lines in lines()) {
        let files = written(&lines);
        let mut read: Vec<TraceLine> = files.iter().flat_map(|file| records(file)).filter_map(|one| one.line()).collect();
        let by_cpu = |line: &TraceLine| line.cpu;
        let mut expected = lines.clone();
        read.sort_by_key(by_cpu);
        expected.sort_by_key(by_cpu);
        prop_assert_eq!(read, expected);
        for file in &files {
            let mut again = Vec::new();
            records(file).iter().for_each(|record| record.write(&mut again));
            prop_assert_eq!(&again, file);
        }
    }
}
