//! Formats of other kernels than the one at hand.

use std::path::Path;

use trace::decode::WantedEvent;
use trace::event::{Op, Step};
use trace::format::{EventFormat, FormatError};
use trace::page::RawEvent;
use trace::tracepoints::{BlockDecoder, EVENTS};

fn seed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/event_format");
    std::fs::read_to_string(folder.join(name)).expect("a seed of the repository")
}

/// With formats of other events made to go with this one.
fn decoder(complete: &str) -> Result<BlockDecoder, FormatError> {
    let (first, rest) = complete.split_once('\n').expect("lines");
    assert!(first.starts_with("name:"));
    let other = |name: &str| EventFormat::parse(&format!("name: {name}\n{rest}"));
    BlockDecoder::new(EVENTS, &[EventFormat::parse(complete)?, other("block_bio_queue")?, other("block_rq_issue")?])
}

#[test]
fn a_kernel_of_2013_names_the_error_otherwise_and_has_fewer_letters() {
    let decoder = decoder(&seed("block_rq_complete_3_10")).expect("a sound format");
    let mut record = vec![0; 44];
    record[0..2].copy_from_slice(&651u16.to_le_bytes());
    record[4..8].copy_from_slice(&42i32.to_le_bytes());
    record[8..12].copy_from_slice(&(8u32 << 20 | 3).to_le_bytes());
    record[16..24].copy_from_slice(&2048u64.to_le_bytes());
    record[24..28].copy_from_slice(&16u32.to_le_bytes());
    record[28..32].copy_from_slice(&(-5i32).to_le_bytes());
    record[32..35].copy_from_slice(b"FWS");
    let raw = RawEvent { at_ns: 9, record: &record };
    let event = decoder.decode(1, &raw).expect("a whole record").expect("a completion");
    assert_eq!((event.step, event.op, event.error, event.pid), (Step::Complete, Op::Write, -5, 42));
    assert_eq!((event.device.to_string().as_str(), event.sector, event.sectors), ("8:3", 2048, 16));
}

#[test]
fn a_newer_kernel_may_move_widen_and_add_fields() {
    let decoder = decoder(&seed("block_rq_complete_newer")).expect("a sound format");
    let mut record = vec![0; 64];
    record[4..6].copy_from_slice(&40000u16.to_le_bytes());
    record[16..24].copy_from_slice(&7u64.to_le_bytes());
    record[24..32].copy_from_slice(&(259u64 << 20).to_le_bytes());
    record[32..40].copy_from_slice(&24u64.to_le_bytes());
    record[40..48].copy_from_slice(&(-110i64).to_le_bytes());
    // Three bytes, four bytes after the end of the location.
    record[48..52].copy_from_slice(&(3u32 << 16 | 4).to_le_bytes());
    record[56..58].copy_from_slice(b"RA");
    let raw = RawEvent { at_ns: 9, record: &record };
    let event = decoder.decode(0, &raw).expect("a whole record").expect("a completion");
    assert_eq!((event.op, event.error, event.sectors, event.device.major()), (Op::Read, -110, 24, 259));
}

#[test]
fn what_is_missing_is_named() {
    let text = seed("block_rq_complete_3_10");
    for (from, to, error) in [
        ("sector_t sector;", "sector_t place;", "block_rq_complete has no field sector"),
        ("int errors;", "int status;", "block_rq_complete has no field error or errors"),
        (
            "nr_sector;\toffset:24;\tsize:4",
            "nr_sector;\toffset:24;\tsize:3",
            "field nr_sector of block_rq_complete is 3 bytes long: not a number",
        ),
        (
            "name: block_rq_complete",
            "name: block_rq_done",
            "no format of an event that the analysis needs: block_rq_complete",
        ),
        ("size:8;", "size:eight;", "format of block_rq_complete: line 10 is not a field"),
        ("ID: 651", "", "event format without a line `ID:`"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let found = decoder(&changed).expect_err(error).to_string();
        assert!(found.starts_with(error), "{found}");
    }
}

#[test]
fn a_record_that_ends_early_is_an_error_that_names_its_event() {
    let decoder = decoder(&seed("block_rq_complete_3_10")).expect("a sound format");
    let mut record = vec![0; 20];
    record[0..2].copy_from_slice(&651u16.to_le_bytes());
    let raw = RawEvent { at_ns: 0, record: &record };
    let error = decoder.decode(0, &raw).expect_err("a record of 20 bytes");
    assert_eq!(error.to_string(), "a record of block_rq_complete is 20 bytes long and ends before its last field");
}

#[test]
fn records_of_other_events_are_passed_over() {
    let formats: Vec<EventFormat> = wanted().iter().map(|wanted| crate::support::format(wanted.name)).collect();
    let decoder = BlockDecoder::new(EVENTS, &formats).expect("formats of a real kernel");
    let raw = RawEvent { at_ns: 0, record: &[0xff; 64] };
    assert_eq!(decoder.decode(0, &raw), Ok(None));
}

fn wanted() -> &'static [WantedEvent] {
    EVENTS
}

#[test]
fn every_recorded_format_is_understood() {
    for event in ["block_plug", "block_unplug", "block_bio_remap", "block_rq_error", "sched_stat_runtime"] {
        let format = crate::support::format(event);
        assert_eq!(format.name, event);
        assert!(format.number(&["common_pid"]).is_ok());
    }
}

#[test]
fn the_first_letters_of_rwbs_tell_the_operation() {
    for (rwbs, op) in [
        ("R", Op::Read),
        ("RAM", Op::Read),
        ("WS", Op::Write),
        ("FWFS", Op::Write),
        ("FF", Op::Flush),
        ("F", Op::Flush),
        ("FFS", Op::Flush),
        ("D", Op::Discard),
        ("DES", Op::Discard),
        ("FN", Op::Other),
        ("N", Op::Other),
        ("", Op::Other),
        ("ZR", Op::Other),
        ("WZ", Op::Write),
    ] {
        assert_eq!(Op::of_rwbs(rwbs.as_bytes()), op, "{rwbs}");
    }
}
