//! Any JSON is an NFS client or an error that names what is wrong; one that is accepted completes every call, and its
//! invariants hold.

use nfs::{Call, CompletedCall, Mount, NfsSpec, Operation};

const CALLS: u64 = 100;
const SECOND_CROWD_NS: u64 = 1_000_000;

pub fn check(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<NfsSpec>(bytes) else {
        return;
    };
    match Mount::new(&spec, 1) {
        Ok(mount) => call(mount),
        Err(impossible) => assert!(!impossible.key.is_empty() && !impossible.what.is_empty()),
    }
}

/// Calls of all sizes, in two crowds.
fn call(mut mount: Mount) {
    let mut completed = Vec::new();
    submit(&mut mount, 0, 0..CALLS / 2);
    mount.advance(SECOND_CROWD_NS, &mut completed);
    submit(&mut mount, SECOND_CROWD_NS, CALLS / 2..CALLS);
    let mut now = SECOND_CROWD_NS;
    while let Some(at) = mount.next_event() {
        assert!(at >= now, "time goes on");
        now = at;
        mount.advance(now, &mut completed);
    }
    mount.check(now).expect("the invariants hold");
    let mut tags: Vec<u64> = completed.iter().map(tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..CALLS), "every call completes once");
    assert_eq!(mount.in_flight(), 0);
}

fn submit(mount: &mut Mount, now: u64, tags: std::ops::Range<u64>) {
    for tag in tags {
        let operation = if tag % 3 == 0 { Operation::Read } else { Operation::Write };
        let data_bytes = (tag as u32).pow(3);
        mount.submit(now, Call { tag, operation, data_bytes });
    }
}

fn tag(done: &CompletedCall) -> u64 {
    done.call.tag
}
