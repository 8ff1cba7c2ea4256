//! A component on the machine's event queue.

use std::ops::{Deref, DerefMut};

use super::clock::{Clock, Event};
use events::Component;
use events::time::Time;

/// A component, when the machine has been asked to come back to it, and room for what it hands over.
pub(super) struct DrivenComponent<C: Component> {
    component: C,
    called_at: Option<Time>,
    /// Kept between events, so that none is allocated for each.
    effects: Vec<C::Effect>,
}

impl<C: Component> DrivenComponent<C> {
    pub(super) fn new(component: C) -> DrivenComponent<C> {
        DrivenComponent { component, called_at: None, effects: Vec::new() }
    }

    /// The event that `call_back` has put has come.
    #[inline]
    pub(super) fn event_came(&mut self, now: Time) {
        if self.called_at == Some(now) {
            self.called_at = None;
        }
    }

    /// Puts an event for what the component does next, unless one comes no later.
    #[inline]
    pub(super) fn call_back(&mut self, now: Time, event: Event, clock: &mut Clock) {
        let Some(at) = self.component.next_event() else {
            return;
        };
        let at = at.max(now);
        if self.called_at.is_none_or(|called| at < called) {
            self.called_at = Some(at);
            clock.put(at, event);
        }
    }

    /// What it has handed over since the last time; `give_back` when that is done.
    #[inline]
    pub(super) fn effects(&mut self) -> Vec<C::Effect> {
        let mut effects = std::mem::take(&mut self.effects);
        self.component.take_effects(&mut effects);
        effects
    }

    #[inline]
    pub(super) fn give_back(&mut self, mut effects: Vec<C::Effect>) {
        effects.clear();
        self.effects = effects;
    }
}

impl<C: Component> Deref for DrivenComponent<C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        &self.component
    }
}

impl<C: Component> DerefMut for DrivenComponent<C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut C {
        &mut self.component
    }
}
