//! What flash programs and erases, and what part of that the host asked for.

/// Units programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgrammedUnits {
    /// For writes of the host.
    pub host_units: u64,
    /// By garbage collection, which moves what is still valid.
    pub moved_units: u64,
    /// In blocks: one of each plane of a die counts as one.
    pub erased_blocks: u64,
}

impl ProgrammedUnits {
    /// Units programmed for each that the host's writes needed; None before the first.
    pub fn amplification(&self) -> Option<f64> {
        (self.host_units > 0).then(|| (self.host_units + self.moved_units) as f64 / self.host_units as f64)
    }
}

impl std::ops::Add for ProgrammedUnits {
    type Output = ProgrammedUnits;

    fn add(self, other: ProgrammedUnits) -> ProgrammedUnits {
        ProgrammedUnits {
            host_units: self.host_units + other.host_units,
            moved_units: self.moved_units + other.moved_units,
            erased_blocks: self.erased_blocks + other.erased_blocks,
        }
    }
}

impl std::ops::Sub for ProgrammedUnits {
    type Output = ProgrammedUnits;

    fn sub(self, earlier: ProgrammedUnits) -> ProgrammedUnits {
        ProgrammedUnits {
            host_units: self.host_units - earlier.host_units,
            moved_units: self.moved_units - earlier.moved_units,
            erased_blocks: self.erased_blocks - earlier.erased_blocks,
        }
    }
}
