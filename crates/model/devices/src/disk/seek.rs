//! How long the arm takes from one cylinder to another.

use crate::disk::spec::Seek;
use events::time::Time;

/// Seek times by distance in cylinders, from points that rise in both.
#[derive(Clone, Debug)]
pub(super) struct SeekCurve {
    ns: Vec<u32>,
    /// The least time of each 2^`floor_shift` distances: small enough to stay in the processor's nearest cache.
    floor_ns: Vec<u32>,
    floor_shift: u32,
}

const FLOORS_MAX: usize = 512;

impl SeekCurve {
    /// For distances below `cylinders`. Interpolated in the logarithm of the distance. A shorter seek than the first
    /// point's takes as long as that: what is left is settling. Beyond the last point it stays level.
    pub(super) fn new(points: &[Seek], cylinders: u32) -> SeekCurve {
        let ns = times(points, cylinders.max(1));
        let floor_shift = (0..).find(|shift| ns.len() >> shift < FLOORS_MAX).expect("every number ends by shifting");
        let floor_ns = ns.chunks(1 << floor_shift).map(|times| times.iter().copied().min().unwrap_or(0)).collect();
        SeekCurve { ns, floor_ns, floor_shift }
    }

    #[inline]
    pub(super) fn time_ns(&self, distance: u32) -> Time {
        Time::from(self.ns[distance as usize])
    }

    /// No more than `time_ns`, and quicker to find out.
    #[inline]
    pub(super) fn time_ns_min(&self, distance: u32) -> Time {
        Time::from(self.floor_ns[(distance >> self.floor_shift) as usize])
    }

    pub(super) fn longest_ns(&self) -> Time {
        self.ns.last().map_or(0, |&time| Time::from(time))
    }

    /// To the next cylinder, if there is one.
    pub(super) fn step_ns(&self) -> Time {
        self.ns.get(1).map_or(0, |&time| Time::from(time))
    }
}

fn times(points: &[Seek], cylinders: u32) -> Vec<u32> {
    let mut times = Vec::with_capacity(cylinders as usize);
    times.push(0);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        times.resize(cylinders as usize, 0);
        return times;
    };
    times.resize(first.cylinders.min(cylinders) as usize, first.time_ns as u32);
    for pair in points.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let way = libm::log(f64::from(high.cylinders) / f64::from(low.cylinders));
        let more_ns = (high.time_ns - low.time_ns) as f64;
        for distance in low.cylinders..high.cylinders.min(cylinders) {
            let share = libm::log(f64::from(distance) / f64::from(low.cylinders)) / way;
            times.push((low.time_ns as f64 + share * more_ns) as u32);
        }
    }
    times.resize(cylinders as usize, last.time_ns as u32);
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::test_disk;

    #[test]
    fn the_curve_goes_through_its_points() {
        let curve = SeekCurve::new(&test_disk().seeks, 300);
        assert_eq!(curve.time_ns(0), 0);
        assert_eq!(curve.time_ns(1), 1_000_000);
        assert_eq!(curve.time_ns(100), 5_000_000);
        // Halfway between 1 and 100 by logarithm is 10.
        assert_eq!(curve.time_ns(10), 3_000_000);
        assert_eq!(curve.time_ns(150), 5_000_000);
        assert_eq!(curve.longest_ns(), 5_000_000);
    }

    #[test]
    fn points_beyond_the_last_cylinder_and_shorter_ways_than_the_first_do_no_harm() {
        let far = |cylinders, time_ns| Seek { cylinders, time_ns };
        let curve = SeekCurve::new(&[far(20, 1_000_000), far(500, 2_000_000)], 10);
        assert_eq!((curve.time_ns(0), curve.time_ns(9)), (0, 1_000_000));
        assert_eq!(SeekCurve::new(&[], 1).longest_ns(), 0);
    }

    #[test]
    fn the_least_time_is_never_above_the_time() {
        let curve = SeekCurve::new(&test_disk().seeks, 5_000);
        assert!(curve.floor_ns.len() <= FLOORS_MAX);
        let together = 1 << curve.floor_shift;
        for distance in 0..5_000 {
            let (least, time) = (curve.time_ns_min(distance), curve.time_ns(distance));
            assert!(least <= time && (distance < together || least >= 1_000_000));
        }
    }
}
