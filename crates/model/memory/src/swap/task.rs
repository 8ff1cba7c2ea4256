//! A sorting process or the kernel's daemon, as far as it has come.

use base::usage::Usage;

use super::PageNumber;
use super::quicksort::{Sort, Touch};
use super::reclaim::Effort;
use events::time::Time;

#[derive(Debug)]
pub(super) struct Task {
    /// None: the daemon.
    pub(super) sort: Option<Sort>,
    /// Its pages begin here.
    pub(super) first_page: PageNumber,
    /// What it is about to touch.
    pub(super) touch: Option<Touch>,
    /// Frees pages, before it can continue.
    pub(super) effort: Option<Effort>,
    pub(super) wait: Wait,
    /// In line for a CPU, on which it decides what it does.
    pub(super) asks: bool,
    pub(super) state: State,
    pub(super) usage: Usage,
    pub(super) finished_at: Option<Time>,
}

/// What it needs, besides a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Nothing,
    /// Something to do, of the daemon.
    Work,
    /// Until the page is read or written.
    Page(PageNumber),
    /// For requests of the queue.
    Requests,
    /// Until then, or until a page is written.
    Nap(Time),
    /// Until then.
    Rest(Time),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// On a CPU or in line for one.
    Runnable,
    Asleep,
    Finished,
}

impl Task {
    pub(super) fn new(sort: Option<Sort>, first_page: PageNumber) -> Task {
        let is_daemon = sort.is_none();
        Task {
            sort,
            first_page,
            touch: None,
            effort: None,
            asks: false,
            wait: if is_daemon { Wait::Work } else { Wait::Nothing },
            state: if is_daemon { State::Asleep } else { State::Runnable },
            usage: Usage::default(),
            finished_at: None,
        }
    }

    /// What it touches next; the same until `touched`.
    pub(super) fn next_touch(&mut self) -> Option<Touch> {
        if self.touch.is_none() {
            self.touch = self.sort.as_mut().and_then(Sort::next);
        }
        self.touch
    }

    pub(super) fn touched(&mut self) {
        self.touch = None;
    }
}
