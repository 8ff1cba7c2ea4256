//! Windows and limits of the throttling.

use super::*;
use crate::invariants::bench::bio;
use events::slab::Slab;

const TARGET_NS: Time = 2 * MILLISECOND;

fn wbt(write_cache: bool) -> Wbt {
    Wbt::new(WbtRules { target_ns: TARGET_NS, queue_depth: 64, write_cache, hands_over: false })
}

fn request(direction: Direction, issued_at: Time) -> (RequestId, Request) {
    let mut requests = Slab::new();
    let request = Request {
        issued_at: Some(issued_at),
        writeback: direction == Direction::Write,
        ..Request::like(&bio(issued_at, direction, 0))
    };
    (requests.put(request.clone()), request)
}

/// A window with some writes, and reads that take this long.
fn window(wbt: &mut Wbt, now: &mut Time, read_ns: Option<Time>) {
    for _ in 0..WRITES_MIN {
        wbt.took(*now, 1);
        let (id, write) = request(Direction::Write, *now);
        wbt.completed(*now, id, &write, &mut Vec::new());
    }
    if let Some(took) = read_ns {
        let (id, read) = request(Direction::Read, *now);
        wbt.completed(*now + took, id, &read, &mut Vec::new());
    }
    *now = wbt.next_wakeup().expect("a window is open");
    wbt.look(*now, &mut Vec::new());
}

#[test]
fn slow_reads_halve_the_requests_of_writeback_and_fast_ones_double_them() {
    let (mut wbt, mut now) = (wbt(false), 0);
    let mut depths = vec![(wbt.depth, wbt.background)];
    for _ in 0..4 {
        window(&mut wbt, &mut now, Some(TARGET_NS));
        depths.push((wbt.depth, wbt.background));
    }
    assert_eq!(depths, [(16, 4), (8, 2), (4, 1), (2, 1), (1, 1)]);
    window(&mut wbt, &mut now, Some(TARGET_NS - 1));
    assert_eq!(wbt.depth, 2);
}

#[test]
fn windows_get_shorter_while_reads_are_slow() {
    let (mut wbt, mut now) = (wbt(false), 0);
    for _ in 0..3 {
        window(&mut wbt, &mut now, Some(TARGET_NS + 1));
    }
    assert_eq!(wbt.window_ns, WINDOW_NS / 2, "1 / sqrt(3 + 1)");
}

#[test]
fn writes_alone_get_up_to_three_quarters_of_the_device_and_lose_them_to_one_slow_read() {
    let (mut wbt, mut now) = (wbt(false), 0);
    for _ in 0..5 {
        window(&mut wbt, &mut now, None);
    }
    assert_eq!(wbt.depth, 48);
    window(&mut wbt, &mut now, Some(TARGET_NS + 1));
    assert_eq!((wbt.depth, wbt.step), (16, 0));
}

#[test]
fn a_read_that_does_not_come_back_counts_as_slow() {
    let mut wbt = wbt(false);
    wbt.took(0, 1);
    let (id, read) = request(Direction::Read, 0);
    wbt.issued(0, id, &read);
    wbt.look(WINDOW_NS, &mut Vec::new());
    assert_eq!(wbt.depth, 8);
}

#[test]
fn background_writeback_has_a_quarter_and_all_of_it_once_a_writer_is_held() {
    let mut wbt = wbt(false);
    let take =
        |wbt: &mut Wbt, sync| (0..99).take_while(|_| wbt.allows(0, 1, sync).then(|| wbt.took(0, 1)).is_some()).count();
    assert_eq!(take(&mut wbt, false), 4);
    wbt.waiting.clear();
    assert_eq!(take(&mut wbt, true), 12, "of fsync: up to 16");
    wbt.waiting.clear();
    wbt.in_use = 4;
    wbt.held_a_writer(0);
    assert_eq!(take(&mut wbt, false), 12);
}

#[test]
fn behind_a_volatile_cache_writeback_waits_until_all_of_it_is_written() {
    for (write_cache, woken_with) in [(false, 6), (true, 0)] {
        let mut wbt = wbt(write_cache);
        (0..16).for_each(|_| wbt.took(0, 1));
        assert!(!wbt.allows(0, 7, false));
        let mut woken = Vec::new();
        while woken.is_empty() {
            let (id, write) = request(Direction::Write, 0);
            wbt.completed(1, id, &write, &mut woken);
        }
        assert_eq!((woken, wbt.in_use), (vec![7], woken_with));
    }
}

#[test]
fn a_woken_writer_has_its_place_from_5_0_on() {
    for (hands_over, others_may) in [(false, true), (true, false)] {
        let mut wbt = wbt(false);
        wbt.rules.hands_over = hands_over;
        (0..4).for_each(|_| wbt.took(0, 1));
        assert!(!wbt.allows(0, 7, false));
        let mut woken = Vec::new();
        let (id, write) = request(Direction::Write, 0);
        (0..3).for_each(|_| wbt.completed(1, id, &write, &mut woken));
        assert_eq!(woken, [7]);
        (0..2).for_each(|_| wbt.took(1, 1));
        assert_eq!(wbt.allows(1, 8, false), others_may);
        assert!(wbt.allows(1, 7, false), "who was woken first");
        wbt.took(1, 7);
        assert_eq!((wbt.in_use, wbt.handed.len()), (4, 0));
    }
}
