//! Any bytes are a trace or an error; what is read of them comes in the order of time, and is as much as its bytes account for.

use std::sync::Arc;

use trace::input::{Gaps, Source, open};
use trace::study::Study;

/// A line or a record of a few bytes is at most this many events: itself and a loss before it.
const EVENTS_PER_BYTE: usize = 2;

pub fn check(bytes: &[u8]) {
    let file = Source::File(Arc::new(bytes.to_vec()));
    let Ok(mut reader) = open(vec![file], None, Gaps::Told) else {
        return;
    };
    let (mut study, mut events) = (Study::default(), Vec::new());
    let (mut reached_ns, mut count) = (0, 0);
    loop {
        let more = match reader.read(&mut events) {
            Ok(more) => more,
            Err(_) => return,
        };
        for event in events.drain(..) {
            assert!(event.at_ns >= reached_ns);
            reached_ns = event.at_ns;
            count += 1;
            study.add(&event, |_| {});
        }
        if !more {
            break;
        }
    }
    // Packed files hold more than their bytes.
    let packed = matches!(bytes, [0x1f, ..] | [0x28, ..] | [0xfd, ..] | [0x17, ..]);
    assert!(packed || count <= EVENTS_PER_BYTE * bytes.len());
    let about = std::mem::take(reader.about());
    study.finish(&about);
}
