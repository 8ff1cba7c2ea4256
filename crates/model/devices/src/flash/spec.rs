//! A flash device as its parts' data sheets, or a measurement, give it.

use serde::Deserialize;

use crate::flash::coalesce::Coalesce;
use crate::flash::collector::Collector;
use crate::flash::placement::Placement;
use crate::flash::skew::SkewSpec;
use crate::flash::steady_law::SteadyLaw;
use crate::flash::thermal::Thermal;
use crate::limits::{QUEUE_DEPTH_MAX, WORK_NS_MAX, queue_depth, rate, whole_sectors};
use block_layer::{SECTOR_BYTES, Sector};
use events::SpecError;
use events::spec_error::{RATE, within};

/// Everything about a flash device; a machine file's device of kind `flash`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// Commands that the device takes at once.
    #[schemars(range(min = 1, max = QUEUE_DEPTH_MAX))]
    pub queue_depth: u32,
    /// Channels, dies and blocks.
    pub geometry: Geometry,
    /// Times of the dies and rate of the channels.
    pub timing: Timing,
    /// Processing, mapping, write buffer and garbage collection.
    pub firmware: Firmware,
    /// The link to the host.
    pub interface: Interface,
    /// Blocks that are programmed with one bit a cell, for writes of the host; absent: none.
    pub slc: Option<SlcCache>,
    /// The pattern of `firmware.steady = "skewed"`.
    pub skew: Option<SkewSpec>,
    /// Heat, and throttling by it; absent: the device never gets too warm.
    pub thermal: Option<Thermal>,
    /// Handles by which the host separates data of different lifetimes; absent: it takes no hint.
    pub placement: Option<Placement>,
}

/// A pseudo-SLC cache: what is written there first is programmed faster, and holds less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Blocks of each plane that it consists of; the host sees nothing of them.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub blocks_per_plane: u32,
    /// Of the other blocks: one of the cache holds this much less.
    #[schemars(range(min = 2, max = 8))]
    pub bits_per_cell: u32,
    /// From the register to the cells, of all planes of a die at once.
    #[schemars(range(max = WORK_NS_MAX))]
    pub page_program_ns: u64,
    /// The device moves the cache's data to other blocks when nothing was written for this long.
    #[schemars(range(max = WORK_NS_MAX))]
    pub idle_ns: u64,
}

/// How the flash is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Buses between controller and dies, which carry data at the same time.
    #[schemars(range(min = 1, max = 256))]
    pub channels: u32,
    /// Dies on each bus, which work at the same time.
    #[schemars(range(min = 1, max = 256))]
    pub dies_per_channel: u32,
    /// Programmed and erased together, read one at a time.
    #[schemars(range(min = 1, max = 16))]
    pub planes_per_die: u32,
    /// Blocks of each plane, spare ones included.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub blocks_per_plane: u32,
    /// Pages of each block.
    #[schemars(range(min = 1, max = 1 << 16))]
    pub pages_per_block: u32,
    /// Data that one plane reads or programs at once.
    #[schemars(range(min = 512, max = 1 << 20))]
    pub page_bytes: u32,
    /// The part of the flash that the host does not see.
    #[schemars(range(min = 1, max = 999))]
    pub over_provision_per_mille: u32,
}

/// What the flash itself takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// From the cells to the die's register.
    #[schemars(range(max = WORK_NS_MAX))]
    pub page_read_ns: u64,
    /// From the register to the cells, of all planes of a die at once.
    #[schemars(range(max = WORK_NS_MAX))]
    pub page_program_ns: u64,
    /// The time to erase a block of each plane of a die at once.
    #[schemars(range(max = WORK_NS_MAX))]
    pub block_erase_ns: u64,
    /// Rate of a channel, one transfer after the other.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub channel_bytes_per_s: u64,
    /// A read may interrupt a program or an erasure; absent: it waits.
    pub suspend: Option<Suspend>,
    /// A die has a second register of a page: data cross the channel while it reads or programs the next page (ONFI's
    /// read cache and page cache program). Absent: false.
    pub cache_register: Option<bool>,
}

/// How long it takes to interrupt a die's work for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    /// Until the die is free for the read.
    #[schemars(range(max = WORK_NS_MAX))]
    pub program_ns: u64,
    /// The same for an erase.
    #[schemars(range(max = WORK_NS_MAX))]
    pub erase_ns: u64,
}

/// What the controller does, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// Processing time of a command.
    #[schemars(range(max = WORK_NS_MAX))]
    pub command_ns: u64,
    /// What a write takes besides: its data get a place. Absent: nothing.
    #[schemars(range(max = WORK_NS_MAX))]
    pub write_ns: Option<u64>,
    /// A core is held once in a while for what writes have left to do; absent: never.
    pub stall: Option<WriteStall>,
    /// Commands that are worked on at once.
    #[schemars(range(min = 1, max = 1024))]
    pub cores: u32,
    /// What is mapped, and moved, as one; a page holds one or several.
    #[schemars(range(min = 512))]
    pub unit_bytes: u32,
    /// Data that may wait to be programmed; with no room in it writes wait.
    #[schemars(range(max = 1_u64 << 40))]
    pub buffer_bytes: u64,
    /// Capacitors write the buffer to the flash when the power fails: a flush has nothing to wait for. Absent: false.
    pub power_loss_protection: Option<bool>,
    /// The device reports a volatile write cache (NVMe's VWC, SCSI's WCE), so that the kernel sends flushes. Absent: it
    /// does without protection alone.
    pub reports_write_cache: Option<bool>,
    /// Processing of a flush, beside the programs that it waits for. Absent: `command_ns` if it waits for none.
    #[schemars(range(max = WORK_NS_MAX))]
    pub flush_ns: Option<u64>,
    /// A part of a page that has waited in the buffer so long is programmed as it is.
    #[schemars(range(max = WORK_NS_MAX))]
    pub buffer_ns_max: u64,
    /// The part of a die's blocks: when no more than this are free, collecting begins and nothing else is programmed.
    #[schemars(range(max = 999))]
    pub collect_per_mille: u32,
    /// Share of the blocks of a die, in 1/1000: with at most this many free it collects before it programs.
    #[schemars(range(max = 999))]
    pub collect_only_per_mille: u32,
    /// Which block is collected. Absent: greedy.
    pub collector: Option<Collector>,
    /// For a windowed collector: the part of a die's blocks of which it chooses, those that were written first.
    #[schemars(range(min = 1, max = 1000))]
    pub collect_window_per_mille: Option<u32>,
    /// Reads go before what a die has to program or collect; otherwise in order of arrival.
    pub read_first: bool,
    /// All of it has been written in sequence before the start; otherwise it is new, and reads of what was never
    /// written do not touch the flash.
    pub filled: bool,
    /// A filled device has been written over and over in this pattern before the start, until its write amplification
    /// was steady. Absent: all of it has been written once, in sequence.
    pub steady: Option<SteadyPattern>,
    /// Size and alignment of the writes of `steady` at random, in permutations or strides, in whole units and at least
    /// one; what is written together becomes invalid together. Absent: a unit.
    #[schemars(range(min = 512, max = 1 << 24))]
    pub steady_block_bytes: Option<u32>,
    /// Of `steady = "sequential"`, the distance between two writes, a multiple of `steady_block_bytes`; at the drive's
    /// end they start again one block further on. Absent: each is behind the last.
    #[schemars(range(min = 512))]
    pub steady_stride_bytes: Option<u64>,
}

/// What writes leave to do, such as writing the mapping back, done for many of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteStall {
    /// Writes from one stall to the next.
    #[schemars(range(min = 1, max = 1 << 30))]
    pub writes: u32,
    /// How long it takes of a core.
    #[schemars(range(max = WORK_NS_MAX))]
    pub ns: u64,
}

/// How a device was written before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyPattern {
    /// From its start to its end.
    Sequential,
    /// Each unit as often as any other, at random.
    Random,
    /// At random, some units more often than others: the table `skew`.
    Skewed,
    /// Each unit once in a pass, in an order that each pass draws anew.
    Permutation,
}

/// The link to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Rate of the link; in each direction, unless it is half-duplex.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub bytes_per_s: u64,
    /// How long the frames of a read or a write hold the link besides its data; absent: not at all.
    #[schemars(range(max = WORK_NS_MAX))]
    pub command_ns: Option<u64>,
    /// One direction at a time, as SATA.
    pub half_duplex: bool,
    /// Completions wait for others before the host is interrupted; absent: none does.
    pub coalesce: Option<Coalesce>,
}

/// What follows from the geometry; a block here is one of each plane of a die, programmed and erased as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) dies: u32,
    pub(super) blocks: u32,
    pub(super) pages: u32,
    /// Units of a page of one plane, and of a page of all planes.
    pub(super) page_units: u32,
    pub(super) program_units: u32,
    pub(super) block_units: u32,
    /// What the host sees.
    pub(super) units: u32,
    /// Free blocks of a die with which collecting begins, and has to come first.
    pub(super) collect_blocks: u32,
    pub(super) collect_only_blocks: u32,
    /// With more than this many units wanted, a die might have no block that is worth collecting.
    pub(super) die_units_max: u32,
    pub(super) collector: Collector,
    /// Of how many blocks of a die a windowed collector chooses.
    pub(super) window_blocks: u32,
    /// Blocks of a die that are no cache; those of the cache are behind them, and use so many pages of theirs.
    pub(super) main_blocks: u32,
    pub(super) slc_pages: u32,
    /// Open blocks of a die for what the host writes, and for what is moved.
    pub(super) handles: u32,
    pub(super) moved_handles: u32,
}

impl FlashSpec {
    /// Checks every value by itself, and that collection can continue. The error names the first key that is wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        queue_depth("queue_depth", self.queue_depth)?;
        self.geometry.check().map_err(|error| error.within("geometry"))?;
        self.timing.check().map_err(|error| error.within("timing"))?;
        self.firmware.check().map_err(|error| error.within("firmware"))?;
        rate("interface.bytes_per_s", self.interface.bytes_per_s)?;
        within("interface.command_ns", self.interface.command_ns.unwrap_or_default(), 0, WORK_NS_MAX)?;
        if let Some(coalesce) = self.interface.coalesce {
            coalesce.check().map_err(|error| error.within("interface.coalesce"))?;
        }
        if !self.geometry.page_bytes.is_multiple_of(self.firmware.unit_bytes) {
            let what = format!("expected a divisor of geometry.page_bytes, {}", self.geometry.page_bytes);
            return Err(SpecError::of("firmware.unit_bytes", what));
        }
        let program_bytes = u64::from(self.geometry.page_bytes) * u64::from(self.geometry.planes_per_die);
        within("firmware.buffer_bytes", self.firmware.buffer_bytes, 2 * program_bytes, 1 << 40)?;
        if self.units_of_flash() >= UNITS_MAX {
            let what = format!("{} units of firmware.unit_bytes: expected less than 2^31", self.units_of_flash());
            return Err(SpecError::of("geometry", what));
        }
        if let Some(slc) = self.slc {
            slc.check(&self.geometry).map_err(|error| error.within("slc"))?;
        }
        self.check_skew()?;
        if let Some(thermal) = self.thermal {
            thermal.check().map_err(|error| error.within("thermal"))?;
        }
        if let Some(placement) = self.placement {
            placement.check().map_err(|error| error.within("placement"))?;
        }
        let sizes = self.sizes();
        if sizes.units == 0 {
            return Err(SpecError::of("geometry.over_provision_per_mille", "nothing is left for the host"));
        }
        if let Some(skew) = &self.skew {
            skew.check_size(sizes.units, self.firmware.unit_bytes).map_err(|error| error.within("skew"))?;
        }
        // A die may get a little more than its share.
        let used = sizes.units.div_ceil(sizes.dies) + sizes.block_units;
        if used > sizes.die_units_max {
            let what = format!(
                "too little: a die of {} blocks begins to collect at {} free ones, and needs some more to gain by it",
                sizes.blocks, sizes.collect_blocks
            );
            return Err(SpecError::of("geometry.over_provision_per_mille", what));
        }
        Ok(())
    }

    fn check_skew(&self) -> Result<(), SpecError> {
        let is_skewed = self.firmware.steady == Some(SteadyPattern::Skewed);
        if let Some(skew) = &self.skew {
            skew.check(self.firmware.unit_bytes).map_err(|error| error.within("skew"))?;
        }
        let (key, what) = match (&self.skew, is_skewed) {
            (Some(_), false) => ("skew", "only firmware.steady = \"skewed\" has it"),
            (None, true) => ("firmware.steady", "\"skewed\" needs the table skew"),
            _ => return Ok(()),
        };
        Err(SpecError::of(key, what))
    }

    /// The specification has passed `check`.
    /// The device's size.
    pub(crate) fn sectors(&self) -> Sector {
        u64::from(self.sizes().units) * u64::from(self.firmware.unit_bytes) / SECTOR_BYTES
    }

    pub(super) fn sizes(&self) -> Sizes {
        let geometry = &self.geometry;
        let page_units = geometry.page_bytes / self.firmware.unit_bytes;
        let program_units = page_units * geometry.planes_per_die;
        let kept = 1000 - u128::from(geometry.over_provision_per_mille);
        let slc_blocks = self.slc.map_or(0, |slc| slc.blocks_per_plane);
        let main_blocks = geometry.blocks_per_plane - slc_blocks;
        let share = |per_mille: u32| (u64::from(main_blocks) * u64::from(per_mille) / 1000) as u32;
        let handles = self.placement.map_or(1, |placement| placement.handles);
        let moved_handles = match self.placement {
            Some(placement) if placement.is_persistent() => handles,
            _ => 1,
        };
        // What is moved may need a new block for each of its handles before an erased one comes back.
        let collect_only_blocks = share(self.firmware.collect_only_per_mille).max(1 + moved_handles);
        let collect_blocks = share(self.firmware.collect_per_mille).max(collect_only_blocks + 1);
        let block_units = program_units * geometry.pages_per_block;
        // Open blocks, one that is being collected, and so many that what is not wanted in all the others together
        // makes a page in at least one of them.
        let open = handles + moved_handles;
        let spare = collect_blocks + open + 1 + main_blocks.div_ceil(geometry.pages_per_block);
        Sizes {
            dies: geometry.channels * geometry.dies_per_channel,
            blocks: geometry.blocks_per_plane,
            pages: geometry.pages_per_block,
            page_units,
            program_units,
            block_units,
            units: (u128::from(self.units_of_flash()) * kept * u128::from(main_blocks)
                / u128::from(geometry.blocks_per_plane)
                / 1000) as u32,
            collect_blocks,
            collect_only_blocks,
            collector: self.firmware.collector.unwrap_or_default(),
            window_blocks: share(self.firmware.collect_window_per_mille.unwrap_or_default()).max(1),
            die_units_max: main_blocks.saturating_sub(spare) * block_units,
            main_blocks,
            slc_pages: self.slc.map_or(0, |slc| geometry.pages_per_block / slc.bits_per_cell),
            handles,
            moved_handles,
        }
    }

    fn units_of_flash(&self) -> u64 {
        let geometry = &self.geometry;
        [
            geometry.channels,
            geometry.dies_per_channel,
            geometry.planes_per_die,
            geometry.blocks_per_plane,
            geometry.pages_per_block,
            geometry.page_bytes / self.firmware.unit_bytes,
        ]
        .iter()
        .fold(1, |product: u64, &factor| product.saturating_mul(u64::from(factor)))
    }
}

const UNITS_MAX: u64 = 1 << 31;

impl Sizes {
    /// What of the host's units a die holds, on average.
    pub(super) fn die_units(&self) -> f64 {
        f64::from(self.units) / f64::from(self.dies)
    }

    /// Units that a block has for a collector: the last page that is moved from it is half empty, on average.
    pub(super) fn collected_units(&self) -> f64 {
        f64::from(self.block_units) - f64::from(self.program_units - 1) / 2.0
    }

    /// Free blocks of a die that writes at random leave it. One that collects in turn with programs keeps more of them
    /// than one that has to collect more than that. Its two open blocks are half used: they count as one that is free.
    pub(super) fn free_blocks(&self, amplification: f64) -> u32 {
        let steps_of_a_page = amplification - 1.0 + amplification / f64::from(self.pages);
        match steps_of_a_page < 1.0 {
            true => self.collect_blocks + 1,
            false => self.collect_only_blocks + 1,
        }
    }

    /// What uniform random writes come to in so many blocks of a die, which hold so many valid units.
    pub(super) fn steady_law(&self, blocks: f64, valid: f64) -> SteadyLaw {
        let units = self.collected_units();
        match self.collector {
            Collector::Greedy => SteadyLaw::greedy(blocks, units, valid),
            Collector::CostBenefit | Collector::Windowed => SteadyLaw::by_age(blocks, units, valid),
        }
    }
}

impl Geometry {
    fn check(&self) -> Result<(), SpecError> {
        for (key, value, most) in [
            ("channels", self.channels, 256),
            ("dies_per_channel", self.dies_per_channel, 256),
            ("planes_per_die", self.planes_per_die, 16),
            ("blocks_per_plane", self.blocks_per_plane, 1 << 20),
            ("pages_per_block", self.pages_per_block, 1 << 16),
            ("page_bytes", self.page_bytes, 1 << 20),
        ] {
            within(key, u64::from(value), 1, most)?;
        }
        whole_sectors("page_bytes", u64::from(self.page_bytes))?;
        within("over_provision_per_mille", u64::from(self.over_provision_per_mille), 1, 999)
    }
}

impl SlcCache {
    fn check(&self, geometry: &Geometry) -> Result<(), SpecError> {
        let blocks = self.blocks_per_plane;
        within("blocks_per_plane", u64::from(blocks), 1, 1 << 20)?;
        if blocks >= geometry.blocks_per_plane {
            let what = format!("expected less than geometry.blocks_per_plane, {}", geometry.blocks_per_plane);
            return Err(SpecError::of("blocks_per_plane", what));
        }
        within("bits_per_cell", u64::from(self.bits_per_cell), 2, 8)?;
        if geometry.pages_per_block < self.bits_per_cell {
            let what = format!("expected at most geometry.pages_per_block, {}", geometry.pages_per_block);
            return Err(SpecError::of("bits_per_cell", what));
        }
        within("page_program_ns", self.page_program_ns, 0, WORK_NS_MAX)?;
        within("idle_ns", self.idle_ns, 0, WORK_NS_MAX)
    }
}

impl Timing {
    fn check(&self) -> Result<(), SpecError> {
        for (key, time_ns) in [
            ("page_read_ns", self.page_read_ns),
            ("page_program_ns", self.page_program_ns),
            ("block_erase_ns", self.block_erase_ns),
            ("suspend.program_ns", self.suspend.map_or(0, |suspend| suspend.program_ns)),
            ("suspend.erase_ns", self.suspend.map_or(0, |suspend| suspend.erase_ns)),
        ] {
            within(key, time_ns, 0, WORK_NS_MAX)?;
        }
        rate("channel_bytes_per_s", self.channel_bytes_per_s)
    }
}

impl Timing {
    pub(super) fn has_cache_register(&self) -> bool {
        self.cache_register.unwrap_or(false)
    }
}

impl Firmware {
    pub(super) fn is_protected(&self) -> bool {
        self.power_loss_protection.unwrap_or(false)
    }

    pub(crate) fn reports_write_cache(&self) -> bool {
        self.reports_write_cache.unwrap_or(!self.is_protected())
    }

    fn check(&self) -> Result<(), SpecError> {
        within("command_ns", self.command_ns, 0, WORK_NS_MAX)?;
        within("write_ns", self.write_ns.unwrap_or_default(), 0, WORK_NS_MAX)?;
        if let Some(stall) = self.stall {
            within("stall.writes", u64::from(stall.writes), 1, 1 << 30)?;
            within("stall.ns", stall.ns, 0, WORK_NS_MAX)?;
        }
        within("flush_ns", self.flush_ns.unwrap_or_default(), 0, WORK_NS_MAX)?;
        if self.flush_ns.is_some() && !self.reports_write_cache() {
            let what = "the device reports no write cache, and so gets no flush";
            return Err(SpecError::of("flush_ns", what));
        }
        within("cores", u64::from(self.cores), 1, 1024)?;
        whole_sectors("unit_bytes", u64::from(self.unit_bytes))?;
        within("buffer_ns_max", self.buffer_ns_max, 0, WORK_NS_MAX)?;
        within("collect_per_mille", u64::from(self.collect_per_mille), 0, 999)?;
        within("collect_window_per_mille", u64::from(self.collect_window_per_mille.unwrap_or(1)), 1, 1000)?;
        let is_windowed = self.collector == Some(Collector::Windowed);
        if is_windowed != self.collect_window_per_mille.is_some() {
            let what = match is_windowed {
                true => "must be given with collector = \"windowed\"",
                false => "only a windowed collector has it",
            };
            return Err(SpecError::of("collect_window_per_mille", what));
        }
        if self.steady.is_some() && !self.filled {
            let what = "only a filled device is in a steady state: set filled = true";
            return Err(SpecError::of("steady", what));
        }
        if let Some(bytes) = self.steady_block_bytes {
            within("steady_block_bytes", u64::from(bytes), 512, 1 << 24)?;
            let takes_it = match self.steady {
                Some(SteadyPattern::Random | SteadyPattern::Permutation) => true,
                Some(SteadyPattern::Sequential) => self.steady_stride_bytes.is_some(),
                Some(SteadyPattern::Skewed) | None => false,
            };
            if !takes_it {
                let what = "only steady = \"random\", \"permutation\" and a sequential one in strides have it";
                return Err(SpecError::of("steady_block_bytes", what));
            }
        }
        if let Some(stride) = self.steady_stride_bytes {
            within("steady_stride_bytes", stride, 512, u64::MAX)?;
            let block = self.steady_block_bytes.unwrap_or(self.unit_bytes);
            let what = match self.steady {
                Some(SteadyPattern::Sequential) if !stride.is_multiple_of(u64::from(block)) => {
                    format!("expected a multiple of firmware.steady_block_bytes, {block}")
                }
                Some(SteadyPattern::Sequential) if !block.is_multiple_of(self.unit_bytes) => {
                    format!("firmware.steady_block_bytes is no multiple of unit_bytes, {}", self.unit_bytes)
                }
                Some(SteadyPattern::Sequential) => String::new(),
                _ => "only steady = \"sequential\" has it".to_owned(),
            };
            if !what.is_empty() {
                return Err(SpecError::of("steady_stride_bytes", what));
            }
        }
        let most = u64::from(self.collect_per_mille);
        within("collect_only_per_mille", u64::from(self.collect_only_per_mille), 0, most)
    }
}
