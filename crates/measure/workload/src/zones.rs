//! Parts of a range that are drawn more often than others.

use crate::spec::Zone;
use base::rng::Stream;

#[derive(Clone, Debug)]
pub(crate) struct Zones {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    /// A draw below this, and not below that of the part before, goes here.
    below: u64,
    first: u64,
    places: u64,
}

impl Zones {
    /// `places`: how many aligned offsets there are. The zones must have passed `check`.
    pub fn new(zones: &[Zone], align_bytes: u64, places: u64) -> Zones {
        let weights: f64 = zones.iter().map(|zone| zone.weight).sum();
        let (mut start, mut weight) = (0u64, 0.0);
        let mut parts = Vec::new();
        for zone in zones {
            let end = start.saturating_add(zone.length_bytes);
            let first = start.div_ceil(align_bytes);
            if zone.weight > 0.0 {
                weight += zone.weight;
                parts.push(Part {
                    below: (weight / weights * 2f64.powi(64)) as u64,
                    first,
                    places: end.div_ceil(align_bytes).min(places) - first,
                });
            }
            start = end;
        }
        // Rounding must leave no draw without a zone.
        if let Some(last) = parts.last_mut() {
            last.below = u64::MAX;
        }
        Zones { parts }
    }

    /// The number of an aligned offset, from 0.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let draw = stream.next_u64();
        let last = self.parts.len() - 1;
        let found = self.parts.iter().position(|part| draw < part.below);
        let part = self.parts[found.unwrap_or(last)];
        part.first + stream.below(part.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::stream;

    #[test]
    fn each_zone_gets_its_share_and_nothing_behind_the_last() {
        let zone = |weight, length_bytes| Zone { weight, length_bytes };
        let zones = Zones::new(&[zone(50.0, 5 << 12), zone(0.0, 5 << 12), zone(50.0, 20 << 12)], 4096, 100);
        let mut stream = stream(7, 1);
        let mut counts = [0u32; 100];
        for _ in 0..100_000 {
            counts[zones.draw(&mut stream) as usize] += 1;
        }
        let share = |from: usize, to: usize| f64::from(counts[from..to].iter().sum::<u32>()) / 100_000.0;
        assert!((share(0, 5) - 0.5).abs() < 0.01);
        assert_eq!(share(5, 10), 0.0);
        assert!((share(10, 30) - 0.5).abs() < 0.01);
        assert!(counts[10..30].iter().all(|&count| count > 2_000));
        assert_eq!(share(30, 100), 0.0);
    }

    #[test]
    fn zones_that_no_offset_begins_at_hold_the_next_one() {
        let zones =
            Zones::new(&[Zone { weight: 1.0, length_bytes: 100 }, Zone { weight: 1.0, length_bytes: 5000 }], 4096, 10);
        let mut stream = stream(7, 1);
        let drawn: Vec<u64> = (0..100).map(|_| zones.draw(&mut stream)).collect();
        assert!(drawn.iter().all(|&place| place < 2));
        assert!(drawn.contains(&0) && drawn.contains(&1));
    }
}
