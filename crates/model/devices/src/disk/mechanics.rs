//! Where a sector is, and how long the arm and the platter take to bring it under a head.
//!
//! Rotation is a clock: the angle at time t is t / revolution. Angles are fractions of a revolution in 32 bits, so that
//! their differences wrap by themselves. Tracks are skewed by just what a switch takes, so that a sequential transfer
//! waits for the switch and not for a revolution.

use crate::disk::seek::SeekCurve;
use crate::disk::spec::DiskSpec;
use block_layer::Sector;
use events::time::{SECOND, Time};

/// An angle in units of 2^-32 revolutions.
type Angle = u32;

/// Rotation, zones, skews and seek curve of a disk, from its specification.
#[derive(Clone, Debug)]
pub struct Mechanics {
    revolution_ns: Time,
    /// 2^64 / revolution_ns.
    angle_per_ns: u64,
    surfaces: u32,
    zones: Vec<ZonePlace>,
    /// The zone of every 2^`hint_shift`-th sector: from there it is not far to any other's.
    zone_hints: Vec<u16>,
    hint_shift: u32,
    sectors: Sector,
    seeks: SeekCurve,
    head_switch_ns: Time,
    write_settle_ns: Time,
}

#[derive(Clone, Debug)]
struct ZonePlace {
    first_sector: Sector,
    first_cylinder: u32,
    sectors_per_track: u32,
    /// The part of a whole turn that the angle advances per sector under a head.
    angle_per_sector: f64,
    /// Between the first sectors of two tracks of one cylinder, and of the last track and the next cylinder's first.
    track_skew: Angle,
    cylinder_skew: Angle,
    /// Angles of the first sector of the zone's first track.
    first_angle: Angle,
}

/// Where a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalSector {
    /// From the outer edge, 0 first.
    pub cylinder: u32,
    /// The head, 0 first.
    pub surface: u32,
    /// The angle of the sector's start.
    angle: Angle,
    zone: u16,
    /// Within its track.
    sector: u32,
}

/// Which track is under the heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arm {
    /// From the outer edge, 0 first.
    pub cylinder: u32,
    /// The head, 0 first.
    pub surface: u32,
}

/// A time from which ways are compared: the platter's angle a little earlier than that, so that rounding misses nothing.
pub struct ReferenceTime {
    angle: Angle,
    early_ns: i64,
}

impl PhysicalSector {
    /// The arm when it is on the sector's track.
    pub fn arm(&self) -> Arm {
        Arm { cylinder: self.cylinder, surface: self.surface }
    }
}

impl Mechanics {
    /// The specification has passed `DiskSpec::check`.
    pub fn new(spec: &DiskSpec) -> Mechanics {
        let revolution_ns = 60 * SECOND / Time::from(spec.revolutions_per_minute);
        let cylinders: u32 = spec.zones.iter().map(|zone| zone.cylinders).sum();
        let seeks = SeekCurve::new(&spec.seeks, cylinders);
        let mut mechanics = Mechanics {
            revolution_ns,
            angle_per_ns: ((1u128 << 64) / u128::from(revolution_ns)) as u64,
            surfaces: spec.surfaces,
            zones: Vec::with_capacity(spec.zones.len()),
            zone_hints: Vec::new(),
            hint_shift: 0,
            sectors: 0,
            seeks,
            head_switch_ns: spec.head_switch_ns,
            write_settle_ns: spec.write_settle_ns,
        };
        let (mut first_cylinder, mut first_angle) = (0, 0);
        for zone in &spec.zones {
            let angle_per_sector = TURN / f64::from(zone.sectors_per_track);
            let skew = |switch_ns: Time| mechanics.skew(switch_ns, angle_per_sector);
            let place = ZonePlace {
                first_sector: mechanics.sectors,
                first_cylinder,
                sectors_per_track: zone.sectors_per_track,
                angle_per_sector,
                // A write must make it too.
                track_skew: skew(spec.head_switch_ns + spec.write_settle_ns),
                cylinder_skew: skew(mechanics.seeks.step_ns() + spec.write_settle_ns),
                first_angle,
            };
            let tracks = u64::from(zone.cylinders) * u64::from(spec.surfaces);
            first_angle = place.first_angle_of(tracks, spec.surfaces);
            first_cylinder += zone.cylinders;
            mechanics.zones.push(place);
            mechanics.sectors += zone.sectors(spec.surfaces);
        }
        mechanics.hint_zones();
        mechanics
    }

    fn hint_zones(&mut self) {
        self.hint_shift =
            (0..).find(|shift| self.sectors >> shift < ZONE_HINTS_MAX).expect("every number ends by shifting");
        self.zone_hints = (0..=self.sectors >> self.hint_shift)
            .map(|hint| {
                let sector = hint << self.hint_shift;
                let after = |zone: &ZonePlace| zone.first_sector <= sector;
                (self.zones.partition_point(after) - 1) as u16
            })
            .collect();
    }

    /// Size of the disk, in sectors of 512 bytes.
    pub fn sectors(&self) -> Sector {
        self.sectors
    }

    /// Where a sector of the disk lies.
    #[inline]
    pub fn place(&self, sector: Sector) -> PhysicalSector {
        let number = self.zone_of(sector);
        let zone = &self.zones[number];
        let inside = sector - zone.first_sector;
        let track = inside / u64::from(zone.sectors_per_track);
        let sector = (inside % u64::from(zone.sectors_per_track)) as u32;
        let cylinder = (track / u64::from(self.surfaces)) as u32;
        PhysicalSector {
            cylinder: zone.first_cylinder + cylinder,
            surface: (track % u64::from(self.surfaces)) as u32,
            angle: zone
                .first_angle_of(track, self.surfaces)
                .wrapping_add((f64::from(sector) * zone.angle_per_sector) as u64 as Angle),
            zone: number as u16,
            sector,
        }
    }

    #[inline]
    fn zone_of(&self, sector: Sector) -> usize {
        let mut zone = usize::from(self.zone_hints[(sector >> self.hint_shift) as usize]);
        while let Some(next) = self.zones.get(zone + 1)
            && next.first_sector <= sector
        {
            zone += 1;
        }
        zone
    }

    /// From `now` until the sector is under its head: seek or head switch, settling, rotation.
    #[inline]
    pub fn positioning_ns(&self, now: Time, arm: Arm, to: &PhysicalSector, write: bool) -> Time {
        let moved = if arm.cylinder != to.cylinder {
            self.seeks.time_ns(arm.cylinder.abs_diff(to.cylinder))
        } else if arm.surface != to.surface {
            self.head_switch_ns
        } else {
            return self.rotation_ns(now, to);
        };
        let settled = if write { moved + self.write_settle_ns } else { moved };
        settled + self.rotation_ns(now + settled, to)
    }

    /// No more than `positioning_ns` from `since` or later, and quicker to find out: the first turns of the platter that
    /// the shortest seek leaves time for.
    #[inline]
    pub fn positioning_ns_min(&self, since: &ReferenceTime, arm: Arm, to: &PhysicalSector) -> i64 {
        let revolution_ns = self.revolution_ns as i64;
        let seek_ns = self.seeks.time_ns_min(arm.cylinder.abs_diff(to.cylinder)) as i64;
        let turn_ns = (u64::from(to.angle.wrapping_sub(since.angle)) * self.revolution_ns) >> 32;
        let mut way_ns = turn_ns as i64 - since.early_ns;
        // A third turn would be as right, but hardly ever adds anything.
        for _ in 0..2 {
            if way_ns + 2 * since.early_ns < seek_ns {
                way_ns += revolution_ns;
            }
        }
        way_ns
    }

    /// For `positioning_ns_min`.
    pub fn since(&self, now: Time) -> ReferenceTime {
        let early = now.saturating_sub(2 * ROUNDING_NS);
        ReferenceTime { angle: self.angle(early), early_ns: (now - early) as i64 }
    }

    /// The longest that `positioning_ns` can be.
    pub fn positioning_ns_max(&self) -> Time {
        let seek_ns = self.seeks.longest_ns();
        seek_ns.max(self.head_switch_ns) + self.write_settle_ns + self.revolution_ns
    }

    /// From the start of the first sector to the end of the last, switches between tracks in it; and where that leaves
    /// the arm.
    pub fn transfer(&self, from: &PhysicalSector, sectors: u32) -> (Time, Arm) {
        let mut number = usize::from(from.zone);
        let mut zone = &self.zones[number];
        let mut arm = from.arm();
        let mut left = sectors;
        let mut here = left.min(zone.sectors_per_track - from.sector);
        let mut turned = f64::from(here) * zone.angle_per_sector;
        left -= here;
        while left > 0 {
            arm.surface += 1;
            turned += if arm.surface < self.surfaces {
                f64::from(zone.track_skew)
            } else {
                arm = Arm { cylinder: arm.cylinder + 1, surface: 0 };
                f64::from(zone.cylinder_skew)
            };
            if let Some(next) = self.zones.get(number + 1)
                && arm.cylinder == next.first_cylinder
            {
                number += 1;
                zone = next;
            }
            here = left.min(zone.sectors_per_track);
            turned += f64::from(here) * zone.angle_per_sector;
            left -= here;
        }
        ((turned / TURN * self.revolution_ns as f64) as Time, arm)
    }

    /// Time that a sector takes in a long sequential transfer at that place, its share of the switches in it.
    pub fn streaming_ns_per_sector(&self, at: Sector) -> f64 {
        let zone = &self.zones[self.zone_of(at)];
        let surfaces = f64::from(self.surfaces);
        let turned = TURN + (f64::from(zone.track_skew) * (surfaces - 1.0) + f64::from(zone.cylinder_skew)) / surfaces;
        turned / TURN * self.revolution_ns as f64 / f64::from(zone.sectors_per_track)
    }

    #[inline]
    fn rotation_ns(&self, now: Time, to: &PhysicalSector) -> Time {
        // Angles and times are rounded: what follows without a gap must not be missed by a nanosecond.
        let early = now.saturating_sub(ROUNDING_NS);
        let wait = (u64::from(to.angle.wrapping_sub(self.angle(early))) * self.revolution_ns) >> 32;
        wait.saturating_sub(now - early)
    }

    #[inline]
    fn angle(&self, now: Time) -> Angle {
        ((u128::from(now) * u128::from(self.angle_per_ns)) >> 32) as Angle
    }

    /// The least whole number of sectors in which a switch of that length is over.
    fn skew(&self, switch_ns: Time, angle_per_sector: f64) -> Angle {
        let turned = switch_ns as f64 / self.revolution_ns as f64 * TURN;
        (libm::ceil(turned / angle_per_sector) * angle_per_sector) as u64 as Angle
    }
}

const TURN: f64 = 4_294_967_296.0;

const ZONE_HINTS_MAX: u64 = 1024;

const ROUNDING_NS: Time = 200;

impl ZonePlace {
    /// Where the first sector of the zone's `track`-th track is.
    #[inline]
    fn first_angle_of(&self, track: u64, surfaces: u32) -> Angle {
        let cylinders = track / u64::from(surfaces);
        let heads = track - cylinders;
        self.first_angle
            .wrapping_add((heads as Angle).wrapping_mul(self.track_skew))
            .wrapping_add((cylinders as Angle).wrapping_mul(self.cylinder_skew))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::test_disk;
    use events::time::MILLISECOND;
    use proptest::prelude::*;

    #[test]
    fn a_sequential_transfer_loses_no_revolution_at_a_switch() {
        let mechanics = Mechanics::new(&test_disk());
        // Two tracks of 100 sectors, 10 ms a turn, with a head switch of 1 ms and 0.5 ms to settle between them.
        let (time, arm) = mechanics.transfer(&mechanics.place(0), 200);
        assert!(time.abs_diff(20 * MILLISECOND + 1_500_000) < 10, "{time}");
        assert_eq!(arm, Arm { cylinder: 0, surface: 1 });
    }

    #[test]
    fn just_missed_is_a_whole_revolution() {
        let mechanics = Mechanics::new(&test_disk());
        let (arm, place) = (Arm::default(), mechanics.place(10));
        assert_eq!(mechanics.positioning_ns(MILLISECOND, arm, &place, false), 0);
        let missed = mechanics.positioning_ns(MILLISECOND + 1_000, arm, &place, false);
        assert!(missed > 9 * MILLISECOND, "{missed}");
    }

    proptest! {
        #[test]
        fn every_sector_has_a_place_of_its_own(a in 0u64..60_000, b in 0u64..60_000) {
            let mechanics = Mechanics::new(&test_disk());
            prop_assume!(a != b && a < mechanics.sectors() && b < mechanics.sectors());
            let (a, b) = (mechanics.place(a), mechanics.place(b));
            prop_assert_ne!((a.cylinder, a.surface, a.sector), (b.cylinder, b.surface, b.sector));
        }

        #[test]
        fn a_transfer_ends_where_the_next_sector_begins(first in 0u64..50_000, sectors in 1u32..1000) {
            let mechanics = Mechanics::new(&test_disk());
            prop_assume!(first + u64::from(sectors) < mechanics.sectors());
            let (from, after) = (mechanics.place(first), mechanics.place(first + u64::from(sectors)));
            let began = mechanics.positioning_ns(0, Arm { cylinder: from.cylinder, surface: from.surface }, &from, false);
            let (time, arm) = mechanics.transfer(&from, sectors);
            let ended = began + time;
            if (arm.cylinder, arm.surface) == (after.cylinder, after.surface) {
                let wait = mechanics.positioning_ns(ended, arm, &after, false);
                prop_assert!(wait < 200, "{}", wait);
            }
        }
    }
}
