//! How a device's requests follow one another on the medium.

use super::values::Values;

/// The seeks between the requests of one device, in the order in which the driver got them.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeks {
    head: Option<u64>,
    run: u64,
    pub(super) count: u64,
    pub(super) sequential: u64,
    pub(super) distance: Values,
    pub(super) runs: Values,
}

impl Seeks {
    pub(super) fn new(roomy: bool) -> Seeks {
        Seeks { distance: Values::new(roomy), runs: Values::new(roomy), ..Seeks::default() }
    }

    #[inline]
    pub(super) fn add(&mut self, sector: u64, sectors: u64) {
        if let Some(head) = self.head {
            let distance = head.abs_diff(sector);
            self.count += 1;
            self.distance.record(distance);
            if distance == 0 {
                self.sequential += 1;
            } else {
                self.runs.record(self.run);
                self.run = 0;
            }
        }
        self.run += 1;
        self.head = Some(sector.saturating_add(sectors));
    }

    pub(super) fn finish(&mut self) {
        if self.run > 0 {
            self.runs.record(self.run);
        }
    }
}
