//! A mean that forgets.

/// 1.0 is 256. A new sample leaves `keep` parts in `keep` + 1 of what was seen before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    samples: u64,
    total: u64,
    mean: u64,
}

impl Mean {
    pub fn add(&mut self, keep: u64, value: u64) {
        self.samples = (keep * self.samples + 256) / (keep + 1);
        self.total = (keep * self.total + 256 * value) / (keep + 1);
        self.mean = (self.total + 128) / self.samples;
    }

    /// How much has been seen: 256 is the most.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// None: nothing has been seen.
    pub fn get(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.mean)
    }
}
