//! Where a request spent its time.

/// When a request was where.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    inserted_at_ns: Option<u64>,
    first_issued_at_ns: Option<u64>,
    /// With the driver now, since then.
    issued_at_ns: Option<u64>,
    /// Given back by the driver, since then.
    requeued_at_ns: Option<u64>,
    in_scheduler_ns: u64,
    in_device_ns: u64,
}

impl Timing {
    pub(super) fn is_issued(&self) -> bool {
        self.issued_at_ns.is_some()
    }

    pub(super) fn inserted(&mut self, now_ns: u64) {
        self.inserted_at_ns.get_or_insert(now_ns);
    }

    /// Whether for the first time.
    pub(super) fn issued(&mut self, now_ns: u64) -> bool {
        let waited_since_ns = self.requeued_at_ns.take().or(self.inserted_at_ns);
        if let Some(since_ns) = waited_since_ns {
            self.in_scheduler_ns += now_ns.saturating_sub(since_ns);
        }
        self.issued_at_ns = Some(now_ns);
        let first_try = self.first_issued_at_ns.is_none();
        self.first_issued_at_ns.get_or_insert(now_ns);
        first_try
    }

    pub(super) fn requeued(&mut self, now_ns: u64) {
        self.in_device_ns += self
            .issued_at_ns
            .take()
            .map_or(0, |at_ns| now_ns.saturating_sub(at_ns));
        self.requeued_at_ns = Some(now_ns);
    }

    /// When it left the hands of its submitter: for the scheduler, or for the driver where it was never inserted.
    pub(super) fn left_queue_at_ns(&self) -> Option<u64> {
        self.inserted_at_ns.or(self.first_issued_at_ns)
    }

    /// Of requests that were inserted and issued.
    pub(super) fn in_scheduler_ns(&self) -> Option<u64> {
        self.inserted_at_ns
            .and(self.first_issued_at_ns)
            .map(|_| self.in_scheduler_ns)
    }

    /// Until now, of a request that the driver has.
    pub(super) fn in_device_ns(&self, now_ns: u64) -> Option<u64> {
        self.issued_at_ns
            .map(|at_ns| self.in_device_ns + now_ns.saturating_sub(at_ns))
    }
}
