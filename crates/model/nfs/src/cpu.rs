//! Where CPU time goes: plain sums, no run queue.

use events::time::Time;

/// On whose account CPU time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The threads that call: what getrusage and iozone see.
    Process,
    /// Workers of rpciod and nfsiod: encode, transmit, decode.
    Rpciod,
    /// The receive queue's worker.
    Receive,
    /// The send queue's worker: unmapping.
    Send,
    /// The timer that flushes unmapped addresses.
    Timer,
}

/// Sums in nanoseconds. A CPU that spins for a lock is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    ns: [Time; Context::ALL.len()],
}

impl Context {
    /// Every context, in the order of `CpuTimes`.
    pub const ALL: [Context; 5] = [Context::Process, Context::Rpciod, Context::Receive, Context::Send, Context::Timer];

    /// The name in records and observations.
    pub fn name(self) -> &'static str {
        match self {
            Context::Process => "process",
            Context::Rpciod => "rpciod",
            Context::Receive => "receive",
            Context::Send => "send",
            Context::Timer => "timer",
        }
    }
}

impl CpuTimes {
    #[inline]
    pub(super) fn add(&mut self, context: Context, ns: Time) {
        self.ns[context as usize] += ns;
    }

    /// Nanoseconds on the account of one context.
    pub fn of(&self, context: Context) -> Time {
        self.ns[context as usize]
    }
}
