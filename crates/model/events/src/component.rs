//! What a component of the simulated machine is to the machine: the contract of page cache, filesystems, memory of
//! processes, mounts and drives.

use crate::station::Violation;
use crate::time::Time;

/// A state machine that refers to no event queue and no other component. It receives the time, returns when it wants to
/// receive it again, and hands over what the machine is to do for it.
///
/// Its owner reports what has happened (a request has come, I/O has ended) by methods of the component's own, calls
/// `advance` no later than at `next_event`, and after each of both does what it hands over.
pub trait Component {
    /// What the machine is to do.
    type Effect;

    /// When `advance` has something to do; None: not before its owner reports something.
    fn next_event(&self) -> Option<Time>;

    /// Does what is due up to `now`.
    fn advance(&mut self, now: Time);

    /// Appends what is to be done since the last time, in order.
    fn take_effects(&mut self, into: &mut Vec<Self::Effect>);

    /// What came in has gone out once or is still inside, and every waiting task will continue.
    fn check(&self, now: Time) -> Result<(), Violation>;
}

/// For tests: what a component keeps to whose effects have all been taken. All adds up, and `advance` hands over
/// nothing while nothing is due, nor makes something due.
pub fn hold_contract<C: Component>(component: &mut C, now: Time) -> Result<(), Violation> {
    component.check(now)?;
    let is_due = |component: &C| component.next_event().is_some_and(|at| at <= now);
    if is_due(component) {
        return Ok(());
    }
    component.advance(now);
    let mut effects = Vec::new();
    component.take_effects(&mut effects);
    if effects.is_empty() && !is_due(component) {
        return Ok(());
    }
    Err(Violation {
        station: std::any::type_name::<C>().to_owned(),
        what: format!("{} effects with nothing due", effects.len()),
    })
}
