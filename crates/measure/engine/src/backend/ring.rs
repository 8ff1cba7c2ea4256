//! A ring of io_uring, its entries of either size: made with the most that this kernel grants, entered, closed.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring, Submitter, cqueue, opcode, squeue};
use workload::phase::GroupSpec;

use crate::backend::WAIT_MAX_NS;
use crate::buffers::Buffers;
use crate::registered_wait::{Arguments, RegisteredWait};

pub struct Ring<S: squeue::EntryMarker + 'static, C: cqueue::EntryMarker + 'static> {
    /// Borrows from `ring`, so it goes first: see `Drop`.
    queues: ManuallyDrop<Queues<S, C>>,
    ring: *mut IoUring<S, C>,
    sqpoll: bool,
    alarm: Alarm,
    registered_wait: Option<RegisteredWait>,
    unsubmitted: u32,
}

/// Ends a wait for one completion that none ends, since a timer of each wait costs a virtual machine two exits: an
/// operation of the ring that completes by itself after the longest wait, and is then queued again.
#[derive(PartialEq)]
enum Alarm {
    /// A ring that polls for completions takes no such operation.
    Refused,
    Wanted,
    Set,
}

struct Queues<S: squeue::EntryMarker + 'static, C: cqueue::EntryMarker + 'static> {
    submitter: Submitter<'static>,
    submissions: io_uring::SubmissionQueue<'static, S>,
    completions: io_uring::CompletionQueue<'static, C>,
}

/// Mark the completions of a cancellation and of the alarm, which no slot waits for.
const NO_SLOT: u64 = u64::MAX;
const ALARM: u64 = NO_SLOT - 1;
static ALARM_AFTER: Timespec = Timespec::new().nsec(WAIT_MAX_NS as u32);

impl<S: squeue::EntryMarker + 'static, C: cqueue::EntryMarker + 'static> Ring<S, C> {
    /// To be called on the thread that will use it. What was asked for and refused is added to `notes`.
    pub fn new(spec: &GroupSpec, slots: u32, poll: bool, notes: &mut Vec<String>) -> io::Result<Ring<S, C>> {
        let (ring, sqpoll) = build(slots, poll, spec, notes)?;
        let mut registered_wait = None;
        if spec.registered_waits {
            registered_wait = Some(RegisteredWait::new(ring.as_raw_fd())?);
            ring.submitter().register_enable_rings()?;
        }
        let mut ring = Ring::of(ring, sqpoll, poll)?;
        ring.registered_wait = registered_wait;
        Ok(ring)
    }

    /// `sqpoll`: whether its kernel thread submits. `poll`: whether it polls for completions.
    pub fn of(ring: IoUring<S, C>, sqpoll: bool, poll: bool) -> io::Result<Ring<S, C>> {
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let ring = Box::leak(Box::new(ring));
        let pointer: *mut IoUring<S, C> = ring;
        let (mut submitter, submissions, completions) = ring.split();
        // An older kernel merely looks the descriptor up on each call.
        let _ = submitter.register_ring_fd();
        let queues = ManuallyDrop::new(Queues { submitter, submissions, completions });
        Ok(Ring {
            queues,
            ring: pointer,
            sqpoll,
            alarm: if poll { Alarm::Refused } else { Alarm::Wanted },
            registered_wait: None,
            unsubmitted: 0,
        })
    }

    /// Whether entries may name the files by their index in `descriptors`.
    pub fn register_files(&self, descriptors: &[i32], notes: &mut Vec<String>) -> bool {
        let answer = self.queues.submitter.register_files(descriptors);
        granted(answer, "registered files", notes)
    }

    /// Whether entries may name the pieces of the buffers, which have to live as long as the ring.
    pub fn register_buffers(&self, buffers: &Buffers, notes: &mut Vec<String>) -> bool {
        // SAFETY: the pieces are mapped as long as `buffers` lives, which the ring's owner shares and drops after it.
        let answer = unsafe { self.queues.submitter.register_buffers(&buffers.pieces()) };
        granted(answer, "fixed buffers", notes)
    }

    /// What the entry names has to live until the ring is gone, and each slot has at most one operation in flight.
    #[inline(always)]
    pub fn push(&mut self, entry: &S) {
        // SAFETY: as the method says.
        while unsafe { self.queues.submissions.push(entry) }.is_err() {
            self.wait_for_room();
        }
        self.unsubmitted += 1;
    }

    /// Whether the alarm ends a wait in time.
    #[inline(always)]
    fn is_alarmed(&mut self, want: u32, timeout_ns: u64) -> bool {
        if want > 1 || timeout_ns < WAIT_MAX_NS || self.alarm == Alarm::Refused {
            return false;
        }
        if self.alarm == Alarm::Wanted {
            self.set_alarm();
        }
        true
    }

    #[cold]
    fn set_alarm(&mut self) {
        let entry = opcode::Timeout::new(&raw const ALARM_AFTER).build().user_data(ALARM);
        self.push(&entry.into());
        self.alarm = Alarm::Set;
    }

    /// Only a polling kernel thread falls behind: without it the queue is emptied by each submit.
    #[cold]
    fn wait_for_room(&mut self) {
        self.queues.submissions.sync();
        std::thread::yield_now();
    }

    /// As `IoQueue::submit`.
    #[inline]
    pub fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        let is_alarmed = self.is_alarmed(want, timeout_ns);
        self.queues.submissions.sync();
        // The kernel counts what lies unclaimed in the queue as arrived, so it has to see what was reaped.
        self.queues.completions.sync();
        let mut flags = EnterFlags::GETEVENTS;
        if self.sqpoll && self.queues.submissions.need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let submitter = &self.queues.submitter;
        // SAFETY: `arguments` is what EXT_ARG announces, and it and `time` outlive the call; with EXT_ARG_REG the argument is
        // an offset in what is registered, 0.
        let entered = unsafe {
            if is_alarmed {
                submitter.enter::<libc::sigset_t>(self.unsubmitted, want, flags.bits(), None)
            } else if let Some(wait) = &mut self.registered_wait {
                wait.set_time(timeout_ns);
                flags |= EnterFlags::EXT_ARG | EnterFlags::EXT_ARG_REG;
                submitter.enter::<Arguments>(self.unsubmitted, want, flags.bits(), None)
            } else {
                let time = Timespec::new().sec(timeout_ns / 1_000_000_000).nsec((timeout_ns % 1_000_000_000) as u32);
                let arguments = SubmitArgs::new().timespec(&time);
                flags |= EnterFlags::EXT_ARG;
                submitter.enter(self.unsubmitted, want, flags.bits(), Some(&arguments))
            }
        };
        self.queues.completions.sync();
        match entered {
            Ok(submitted) => {
                self.unsubmitted = if self.sqpoll { 0 } else { self.unsubmitted - submitted as u32 };
                Ok(())
            }
            // A timeout, a signal, or completions to be reaped before more is taken.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The next completion of a slot.
    #[inline(always)]
    pub fn reap(&mut self) -> Option<C> {
        loop {
            let entry = self.queues.completions.next()?;
            match entry.user_data() {
                ALARM => self.alarm = Alarm::Wanted,
                NO_SLOT => {}
                _ => return Some(entry),
            }
        }
    }

    /// As `IoQueue::notes`.
    pub fn notes(&self) -> Vec<String> {
        self.registered_wait.iter().map(RegisteredWait::note).collect()
    }

    pub fn cancel(&mut self) {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(NO_SLOT);
        self.push(&entry.into());
    }
}

impl<S: squeue::EntryMarker + 'static, C: cqueue::EntryMarker + 'static> Drop for Ring<S, C> {
    fn drop(&mut self) {
        // A closing ring lets go of its files some time later; the next umount must not have to wait for that.
        let submitter = &self.queues.submitter;
        let _ = submitter.unregister_files().and(submitter.unregister_buffers());
        // SAFETY: `queues` is not used again. `ring` came from a leaked box, nothing else borrows from it now, and it is freed
        // once, here.
        unsafe {
            ManuallyDrop::drop(&mut self.queues);
            drop(Box::from_raw(self.ring));
        }
    }
}

/// The ring with the most that this kernel grants, and whether its kernel thread submits.
fn build<S: squeue::EntryMarker + 'static, C: cqueue::EntryMarker + 'static>(
    slots: u32,
    poll: bool,
    spec: &GroupSpec,
    notes: &mut Vec<String>,
) -> io::Result<(IoUring<S, C>, bool)> {
    if spec.sqpoll {
        // Twice the depth: completions overtake the head of the submission queue, which moves when the thread gets to it.
        match attempt(slots * 2, poll, spec, |builder| {
            if let Some(cpu) = spec.sqpoll_cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
            builder.setup_sqpoll(SQPOLL_IDLE_MS)
        }) {
            Ok(ring) => return Ok((ring, true)),
            // Queueing elsewhere than asked for would be measured under a false name.
            Err(error) if spec.sqpoll_cpu.is_some() => return Err(error),
            Err(error) => {
                notes.push(format!("a polling submission thread was refused ({error}); submitting by system call"))
            }
        }
    }
    let modes: [Mode<S, C>; 4] = [
        |builder| builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_no_sqarray(),
        |builder| builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun(),
        |builder| builder.setup_coop_taskrun(),
        |builder| builder,
    ];
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for mode in modes {
        match attempt(slots, poll, spec, mode) {
            Ok(ring) => return Ok((ring, false)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

const SQPOLL_IDLE_MS: u32 = 100;

type Mode<S, C> = fn(&mut Builder<S, C>) -> &mut Builder<S, C>;

fn attempt<S: squeue::EntryMarker + 'static, C: cqueue::EntryMarker + 'static>(
    entries: u32,
    poll: bool,
    spec: &GroupSpec,
    mode: impl Fn(&mut Builder<S, C>) -> &mut Builder<S, C>,
) -> io::Result<IoUring<S, C>> {
    let mut builder = IoUring::builder();
    // Two entries for a cancellation and the alarm.
    mode(&mut builder);
    if poll {
        builder.setup_iopoll();
    }
    if spec.registered_waits {
        builder.setup_r_disabled();
    }
    builder.build((entries + 2).next_power_of_two())
}

fn granted(answer: io::Result<()>, what: &str, notes: &mut Vec<String>) -> bool {
    if let Err(error) = &answer {
        notes.push(format!("the kernel refused {what} ({error}); running without"));
    }
    answer.is_ok()
}
