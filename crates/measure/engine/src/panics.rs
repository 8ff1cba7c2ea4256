//! A panic is a defect, and its message reaches the waiting caller. Unwinding carries it to the border, except where
//! the kernel still writes into memory that unwinding would free: there the process ends on the spot.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::process::abort;
use std::sync::Once;

thread_local! {
    static ENDS_THE_PROCESS: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// From here on a panic of this thread prints its message on standard error and aborts, before anything is dropped: I/O
/// may be in flight into its buffers.
pub fn end_the_process() {
    HOOK.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |panic| {
            hook(panic);
            if ENDS_THE_PROCESS.get() {
                abort();
            }
        }));
    });
    ENDS_THE_PROCESS.set(true);
}

/// What `work` yields, or the message of its panic. Nothing that it leaves half done is looked at again.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic))
}

/// The message of a caught panic.
pub fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    const CHILD: &str = "IOLAB_TEST_PANICS_IN_A_THREAD";

    struct Freed;

    impl Drop for Freed {
        fn drop(&mut self) {
            eprintln!("a buffer was freed");
        }
    }

    /// Runs itself again as a child, in which a thread with I/O panics.
    #[test]
    fn a_thread_with_io_ends_the_process_before_it_frees_anything() {
        if std::env::var_os(CHILD).is_some() {
            let thread = std::thread::spawn(|| {
                let _buffer = Freed;
                end_the_process();
                panic!("out of slots");
            });
            let _ = thread.join();
            return;
        }
        let name = "panics::tests::a_thread_with_io_ends_the_process_before_it_frees_anything";
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.signal(), Some(6), "{said}");
        assert!(said.contains("out of slots"), "{said}");
        assert!(!said.contains("a buffer was freed"), "{said}");
    }

    #[test]
    fn a_caught_panic_has_its_message() {
        let said = |work: fn()| caught(work).unwrap_err();
        assert_eq!(said(|| panic!("{} slots", 3)), "3 slots");
        assert_eq!(said(|| panic!("no slots")), "no slots");
        let odd = said(|| std::panic::panic_any(3));
        assert_eq!(odd, "a panic without a message");
    }
}
