//! How much of a drive's flash is free, how full its pseudo-SLC cache is, and how warm it is.

/// A state, not a count since the start; a block here is one of each plane of a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashSpace {
    /// Blocks that are no part of the cache.
    pub blocks: u64,
    /// Those of them that are erased and not open.
    pub free_blocks: u64,
    /// Pages of the cache.
    pub slc_pages: u64,
    /// Those of them that are programmed, and whose block is not erased since.
    pub slc_programmed_pages: u64,
    /// Of the warmest device, in 1/1000 of a degree Celsius; None: none gets warm.
    pub millicelsius: Option<u32>,
}

impl FlashSpace {
    /// None without flash.
    pub fn free_percent(&self) -> Option<f64> {
        percent(self.free_blocks, self.blocks)
    }

    /// None if no device gets warm.
    pub fn celsius(&self) -> Option<f64> {
        Some(f64::from(self.millicelsius?) / 1000.0)
    }

    /// None without a cache.
    pub fn slc_percent(&self) -> Option<f64> {
        percent(self.slc_programmed_pages, self.slc_pages)
    }
}

fn percent(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| 100.0 * part as f64 / all as f64)
}

impl std::ops::Add for FlashSpace {
    type Output = FlashSpace;

    fn add(self, other: FlashSpace) -> FlashSpace {
        FlashSpace {
            blocks: self.blocks + other.blocks,
            free_blocks: self.free_blocks + other.free_blocks,
            slc_pages: self.slc_pages + other.slc_pages,
            slc_programmed_pages: self.slc_programmed_pages + other.slc_programmed_pages,
            millicelsius: self.millicelsius.max(other.millicelsius),
        }
    }
}
