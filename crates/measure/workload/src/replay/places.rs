//! Where an I/O of the trace goes on devices of other sizes and another number.

use crate::traced::{Mapping, Schedule};
use base::SECTOR_BYTES;

/// The way from a traced device's sectors to the job's files.
#[derive(Clone, Debug)]
pub(super) struct AddressMap {
    mapping: Mapping,
    region_bytes: u64,
    align_bytes: u64,
    /// By traced device: the job's file, and where in the addresses of that file's devices it begins.
    bases: Vec<(u32, u64)>,
    /// By file.
    spaces: Vec<Space>,
}

/// The addresses of all traced devices that go to one file, one after the other.
#[derive(Clone, Debug, Default)]
struct Space {
    size_bytes: u64,
    extent_bytes: u64,
    /// In order; only where the mapping needs them.
    touched: Vec<u64>,
}

/// The place in one of the job's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedPlace {
    pub(super) slot: u32,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl AddressMap {
    /// `sizes`: of the job's files, in bytes. Traced devices take the files in turn. Err: what is wrong with the sizes.
    pub(super) fn new(
        schedule: &Schedule,
        mapping: Mapping,
        region_bytes: u64,
        align_bytes: u64,
        sizes: &[u64],
    ) -> Result<AddressMap, String> {
        let largest = schedule.largest_bytes().next_multiple_of(align_bytes);
        let mut spaces: Vec<Space> = sizes
            .iter()
            .map(|&size| Space { size_bytes: size / align_bytes * align_bytes, ..Space::default() })
            .collect();
        if let Some(small) = spaces.iter().find(|space| space.size_bytes < largest) {
            return Err(format!("a file of {} bytes holds no I/O of {largest} bytes", small.size_bytes));
        }
        let mut bases = Vec::with_capacity(schedule.devices.len());
        for (number, device) in schedule.devices.iter().enumerate() {
            let slot = number % spaces.len();
            let space = &mut spaces[slot];
            let base = space.extent_bytes;
            bases.push((slot as u32, base));
            space.extent_bytes += device.extent_bytes.next_multiple_of(region_bytes);
            if mapping == Mapping::Regions {
                let first = base / region_bytes;
                let touched = schedule.touched(number as u16, region_bytes);
                space.touched.extend(touched.iter().map(|own| first + own));
            }
        }
        Ok(AddressMap { mapping, region_bytes, align_bytes, bases, spaces })
    }

    /// The place of an I/O of the trace.
    pub(super) fn of(&self, device: u16, sector: u64, sectors: u32) -> MappedPlace {
        let (slot, base) = self.bases[usize::from(device)];
        let space = &self.spaces[slot as usize];
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let traced = base + sector * SECTOR_BYTES;
        let mapped = match self.mapping {
            Mapping::Wrap => traced,
            Mapping::Scale => self.scaled(space, traced),
            Mapping::Regions => {
                let region = traced / self.region_bytes;
                let rank = space.touched.partition_point(|&touched| touched < region) as u64;
                rank * self.region_bytes + traced % self.region_bytes
            }
        };
        let wrapped = mapped % space.size_bytes;
        let offset = wrapped / self.align_bytes * self.align_bytes;
        // Only a discard may be longer than its file, or than an operation.
        let longest = u64::from(u32::MAX) / self.align_bytes * self.align_bytes;
        let bytes = (wrapped + bytes - offset).next_multiple_of(self.align_bytes).min(space.size_bytes).min(longest);
        MappedPlace { slot, offset: offset.min(space.size_bytes - bytes), bytes: bytes as u32 }
    }

    fn scaled(&self, space: &Space, traced: u64) -> u64 {
        let regions = space.extent_bytes.div_ceil(self.region_bytes).max(1);
        let room = (space.size_bytes / self.region_bytes).max(1);
        if regions <= room {
            return traced;
        }
        let region = u128::from(traced / self.region_bytes) * u128::from(room);
        (region / u128::from(regions)) as u64 * self.region_bytes + traced % self.region_bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::op::OpKind;
    use crate::traced::{ScheduledIo, TracedDevice};

    fn schedule(sectors: &[(u16, u64, u32)]) -> Schedule {
        let io = |&(device, sector, sectors): &(u16, u64, u32)| ScheduledIo {
            at_ns: 0,
            took_ns: 1,
            sector,
            sectors,
            process: 0,
            device,
            kind: OpKind::Read,
        };
        let ios: Vec<_> = sectors.iter().map(io).collect();
        let devices = (0..2).map(|device| TracedDevice {
            name: device.to_string(),
            extent_bytes: ios
                .iter()
                .filter(|io| io.device == device)
                .map(|io| (io.sector + u64::from(io.sectors)) * SECTOR_BYTES)
                .max()
                .unwrap_or(0),
            ios: 0,
        });
        let devices = devices.collect();
        Schedule::new(ios, devices, Vec::new(), 0)
    }

    #[test]
    fn what_fits_stays_where_it_was() {
        let schedule = schedule(&[(0, 8, 8), (0, 800, 16)]);
        for mapping in [Mapping::Wrap, Mapping::Scale] {
            let places = AddressMap::new(&schedule, mapping, 4096, 512, &[1 << 20]).unwrap();
            let place = places.of(0, 800, 16);
            assert_eq!((place.slot, place.offset, place.bytes), (0, 800 * 512, 16 * 512));
        }
    }

    #[test]
    fn untouched_regions_take_no_room_and_runs_stay_runs() {
        let far = 1 << 30;
        let schedule = schedule(&[(0, 0, 8), (0, far, 8), (0, far + 8, 8)]);
        let places = AddressMap::new(&schedule, Mapping::Regions, 1 << 16, 512, &[1 << 20]).unwrap();
        let offsets: Vec<u64> = schedule.ios.iter().map(|io| places.of(0, io.sector, io.sectors).offset).collect();
        assert_eq!(offsets, [0, 1 << 16, (1 << 16) + 4096]);
    }

    #[test]
    fn two_devices_on_one_file_do_not_share_their_place() {
        let schedule = schedule(&[(0, 0, 8), (1, 0, 8)]);
        let places = AddressMap::new(&schedule, Mapping::Wrap, 4096, 512, &[1 << 20]).unwrap();
        assert_ne!(places.of(0, 0, 8).offset, places.of(1, 0, 8).offset);
        let places = AddressMap::new(&schedule, Mapping::Wrap, 4096, 512, &[1 << 20, 1 << 20]).unwrap();
        assert_eq!((places.of(0, 0, 8).slot, places.of(1, 0, 8).slot), (0, 1));
        assert!(AddressMap::new(&schedule, Mapping::Wrap, 4096, 512, &[1 << 20, 512]).is_err());
    }

    proptest! {
        #[test]
        fn everything_lies_inside_its_file_and_on_its_sectors(
            ios in prop::collection::vec((0..2u16, 0..1u64 << 40, 1..256u32), 1..50),
            mapping in prop::sample::select(vec![Mapping::Wrap, Mapping::Scale, Mapping::Regions]),
            align in prop::sample::select(vec![512u64, 4096]), size in (1u64 << 18)..(1 << 30),
        ) {
            let schedule = schedule(&ios);
            let sizes = [size, size / 2 + (1 << 17)];
            let places = AddressMap::new(&schedule, mapping, 1 << 20, align, &sizes).unwrap();
            for io in &schedule.ios {
                let place = places.of(io.device, io.sector, io.sectors);
                let end = place.offset + u64::from(place.bytes);
                prop_assert!(end <= sizes[place.slot as usize]);
                prop_assert!(u64::from(place.bytes) >= u64::from(io.sectors) * 512);
                prop_assert_eq!((place.offset % align, u64::from(place.bytes) % align), (0, 0));
            }
        }
    }
}
