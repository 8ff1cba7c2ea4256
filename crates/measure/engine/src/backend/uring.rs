//! io_uring: batches in, batches out, with whatever of the ring's fast paths this kernel grants.

use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use io_uring::types::{CancelBuilder, Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{
    Builder, CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, opcode, squeue,
};
use workload::job::{Op, OpKind};
use workload::phase::GroupSpec;

use crate::backend::serial::WRITE_AND_WAIT;
use crate::backend::{Completion, IoQueue, Target, WAIT_MAX_NS, fallocate_mode};
use crate::buffers::Buffers;
use crate::call_flags::CallFlags;
use crate::features::kernel_is_at_least;
use crate::hybrid_poll::hybrid_polled;

pub struct Uring {
    /// Borrows from `ring`, so it goes first: see `Drop`.
    queues: ManuallyDrop<Queues>,
    ring: *mut IoUring,
    files: Vec<RingFile>,
    buffers: Rc<Buffers>,
    file_flag: squeue::Flags,
    opcodes: Opcodes,
    /// No bits without registered buffers, of which no piece is to be named.
    piece_mask: u16,
    flags: CallFlags,
    /// By slot, what was last pushed; empty unless reads are first asked for without waiting.
    first: Vec<Option<Op>>,
    waited: u64,
    sqpoll: bool,
    alarm: Alarm,
    unsubmitted: u32,
    /// Whether the kernel takes discards of devices into a ring.
    queues_discards: bool,
    /// Done in the call: discards of devices that it does not take.
    cleared: Vec<Completion>,
}

#[derive(Clone, Copy)]
struct RingFile {
    /// Its index among the registered files if there are such, or its descriptor: `file_flag` distinguishes them.
    name: Fd,
    target: Target,
}

struct Opcodes {
    read: u8,
    write: u8,
}

/// A read or a write as the kernel has it, `struct io_uring_sqe` (include/uapi/linux/io_uring.h, Linux 6.12), because
/// the forms with and without registered buffers and files differ in values alone. The crate's builders are different
/// types, which branches would put together in registers and copy piece by piece.
#[repr(C)]
struct Transfer {
    opcode: u8,
    flags: u8,
    priority: u16,
    file: i32,
    offset: u64,
    buffer: u64,
    bytes: u32,
    call_flags: i32,
    slot: u64,
    piece: u16,
    unused: [u16; 11],
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

struct Queues {
    submitter: Submitter<'static>,
    submissions: SubmissionQueue<'static>,
    completions: CompletionQueue<'static>,
}

/// Mark the completions of a cancellation and of the alarm, which no slot waits for.
const NO_SLOT: u64 = u64::MAX;
const ALARM: u64 = NO_SLOT - 1;
static ALARM_AFTER: Timespec = Timespec::new().nsec(WAIT_MAX_NS as u32);
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
            files: (0..)
                .zip(files)
                .map(|(index, target)| RingFile {
                    name: Fd(if fixed_files { index } else { target.fd }),
                    target,
                })
                .collect(),
            buffers,
            file_flag: if fixed_files {
                squeue::Flags::FIXED_FILE
            } else {
                squeue::Flags::empty()
            },
            opcodes: Opcodes::new(fixed_buffers),
            piece_mask: if fixed_buffers { u16::MAX } else { 0 },
            flags: CallFlags::of_group(spec),
            first: vec![None; if spec.nowait_reads { slots as usize } else { 0 }],
            waited: 0,
            sqpoll,
            alarm: if poll { Alarm::Refused } else { Alarm::Wanted },
            unsubmitted: 0,
            queues_discards: !poll && kernel_is_at_least(DISCARDS_FROM),
            cleared: Vec::new(),
        })
    }

    #[inline(always)]
    fn push_transfer(&mut self, slot: u32, op: &Op, opcode: u8, buffer: *mut u8, call_flags: i32) {
        let file = &self.files[op.file as usize];
        let entry = Transfer {
            opcode,
            flags: self.file_flag.bits(),
            priority: 0,
            file: file.name.0,
            offset: file.target.base + op.offset,
            buffer: buffer as u64,
            bytes: op.bytes,
            call_flags,
            slot: u64::from(slot),
            piece: self.buffers.piece(slot, op.kind.is_write()) & self.piece_mask,
            unused: [0; 11],
        };
        self.enqueue(&entry.into());
    }

    /// What moves no data.
    #[cold]
    fn push_other(&mut self, slot: u32, op: Op) {
        let op = &op;
        let RingFile { name: file, target } = self.files[op.file as usize];
        if op.kind == OpKind::Discard && target.is_device && !self.queues_discards {
            let result = target.clear(op);
            return self.cleared.push(Completion { slot, result });
        }
        let offset = target.base + op.offset;
        let entry = match op.kind {
            OpKind::Fdatasync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            OpKind::SyncFileRange => {
                // A length of 0 is to the end, beyond what the call has room for.
                let bytes = u32::try_from(target.size).unwrap_or(0);
                let sync = opcode::SyncFileRange::new(file, bytes).offset(target.base);
                sync.flags(WRITE_AND_WAIT).build()
            }
            OpKind::Discard if target.is_device => {
                let mut command = [0; 16];
                command[..8].copy_from_slice(&u64::from(op.bytes).to_ne_bytes());
                let discard = opcode::UringCmd16::new(file, DISCARD).cmd(command);
                discard.addr(Some(offset)).build()
            }
            OpKind::Discard | OpKind::WriteZeroes => {
                let clear = opcode::Fallocate::new(file, u64::from(op.bytes)).offset(offset);
                clear.mode(fallocate_mode(op.kind)).build()
            }
            _ => opcode::Fsync::new(file).build(),
        };
        let entry = entry.flags(self.file_flag).user_data(u64::from(slot));
        self.enqueue(&entry);
    }

    /// Asks for a read that would have waited once more, and this time lets it wait. False: it was no such read, or was
    /// asked for twice.
    #[cold]
    fn ask_again(&mut self, slot: u32) -> bool {
        let kept = self.first.get_mut(slot as usize);
        let Some(op) = kept.and_then(Option::take) else {
            return false;
        };
        self.waited += 1;
        let (buffer, flags) = (self.buffers.read(slot), self.flags.of(op.kind));
        self.push_transfer(slot, &op, self.opcodes.read, buffer, flags);
        true
    }

    #[inline(always)]
    fn enqueue(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffers in the entry live until the ring is gone, and each slot has at most one operation in flight.
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
        let entry = opcode::Timeout::new(&raw const ALARM_AFTER)
            .build()
            .user_data(ALARM);
        self.enqueue(&entry);
        self.alarm = Alarm::Set;
    }

    /// Only a polling kernel thread falls behind: without it the queue is emptied by each submit.
    #[cold]
    fn wait_for_room(&mut self) {
        self.queues.submissions.sync();
        std::thread::yield_now();
    }
}

impl Opcodes {
    fn new(fixed_buffers: bool) -> Opcodes {
        if fixed_buffers {
            Opcodes {
                read: opcode::ReadFixed::CODE,
                write: opcode::WriteFixed::CODE,
            }
        } else {
            Opcodes {
                read: opcode::Read::CODE,
                write: opcode::Write::CODE,
            }
        }
    }
}

impl From<Transfer> for squeue::Entry {
    #[inline(always)]
    fn from(transfer: Transfer) -> squeue::Entry {
        // SAFETY: both are C's layout of the same structure of the kernel, made of integers, and as long as one another,
        // which the compiler checks.
        unsafe { std::mem::transmute(transfer) }
    }
}

impl IoQueue for Uring {
    #[inline(always)]
    fn push(&mut self, slot: u32, op: &Op) {
        if op.kind == OpKind::Read {
            if let Some(kept) = self.first.get_mut(slot as usize) {
                *kept = Some(*op);
            }
            let (buffer, flags) = (self.buffers.read(slot), self.flags.at_first(op.kind));
            self.push_transfer(slot, op, self.opcodes.read, buffer, flags);
        } else if op.kind.is_write() {
            let (buffer, flags) = (self.buffers.write(slot), self.flags.of(op.kind));
            self.push_transfer(slot, op, self.opcodes.write, buffer, flags);
        } else {
            self.push_other(slot, *op);
        }
    }

    #[inline]
    fn submit(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        let want = want.saturating_sub(self.cleared.len() as u32);
        let is_alarmed = self.is_alarmed(want, timeout_ns);
        self.queues.submissions.sync();
        // The kernel counts what lies unclaimed in the queue as arrived, so it has to see what was reaped.
        self.queues.completions.sync();
        let mut flags = EnterFlags::GETEVENTS;
        if self.sqpoll && self.queues.submissions.need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let time = Timespec::new()
            .sec(timeout_ns / 1_000_000_000)
            .nsec((timeout_ns % 1_000_000_000) as u32);
        let arguments = SubmitArgs::new().timespec(&time);
        let submitter = &self.queues.submitter;
        // SAFETY: `arguments` is what EXT_ARG announces, and it and `time` outlive the call.
        let entered = unsafe {
            if is_alarmed {
                submitter.enter::<libc::sigset_t>(self.unsubmitted, want, flags.bits(), None)
            } else {
                flags |= EnterFlags::EXT_ARG;
                submitter.enter(self.unsubmitted, want, flags.bits(), Some(&arguments))
            }
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
        while let Some(entry) = self.queues.completions.next() {
            if entry.user_data() == ALARM {
                self.alarm = Alarm::Wanted;
            } else if entry.user_data() != NO_SLOT {
                let (slot, result) = (entry.user_data() as u32, entry.result());
                if !self.flags.would_wait(OpKind::Read, result) || !self.ask_again(slot) {
                    return Some(Completion { slot, result });
                }
            }
        }
        self.cleared.pop()
    }

    fn waited(&self) -> u64 {
        self.waited
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
    if poll && spec.hybrid_poll {
        return Ok((hybrid_polled((slots + 2).next_power_of_two())?, false));
    }
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
    // Two entries for a cancellation and the alarm.
    mode(&mut builder);
    if poll {
        builder.setup_iopoll();
    }
    builder.build((entries + 2).next_power_of_two())
}

fn granted(answer: io::Result<()>, what: &str, notes: &mut Vec<String>) -> bool {
    if let Err(error) = &answer {
        notes.push(format!(
            "the kernel refused {what} ({error}); running without"
        ));
    }
    answer.is_ok()
}

#[cfg(test)]
mod tests {
    use io_uring::types::Fixed;

    use super::*;

    fn bytes(entry: squeue::Entry) -> [u8; 64] {
        // SAFETY: an entry is 64 bytes of integers without padding.
        unsafe { std::mem::transmute(entry) }
    }

    #[test]
    fn a_transfer_is_what_the_builder_makes() {
        let mut data = [0u8; 4096];
        let buffer = data.as_mut_ptr();
        let transfer = |opcode, flags: squeue::Flags, piece| Transfer {
            opcode,
            flags: flags.bits(),
            priority: 0,
            file: 3,
            offset: 8192,
            buffer: buffer as u64,
            bytes: 4096,
            call_flags: libc::RWF_DSYNC,
            slot: 7,
            piece,
            unused: [0; 11],
        };
        let (none, fixed) = (squeue::Flags::empty(), squeue::Flags::FIXED_FILE);
        let read = opcode::Read::new(Fd(3), buffer, 4096).offset(8192);
        let write = opcode::Write::new(Fixed(3), buffer, 4096).offset(8192);
        let read_fixed = opcode::ReadFixed::new(Fixed(3), buffer, 4096, 5).offset(8192);
        let write_fixed = opcode::WriteFixed::new(Fd(3), buffer, 4096, 5).offset(8192);
        let (plain, registered) = (Opcodes::new(false), Opcodes::new(true));
        for (made, built) in [
            (
                transfer(plain.read, none, 0),
                read.rw_flags(libc::RWF_DSYNC).build(),
            ),
            (
                transfer(plain.write, fixed, 0),
                write.rw_flags(libc::RWF_DSYNC).build(),
            ),
            (
                transfer(registered.read, fixed, 5),
                read_fixed.rw_flags(libc::RWF_DSYNC).build(),
            ),
            (
                transfer(registered.write, none, 5),
                write_fixed.rw_flags(libc::RWF_DSYNC).build(),
            ),
        ] {
            assert_eq!(bytes(made.into()), bytes(built.user_data(7)));
        }
    }
}
