//! What passes at once, what waits and until when, and that rates are kept.

use super::*;
use crate::invariants::bench::bio;
use events::time::MILLISECOND;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const TICK_NS: Time = 4 * MILLISECOND;

fn throttle(limits: &[ThrottleLimits]) -> Throttle {
    let mut groups = vec![ThrottleLimits::default()];
    groups.extend(limits);
    Throttle::new(ThrottleRules { hz: 250, slice_ticks: 25, groups })
}

fn reads(bytes: Option<u64>, bios: Option<u64>) -> ThrottleLimits {
    ThrottleLimits { bytes: [bytes, None], bios: [bios, None] }
}

fn of_group(group: u16, direction: Direction, number: u64) -> Bio {
    Bio { group, tag: number as u32, ..bio(0, direction, 8 * number) }
}

/// Everything that leaves until nothing waits, with its time.
fn drain(throttle: &mut Throttle) -> Vec<(Time, u32)> {
    let (mut gone, mut bios) = (Vec::new(), Vec::new());
    while let Some(at) = throttle.next_event() {
        throttle.advance(at, &mut bios);
        gone.extend(bios.drain(..).map(|bio| (at, bio.tag)));
        throttle.check().unwrap();
    }
    gone
}

#[test]
fn who_has_no_limit_never_waits() {
    let mut throttle = throttle(&[reads(Some(MIB), None)]);
    for number in 0..1000 {
        assert!(throttle.admit(0, of_group(0, Direction::Read, number)).is_some());
        assert!(throttle.admit(0, of_group(1, Direction::Write, number)).is_some());
    }
    assert_eq!(throttle.next_event(), None);
}

/// A slice of 100 ms at 1 MiB/s has room for 25 blocks; the next one lacks 1,639 bytes, less than a tick's, so that it
/// waits one tick beyond the slice.
#[test]
fn a_slice_of_blocks_goes_at_once_and_the_next_a_tick_after_its_end() {
    let mut throttle = throttle(&[reads(Some(MIB), None)]);
    let at_once = (0..60).filter_map(|number| throttle.admit(0, of_group(1, Direction::Read, number))).count();
    assert_eq!(at_once, 25);
    let gone = drain(&mut throttle);
    assert_eq!(gone[0], (26 * TICK_NS, 25));
    assert_eq!(gone.len(), 35);
}

/// 50 operations per second are 5 in a slice.
#[test]
fn operations_are_limited_by_slices_too() {
    let mut throttle = throttle(&[reads(None, Some(50))]);
    let at_once = (0..20).filter_map(|number| throttle.admit(0, of_group(1, Direction::Read, number))).count();
    assert_eq!(at_once, 5);
    let times: Vec<Time> = drain(&mut throttle).iter().map(|(at, _)| at / TICK_NS).collect();
    assert_eq!(times, [[25; 5], [50; 5], [75; 5]].concat());
}

/// Six reads and two writes of a group, then the next group; reads are issued before writes, one of each group in turn.
#[test]
fn groups_take_turns() {
    let both = ThrottleLimits { bytes: [Some(MIB); 2], bios: [None; 2] };
    let mut throttle = throttle(&[both, both]);
    for number in 0..25 {
        for group in [1, 2] {
            for direction in [Direction::Read, Direction::Write] {
                assert!(throttle.admit(0, of_group(group, direction, number)).is_some());
            }
        }
    }
    for number in 100..108 {
        for (group, offset) in [(1, 0), (2, 100)] {
            for (direction, more) in [(Direction::Read, 0), (Direction::Write, 200)] {
                let bio = of_group(group, direction, number + offset + more);
                assert!(throttle.admit(0, bio).is_none());
            }
        }
    }
    let tags: Vec<u32> = drain(&mut throttle).iter().map(|(_, tag)| *tag).collect();
    assert_eq!(tags[..6], [100, 200, 101, 201, 102, 202]);
    assert_eq!(tags[12..16], [106, 206, 107, 207]);
    assert_eq!(tags.len(), 32);
    assert_eq!(tags[16..20], [300, 400, 301, 401]);
}

proptest! {
    /// Whatever comes when: every bio leaves once and in the order of its queue, no more than the rate and two slices allow, and
    /// soon enough: what waits at a time is gone when the rate has served it, and two slices and a tick.
    #[test]
    fn rates_are_kept_and_nothing_is_lost(
        limit in 100_000_u64..50_000_000,
        gaps in prop::collection::vec((0_u64..40_000_000, any::<bool>()), 1..200),
    ) {
        let mut throttle = throttle(&[reads(Some(limit), None), reads(None, Some(limit / 4096))]);
        let mut now = 0;
        let mut gone: [Vec<(Time, u32)>; 2] = Default::default();
        let mut came = [0_u64; 2];
        let mut last = 0;
        for (number, (gap, second)) in gaps.iter().enumerate() {
            now += gap;
            let mut bios = Vec::new();
            while let Some(at) = throttle.next_event().filter(|at| *at <= now) {
                throttle.advance(at, &mut bios);
                for bio in bios.drain(..) {
                    gone[usize::from(bio.group) - 1].push((at, bio.tag));
                }
            }
            let group = 1 + u16::from(*second);
            came[usize::from(*second)] += 1;
            last = now;
            if let Some(bio) = throttle.admit(now, of_group(group, Direction::Read, number as u64)) {
                gone[usize::from(group) - 1].push((now, bio.tag));
            }
            prop_assert!(throttle.check().is_ok());
        }
        for (at, tag) in drain(&mut throttle) {
            gone[usize::from(gaps[tag as usize].1)].push((at, tag));
        }
        for (of_group, came) in gone.iter().zip(came) {
            prop_assert_eq!(of_group.len() as u64, came);
            prop_assert!(of_group.is_sorted_by_key(|(_, tag)| *tag));
            for (number, (at, _)) in of_group.iter().enumerate() {
                let most = u128::from(limit) * u128::from(*at + 200 * MILLISECOND) / 1_000_000_000;
                prop_assert!((number as u128) * 4096 <= most + 4096, "{number} by {at}");
            }
            let served = came * 4096 * 1_000_000_000 / (limit / 4096 * 4096);
            let bound = last + served + 300 * MILLISECOND;
            prop_assert!(of_group.last().is_none_or(|(at, _)| *at <= bound));
        }
    }
}
