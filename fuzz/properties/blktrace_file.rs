//! Any bytes are records or an error; records are written back as they were, and what they say can be written again.

use std::collections::BTreeMap;

use trace::blktrace::{FileSet, Note, Records, WallTime};
use trace::ftrace::Text;

/// A set has a file for each CPU up to the largest.
const CPUS: u32 = 64;

pub fn check(bytes: &[u8]) {
    let (mut written, mut names, mut lines) = (Vec::new(), BTreeMap::new(), Vec::new());
    for record in Records::of(bytes) {
        let Ok(record) = record else {
            assert!(written.len() < bytes.len());
            break;
        };
        record.write(&mut written);
        assert!(bytes.starts_with(&written));
        if let Some(Note::Process { pid, name }) = record.note() {
            names.insert(pid, name);
        }
        lines.extend(record.line().filter(|line| line.cpu < CPUS));
    }
    let Some(first) = lines.first() else {
        return;
    };
    let mut set = FileSet::new(first.device, WallTime::default(), names.clone());
    let mut text = Text::new(names);
    for line in &lines {
        set.add(line);
        text.add(line);
    }
    let again = set.finish();
    let records = again.iter().flat_map(|file| Records::of(file));
    let events = records.filter_map(|record| record.expect("what was written").line());
    assert_eq!(events.count(), lines.len());
    assert!(text.finish().lines().count() >= lines.len());
}
