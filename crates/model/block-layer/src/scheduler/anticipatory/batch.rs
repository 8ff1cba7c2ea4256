//! Batches: a class is served for a time; the number of writes is limited so that they take about their time.

use crate::scheduler::anticipatory::{Anticipation, Anticipatory, Class, Version};
use crate::{RequestId, Requests};

impl Anticipatory {
    /// A new batch (the second half of `as_dispatch_request`): of the other class if it has anything, else of the same.
    pub(super) fn begin_batch(&mut self, requests: &Requests, sync: bool, writes: bool) -> Option<RequestId> {
        let to_sync = sync && !(writes && self.class == Class::Sync);
        let class = if to_sync { Class::Sync } else { Class::Async };
        if self.class != class {
            self.changed_batch = true;
        }
        if class == Class::Async {
            if self.class == Class::Sync {
                self.new_batch = false;
            }
            self.write_count_left = self.write_count_max;
            self.write_batch_idled = false;
        }
        self.class = class;
        let id = self.first_of_batch(class)?;
        if self.changed_batch {
            if self.in_flight > 0 {
                return None;
            }
            if class == Class::Async {
                self.batch_end = self.jiffies() + self.batch_expire[Class::Async as usize];
            } else {
                self.new_batch = true;
            }
            self.changed_batch = false;
        }
        Some(self.send(requests, id))
    }

    fn first_of_batch(&mut self, class: Class) -> Option<RequestId> {
        if class == Class::Async && !self.version.begins_with_oldest_write() {
            let next = self.of(class).next?;
            return Some(self.expired(class).unwrap_or(next));
        }
        self.of[class as usize].checked_at = self.jiffies();
        self.first_in_line(class)
    }

    /// `as_batch_expired`.
    pub(super) fn batch_expired(&self) -> bool {
        if self.changed_batch || self.new_batch {
            return false;
        }
        let over = self.jiffies() > self.batch_end;
        over || (self.class == Class::Async && self.write_count_left == 0)
    }

    /// `as_completed_request`.
    pub(super) fn complete(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let now = self.jiffies();
        self.in_flight -= 1;
        if self.changed_batch && self.in_flight == 0 {
            if self.version.times_late_batch() {
                self.batch_end = now + self.batch_expire[self.class as usize];
            }
            self.kick();
            self.changed_batch = false;
            if self.class == Class::Sync {
                self.new_batch = true;
            }
        }
        if self.new_batch && self.class == Class::Sync && self.is_awaited(request) {
            self.retune_writes();
            self.batch_end = now + self.batch_expire[Class::Sync as usize];
            self.new_batch = false;
        }
        self.note_end(request);
        if self.target == Some(request.task) {
            self.waiting_since = now;
            self.target_finished = true;
            if self.waiting == Anticipation::ForCompletion {
                // The wait has begun already: now its end is known.
                self.waiting = Anticipation::ForRequest;
                self.timer = Some(now + self.antic_expire);
            }
        }
    }

    /// How many writes the next batch of them may have, so that it takes about its time (`update_write_batch`).
    fn retune_writes(&mut self) {
        if self.version == Version::Draft {
            return;
        }
        let batch = self.batch_expire[Class::Async as usize];
        let took = (self.jiffies() + batch).saturating_sub(self.batch_end);
        let used_up = self.write_count_left == 0;
        if took > batch && !self.write_batch_idled {
            self.write_count_max = if took > 3 * batch { self.write_count_max / 2 } else { self.write_count_max - 1 };
        } else if took < batch && used_up {
            self.write_count_max = if batch > 3 * took { self.write_count_max * 2 } else { self.write_count_max + 1 };
        }
        self.write_count_max = self.write_count_max.max(1);
    }
}
