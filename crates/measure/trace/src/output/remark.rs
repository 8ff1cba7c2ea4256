//! iolab's notes in blktrace's files, for what none of their records can hold; blkparse prints it as a message.

/// Such a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// Events of the CPU are missing from here until then; the largest time: until the end.
    Lost {
        /// How many; 0: unknown.
        count: u64,
        /// On the file's clock.
        until_ns: u64,
    },
    /// Another recording begins.
    Restart,
}

const RESTART: &str = "iolab: another recording begins";
const LOST: &str = "iolab: lost ";
const UNTIL: &str = " events until ";

impl Remark {
    pub(crate) fn text(self) -> String {
        match self {
            Remark::Restart => RESTART.to_owned(),
            Remark::Lost { count, until_ns } => format!("{LOST}{count}{UNTIL}{until_ns}"),
        }
    }

    /// None for a note of another program.
    pub(crate) fn of(text: &[u8]) -> Option<Remark> {
        let text = std::str::from_utf8(text).ok()?;
        let text = text.trim_end_matches('\0');
        if text == RESTART {
            return Some(Remark::Restart);
        }
        let (count, until_ns) = text.strip_prefix(LOST)?.split_once(UNTIL)?;
        Some(Remark::Lost { count: count.parse().ok()?, until_ns: until_ns.parse().ok()? })
    }
}
