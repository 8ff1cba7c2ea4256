//! io_uring: batches in, batches out, with whatever of the ring's fast paths this kernel grants.

use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use io_uring::types::{CancelBuilder, Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{
    Builder, CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, cqueue, opcode,
    squeue,
};
use workload::job::{Op, OpKind};
use workload::phase::GroupSpec;

use crate::backend::serial::WRITE_AND_WAIT;
use crate::backend::{Completion, IoQueue, Target, fallocate_mode};
use crate::buffers::Buffers;
use crate::call_flags::CallFlags;
use crate::features::kernel_is_at_least;

pub struct Uring {
    /// Borrows from `ring`, so it goes first: see `Drop`.
    queues: ManuallyDrop<Queues>,
    ring: *mut IoUring,
    files: Vec<Target>,
    buffers: Rc<Buffers>,
    fixed_files: bool,
    fixed_buffers: bool,
    flags: CallFlags,
    sqpoll: bool,
    unsubmitted: u32,
    /// Whether the kernel takes discards of devices into a ring.
    queues_discards: bool,
    /// Done in the call: discards of devices that it does not take.
    cleared: Vec<Completion>,
}

struct Queues {
    submitter: Submitter<'static>,
    submissions: SubmissionQueue<'static>,
    completions: CompletionQueue<'static>,
}

/// Marks the completion of a cancellation, which no slot waits for.
const NO_SLOT: u64 = u64::MAX;
/// `BLOCK_URING_CMD_DISCARD`, and the kernel that has it first.
const DISCARD: u32 = 0x1200;
const DISCARDS_FROM: (u32, u32) = (6, 12);

impl Uring {
    /// To be called on the thread that will use it. What was asked for and refused is added to `notes`.
    pub fn new(
        spec: &GroupSpec,
        slots: u32,
        poll: bool,
        files: Vec<Target>,
        buffers: Rc<Buffers>,
        notes: &mut Vec<String>,
    ) -> io::Result<Uring> {
        let (ring, sqpoll) = build(slots, poll, spec, notes)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let ring = Box::leak(Box::new(ring));
        let pointer: *mut IoUring = ring;
        let (mut submitter, submissions, completions) = ring.split();
        let descriptors: Vec<_> = files.iter().map(|file| file.fd).collect();
        let fixed_files = spec.registered_files
            && granted(
                submitter.register_files(&descriptors),
                "registered files",
                notes,
            );
        // SAFETY: the pieces are mapped as long as `buffers` lives, which this value shares and drops after the ring.
        let registered = || unsafe { submitter.register_buffers(&buffers.pieces()) };
        let fixed_buffers = spec.fixed_buffers && granted(registered(), "fixed buffers", notes);
        // An older kernel merely looks the descriptor up on each call.
        let _ = submitter.register_ring_fd();
        let queues = ManuallyDrop::new(Queues {
            submitter,
            submissions,
            completions,
        });
        Ok(Uring {
            queues,
            ring: pointer,
            files,
            buffers,
            fixed_files,
            fixed_buffers,
            flags: CallFlags::of_group(spec),
            sqpoll,
            unsubmitted: 0,
            queues_discards: !poll && kernel_is_at_least(DISCARDS_FROM),
            cleared: Vec::new(),
        })
    }

    #[inline(always)]
    fn entry(&self, slot: u32, op: &Op) -> squeue::Entry {
        let file = self.files[op.file as usize];
        let offset = file.base + op.offset;
        macro_rules! with_file {
            ($file:ident => $make:expr) => {
                if self.fixed_files {
                    let $file = Fixed(op.file);
                    $make
                } else {
                    let $file = Fd(file.fd);
                    $make
                }
            };
        }
        let entry = match op.kind {
            OpKind::Read => {
                let flags = self.flags.of(op.kind);
                let buffer = self.buffers.read(slot);
                if self.fixed_buffers {
                    let piece = self.buffers.piece(slot, false);
                    with_file!(f => opcode::ReadFixed::new(f, buffer, op.bytes, piece).offset(offset).rw_flags(flags).build())
                } else {
                    with_file!(f => opcode::Read::new(f, buffer, op.bytes).offset(offset).rw_flags(flags).build())
                }
            }
            OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => {
                let flags = self.flags.of(op.kind);
                let buffer = self.buffers.write(slot);
                if self.fixed_buffers {
                    let piece = self.buffers.piece(slot, true);
                    with_file!(f => opcode::WriteFixed::new(f, buffer, op.bytes, piece).offset(offset).rw_flags(flags).build())
                } else {
                    with_file!(f => opcode::Write::new(f, buffer, op.bytes).offset(offset).rw_flags(flags).build())
                }
            }
            OpKind::Fsync => with_file!(f => opcode::Fsync::new(f).build()),
            OpKind::Fdatasync => {
                with_file!(f => opcode::Fsync::new(f).flags(FsyncFlags::DATASYNC).build())
            }
            OpKind::SyncFileRange => {
                // A length of 0 is to the end, beyond what the call has room for.
                let bytes = u32::try_from(file.size).unwrap_or(0);
                with_file!(f => opcode::SyncFileRange::new(f, bytes).offset(file.base).flags(WRITE_AND_WAIT).build())
            }
            OpKind::Discard if file.is_device => {
                let mut command = [0; 16];
                command[..8].copy_from_slice(&u64::from(op.bytes).to_ne_bytes());
                with_file!(f => opcode::UringCmd16::new(f, DISCARD).cmd(command).addr(Some(offset)).build())
            }
            OpKind::Discard | OpKind::WriteZeroes => {
                let (length, mode) = (u64::from(op.bytes), fallocate_mode(op.kind));
                with_file!(f => opcode::Fallocate::new(f, length).offset(offset).mode(mode).build())
            }
        };
        entry.user_data(u64::from(slot))
    }

    fn enqueue(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffers in the entry live until the ring is gone, and each slot has at most one operation in flight.
        while unsafe { self.queues.submissions.push(entry) }.is_err() {
            // Only a polling kernel thread falls behind: without it the queue is emptied by each submit.
            self.queues.submissions.sync();
            std::thread::yield_now();
        }
        self.unsubmitted += 1;
    }
}

impl IoQueue for Uring {
    #[inline(always)]
    fn push(&mut self, slot: u32, op: &Op) {
        if op.kind == OpKind::Discard && !self.queues_discards {
            let file = self.files[op.file as usize];
            if file.is_device {
                let result = file.clear(op);
                return self.cleared.push(Completion { slot, result });
            }
        }
        let entry = self.entry(slot, op);
        self.enqueue(&entry);
    }

    #[inline]
    fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        let want = want.saturating_sub(self.cleared.len() as u32);
        self.queues.submissions.sync();
        // The kernel counts what lies unclaimed in the queue as arrived, so it has to see what was reaped.
        self.queues.completions.sync();
        let mut flags = EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        if self.sqpoll && self.queues.submissions.need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let time = Timespec::new()
            .sec(timeout_ns / 1_000_000_000)
            .nsec((timeout_ns % 1_000_000_000) as u32);
        let arguments = SubmitArgs::new().timespec(&time);
        // SAFETY: `arguments` is what EXT_ARG announces, and it and `time` outlive the call.
        let entered = unsafe {
            self.queues
                .submitter
                .enter(self.unsubmitted, want, flags.bits(), Some(&arguments))
        };
        self.queues.completions.sync();
        match entered {
            Ok(submitted) => {
                self.unsubmitted = if self.sqpoll {
                    0
                } else {
                    self.unsubmitted - submitted as u32
                };
                Ok(())
            }
            // A timeout, a signal, or completions to be reaped before more is taken.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    #[inline(always)]
    fn reap(&mut self) -> Option<Completion> {
        if let Some(cleared) = self.cleared.pop() {
            return Some(cleared);
        }
        loop {
            let entry: cqueue::Entry = self.queues.completions.next()?;
            if entry.user_data() != NO_SLOT {
                return Some(Completion {
                    slot: entry.user_data() as u32,
                    result: entry.result(),
                });
            }
        }
    }

    fn cancel(&mut self) {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any())
            .build()
            .user_data(NO_SLOT);
        self.enqueue(&entry);
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // A closing ring lets go of its files some time later; the next umount must not have to wait for that.
        let submitter = &self.queues.submitter;
        let _ = submitter
            .unregister_files()
            .and(submitter.unregister_buffers());
        // SAFETY: `queues` is not used again. `ring` came from a leaked box, nothing else borrows from it now, and it is freed
        // once, here.
        unsafe {
            ManuallyDrop::drop(&mut self.queues);
            drop(Box::from_raw(self.ring));
        }
    }
}

/// The ring with the most that this kernel grants, and whether its kernel thread submits.
fn build(
    slots: u32,
    poll: bool,
    spec: &GroupSpec,
    notes: &mut Vec<String>,
) -> io::Result<(IoUring, bool)> {
    if spec.sqpoll {
        // Twice the depth: completions overtake the head of the submission queue, which moves when the thread gets to it.
        match attempt(slots * 2, poll, |builder| {
            if let Some(cpu) = spec.sqpoll_cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
            builder.setup_sqpoll(SQPOLL_IDLE_MS)
        }) {
            Ok(ring) => return Ok((ring, true)),
            // Queueing elsewhere than asked for would be measured under a false name.
            Err(error) if spec.sqpoll_cpu.is_some() => return Err(error),
            Err(error) => notes.push(format!(
                "a polling submission thread was refused ({error}); submitting by system call"
            )),
        }
    }
    let modes: [fn(&mut Builder) -> &mut Builder; 4] = [
        |builder| {
            builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_coop_taskrun()
                .setup_no_sqarray()
        },
        |builder| {
            builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_coop_taskrun()
        },
        |builder| builder.setup_coop_taskrun(),
        |builder| builder,
    ];
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for mode in modes {
        match attempt(slots, poll, mode) {
            Ok(ring) => return Ok((ring, false)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

const SQPOLL_IDLE_MS: u32 = 100;

fn attempt(
    entries: u32,
    poll: bool,
    mode: impl Fn(&mut Builder) -> &mut Builder,
) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    // One entry for a cancellation.
    mode(&mut builder);
    if poll {
        builder.setup_iopoll();
    }
    builder.build((entries + 1).next_power_of_two())
}

fn granted(answer: io::Result<()>, what: &str, notes: &mut Vec<String>) -> bool {
    if let Err(error) = &answer {
        notes.push(format!(
            "the kernel refused {what} ({error}); running without"
        ));
    }
    answer.is_ok()
}
