//! What stands between bios and requests (`rq_qos`): policies by which a bio's task sleeps before it gets a request, and
//! which learn what becomes of the bio.
//!
//! Source: `block/blk-rq-qos.c` and `block/blk-mq.c` (`blk_mq_submit_bio`) of 6.1.192. A bio that joins a request passes no
//! policy; one that gets a request of its own passes each once, and waits for a tag behind them.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::{Bio, QosTicket, Request, Sector, TaskId};
use events::station::Violation;
use events::time::Time;

/// Names a bio whose task sleeps: whoever submitted it keeps it.
pub(crate) type Waiter = (TaskId, u32, Sector);

/// What a policy lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) waiter: Waiter,
    pub(crate) cost: u64,
}

/// One policy (`struct rq_qos_ops`).
pub(crate) trait Policy: Debug + Send {
    /// What it charges the bio, which may go on to a request; None: its task sleeps until it is granted.
    fn throttle(&mut self, now: Time, bio: &Bio) -> Option<u64>;

    /// The bio joins the request: what it is charged.
    fn merge(&mut self, _now: Time, _into: &Request, _ticket: QosTicket, _bio: &Bio) -> u64 {
        0
    }

    /// The bio is read or written.
    fn done_bio(&mut self, now: Time, bio: &Bio);

    /// The request is, whose first bio has that ticket.
    fn done(&mut self, _now: Time, _request: &Request, _ticket: QosTicket) {}

    /// When `wake` has something to do.
    fn next_wakeup(&self) -> Option<Time>;

    /// Its timers have expired.
    fn wake(&mut self, now: Time);

    /// Appends whom it lets go since the last time.
    fn take_granted(&mut self, into: &mut Vec<Granted>);

    /// How fast it lets the device's virtual time pass, in percent of wall time; None: it has no such time.
    fn vrate_percent(&self) -> Option<f64> {
        None
    }

    /// Its invariants.
    fn check(&self) -> Result<(), Violation>;
}

/// The policies of a queue, and the bios on their way through them.
#[derive(Debug, Default)]
pub(crate) struct Qos {
    policies: Vec<Box<dyn Policy>>,
    on_their_way: BTreeMap<Waiter, Passage>,
    granted: Vec<Granted>,
}

/// How far a bio has come.
#[derive(Clone, Copy, Debug)]
struct Passage {
    ticket: QosTicket,
    /// So many policies have let it go.
    passed: usize,
    /// Its task sleeps at the next.
    sleeps: bool,
}

impl Qos {
    pub(crate) fn add(&mut self, policy: Box<dyn Policy>) {
        self.policies.push(policy);
    }

    /// Whether tasks may have to sleep.
    pub(crate) fn is_on(&self) -> bool {
        !self.policies.is_empty()
    }

    /// Whether the bio may have a request now; else its task sleeps until it is among those woken.
    pub(crate) fn lets_go(&mut self, now: Time, bio: &Bio) -> bool {
        if !self.is_on() {
            return true;
        }
        let mut passage = self.on_their_way.remove(&waiter(bio)).unwrap_or_else(|| Passage {
            ticket: QosTicket { submitted_at: now, ..QosTicket::default() },
            passed: 0,
            sleeps: false,
        });
        while !passage.sleeps && passage.passed < self.policies.len() {
            match self.policies[passage.passed].throttle(now, bio) {
                Some(cost) => passage.goes_on(cost),
                None => passage.sleeps = true,
            }
        }
        if !passage.sleeps {
            passage.ticket.passed_at.get_or_insert(now);
        }
        self.on_their_way.insert(waiter(bio), passage);
        !passage.sleeps
    }

    /// The bio has a request of its own: what it takes with it.
    pub(crate) fn ticket_of(&mut self, now: Time, bio: &Bio) -> QosTicket {
        let passage = self.on_their_way.remove(&waiter(bio));
        QosTicket { allocated_at: now, ..passage.map(|passage| passage.ticket).unwrap_or_default() }
    }

    /// The bio joins the request, whose first bio has that ticket: what it takes with it.
    pub(crate) fn merged(&mut self, now: Time, into: &Request, first: QosTicket, bio: &Bio) -> QosTicket {
        if !self.is_on() || bio.qos.passed_at.is_some() {
            return bio.qos;
        }
        let ticket = self.ticket_of(now, bio);
        if ticket.passed_at.is_some() {
            return ticket;
        }
        let merge = |policy: &mut Box<dyn Policy>| policy.merge(now, into, first, bio);
        QosTicket { cost: self.policies.iter_mut().map(merge).sum(), ..ticket }
    }

    /// The bio is read or written.
    pub(crate) fn done_bio(&mut self, now: Time, bio: &Bio) {
        for policy in &mut self.policies {
            policy.done_bio(now, bio);
        }
    }

    /// The request is, and its bios were before.
    pub(crate) fn done(&mut self, now: Time, request: &Request, first: QosTicket) {
        for policy in &mut self.policies {
            policy.done(now, request, first);
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let times = self.policies.iter().filter_map(|policy| policy.next_wakeup());
        times.min()
    }

    pub(crate) fn wake(&mut self, now: Time) {
        for policy in &mut self.policies {
            if policy.next_wakeup().is_some_and(|at| at <= now) {
                policy.wake(now);
            }
        }
    }

    /// Appends the tasks that may try again.
    pub(crate) fn take_woken(&mut self, into: &mut Vec<TaskId>) {
        for policy in &mut self.policies {
            policy.take_granted(&mut self.granted);
        }
        for Granted { waiter, cost } in self.granted.drain(..) {
            let passage = self.on_their_way.get_mut(&waiter);
            let passage = passage.expect("who is let go slept");
            passage.sleeps = false;
            passage.goes_on(cost);
            into.push(waiter.0);
        }
    }

    pub(crate) fn vrate_percent(&self) -> Option<f64> {
        self.policies.iter().find_map(|policy| policy.vrate_percent())
    }

    pub(crate) fn check(&self) -> Result<(), Violation> {
        self.policies.iter().try_for_each(|policy| policy.check())
    }
}

impl Passage {
    fn goes_on(&mut self, cost: u64) {
        self.passed += 1;
        self.ticket.cost += cost;
    }
}

pub(crate) fn waiter(bio: &Bio) -> Waiter {
    (bio.task, bio.tag, bio.start)
}
