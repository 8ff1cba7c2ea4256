//! Any bytes of a perf ring are records or end with one that is malformed; a sample's stack lies within the bytes.

use engine::probe::perf::record::{Period, Record, Records};

pub fn check(bytes: &[u8]) {
    for period in [Period::Recorded, Period::Fixed(7)] {
        let records: Vec<_> = Records::new(bytes, period).collect();
        // A record has a header of eight bytes at least.
        assert!(records.len() <= bytes.len() / 8 + 1);
        for record in records.into_iter().flatten() {
            if let Record::Sample(sample) = record {
                assert!(sample.kernel_stack().count() <= bytes.len() / 8);
                assert!(period == Period::Recorded || sample.period == 7);
            }
        }
    }
}
