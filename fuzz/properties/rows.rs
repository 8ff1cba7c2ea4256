//! Any bytes are rows or an error that names the start of a line; cut between lines anywhere, they come to the same.

use rows::UnreadLine;
use rows::groups::{Groups, Layout, Role};
use rows::io_log::IoLog;

pub fn check(bytes: &[u8]) {
    let cut = bytes[..bytes.len() / 2].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    for (separator, decimal) in [(b',', b'.'), (b';', b',')] {
        check_groups(bytes, cut, separator, decimal);
    }
    check_log(bytes, cut);
}

fn check_groups(bytes: &[u8], cut: usize, separator: u8, decimal: u8) {
    let empty = Groups::new(Layout {
        separator,
        decimal,
        columns: vec![Role::Key, Role::Number, Role::Ignored, Role::Number],
        batch_bytes: 0,
    });
    let mut whole = empty.clone();
    let outcome = whole.add(bytes, 0);
    check_outcome(bytes, outcome);
    let (mut first, mut second) = (empty.clone(), empty);
    let pieces = first.add(&bytes[..cut], 0).and_then(|()| second.add(&bytes[cut..], cut as u64));
    assert_eq!(pieces, outcome);
    first.merge(&second);
    assert!(first.iter().map(|group| group.rows).eq(whole.iter().map(|group| group.rows)));
    for (ours, theirs) in first.iter().zip(whole.iter()) {
        assert_eq!((ours.key, ours.offset, ours.counts), (theirs.key, theirs.offset, theirs.counts));
        assert!(
            ours.sums.iter().all(|sum| !sum.is_nan()) || bytes.windows(3).any(|word| word.eq_ignore_ascii_case(b"inf"))
        );
    }
}

fn check_log(bytes: &[u8], cut: usize) {
    let mut whole = IoLog::new(7);
    let outcome = whole.add(bytes, 0);
    check_outcome(bytes, outcome);
    let (mut first, mut second) = (IoLog::new(7), IoLog::new(7));
    let pieces = first.add(&bytes[..cut], 0).and_then(|()| second.add(&bytes[cut..], cut as u64));
    assert_eq!(pieces, outcome);
    first.merge(&second);
    for (ours, theirs) in first.directions.iter().zip(&whole.directions) {
        assert_eq!(ours.values, theirs.values);
        assert_eq!(ours.intervals, theirs.intervals);
        assert_eq!((ours.bytes, ours.last_ms), (theirs.bytes, theirs.last_ms));
    }
}

fn check_outcome(bytes: &[u8], outcome: Result<(), UnreadLine>) {
    if let Err(UnreadLine { offset }) = outcome {
        let offset = offset as usize;
        assert!(offset < bytes.len() && (offset == 0 || bytes[offset - 1] == b'\n'));
    }
}
