//! A thread that empties the kernel's buffers when they are filling, and now and then when they are not.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What the thread empties.
pub trait Drain: Send + 'static {
    /// Readable when there is enough to be worth a wake-up.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Takes all that is there; never blocks.
    fn drain(&mut self);
}

/// Long enough that an idle machine stays idle, short enough that what the CPUs hold back for one another stays little.
const TICK: Duration = Duration::from_millis(100);

pub struct Pump<D> {
    /// None once it has been joined.
    thread: Option<JoinHandle<D>>,
    stop: Arc<OwnedFd>,
}

impl<D: Drain> Pump<D> {
    pub fn start(name: &str, drain: D) -> io::Result<Pump<D>> {
        let stop = Arc::new(event_descriptor()?);
        let thread_stop = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(drain, &thread_stop))?;
        Ok(Pump { thread: Some(thread), stop })
    }

    /// After a last emptying. None when the thread died.
    pub fn stop(mut self) -> Option<D> {
        self.join()
    }
}

impl<D> Pump<D> {
    fn join(&mut self) -> Option<D> {
        // SAFETY: writes eight bytes to a descriptor that is ours.
        unsafe { libc::eventfd_write(self.stop.as_raw_fd(), 1) };
        self.thread.take()?.join().ok()
    }
}

impl<D> Drop for Pump<D> {
    fn drop(&mut self) {
        self.join();
    }
}

fn run<D: Drain>(mut drain: D, stop: &OwnedFd) -> D {
    come_first();
    let mut watched = vec![watch(stop.as_raw_fd())];
    watched.extend(drain.descriptors().into_iter().map(watch));
    loop {
        // SAFETY: the array outlives the call, and its length is passed along.
        unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, TICK.as_millis() as libc::c_int) };
        drain.drain();
        if watched[0].revents != 0 {
            return drain;
        }
        // A buffer whose CPU is offline is in error for good, and poll would return at once for ever; its rest, and what
        // comes when the CPU is back, is found at each tick all the same.
        let failed = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        watched.retain(|one| one.revents & failed == 0);
    }
}

/// What fills the buffers also keeps the CPUs busy, and continues while this thread waits for its turn. Without the
/// privilege it waits like all others.
fn come_first() {
    const HIGHEST: libc::c_int = -20;
    // SAFETY: takes no pointer. On Linux, 0 is the calling thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST) };
}

fn watch(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn event_descriptor() -> io::Result<OwnedFd> {
    // SAFETY: takes no pointer; a descriptor that it returns is nobody else's.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    struct CountedDrain {
        fd: Option<OwnedFd>,
        drained: Arc<AtomicUsize>,
    }

    impl Drain for CountedDrain {
        fn descriptors(&self) -> Vec<RawFd> {
            self.fd.iter().map(AsRawFd::as_raw_fd).collect()
        }

        fn drain(&mut self) {
            self.drained.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A pipe whose other end is closed: in error for good, as the buffer of a CPU that is offline.
    fn broken_pipe() -> OwnedFd {
        let mut ends = [0; 2];
        // SAFETY: the call fills the array; both ends are nobody else's.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            drop(OwnedFd::from_raw_fd(ends[1]));
            OwnedFd::from_raw_fd(ends[0])
        }
    }

    #[test]
    fn a_descriptor_in_error_makes_no_busy_loop() {
        let drained = Arc::new(AtomicUsize::new(0));
        let counted = CountedDrain { fd: Some(broken_pipe()), drained: Arc::clone(&drained) };
        let pump = Pump::start("test", counted).unwrap();
        std::thread::sleep(3 * TICK);
        assert!(pump.stop().is_some());
        assert!(drained.load(Ordering::Relaxed) < 20);
    }

    #[test]
    fn stopping_empties_once_more_and_does_not_wait_for_the_tick() {
        let drained = Arc::new(AtomicUsize::new(0));
        // The machine may be busy at any one time: the quickest of several is the measure.
        let quickest = (0..20).map(|_| {
            let counted = CountedDrain { fd: None, drained: Arc::clone(&drained) };
            let pump = Pump::start("test", counted).unwrap();
            let before = drained.load(Ordering::Relaxed);
            let asked = Instant::now();
            assert!(pump.stop().is_some());
            assert!(drained.load(Ordering::Relaxed) > before);
            asked.elapsed()
        });
        assert!(quickest.min().unwrap() < TICK / 2);
    }
}
