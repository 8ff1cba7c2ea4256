//! Watches a recording while it is made for a request that takes too long.
//!
//! Sub-buffers of CPUs come in any order, so a completion may be seen before its issue: it waits for it.

use std::collections::BTreeMap;

use crate::event::{Device, Op, Step, TraceEvent};
use crate::format::{EventFormat, FormatError};
use crate::page::{Page, PageFormat};
use crate::tracepoints::{BlockDecoder, EVENTS};

/// What is in flight, and what is too long.
#[derive(Clone, Debug)]
pub struct Watch {
    page: PageFormat,
    decoder: BlockDecoder,
    limit_ns: u64,
    /// Bios that no request is known to hold: when they were queued.
    queued: BTreeMap<Key, u64>,
    /// Requests with the driver: since when they, or their first bios, wait.
    issued: BTreeMap<Key, u64>,
    /// Completions whose issue has not been seen yet.
    completed: BTreeMap<Key, u64>,
    newest_ns: u64,
    forget_at_ns: u64,
}

type Key = (Device, u64, Op);

/// The age of an event at which all earlier events of other CPUs have been read.
const STALE_NS: u64 = 1_000_000_000;

impl Watch {
    /// A watch of events with these formats, and sub-buffers in the form of `header_page`; a request is slow from
    /// `limit_ns` on.
    pub fn new(header_page: &str, formats: &[&str], limit_ns: u64) -> Result<Watch, FormatError> {
        let formats: Result<Vec<EventFormat>, FormatError> =
            formats.iter().map(|text| EventFormat::parse(text)).collect();
        Ok(Watch {
            page: PageFormat::parse(header_page)?,
            decoder: BlockDecoder::new(EVENTS, &formats?)?,
            limit_ns,
            queued: BTreeMap::new(),
            issued: BTreeMap::new(),
            completed: BTreeMap::new(),
            newest_ns: 0,
            forget_at_ns: 0,
        })
    }

    /// The next sub-buffer of a CPU; yields how long a request took, or has been in flight, if that is too long. What
    /// can't be decoded is passed over.
    pub fn add(&mut self, cpu: u16, bytes: &[u8]) -> Option<u64> {
        let page = Page::decode(bytes, &self.page).ok()?;
        let mut slowest = None;
        for raw in page.events().map_while(Result::ok) {
            if let Ok(Some(event)) = self.decoder.decode(cpu, &raw) {
                slowest = slowest.max(self.event(&event));
            }
        }
        let hangs = self.issued.values().min().copied();
        slowest = slowest.max(hangs.map(|since| self.newest_ns.saturating_sub(since)));
        self.forget();
        slowest.filter(|&took| took >= self.limit_ns)
    }

    fn event(&mut self, event: &TraceEvent) -> Option<u64> {
        self.newest_ns = self.newest_ns.max(event.at_ns);
        let key = (event.device, event.sector, event.op);
        match event.step {
            Step::Queue => {
                self.queued.entry(key).or_insert(event.at_ns);
            }
            // The request keeps the time of its own first bio.
            Step::BackMerge | Step::RequestMerge => {
                self.queued.remove(&key);
            }
            Step::Issue => {
                let since = self.queued.remove(&key).unwrap_or(event.at_ns);
                match self.completed.remove(&key) {
                    Some(ended) if ended >= event.at_ns => return Some(ended - since),
                    _ => {
                        self.issued.insert(key, since);
                    }
                }
            }
            Step::Requeue => {
                if let Some(since) = self.issued.remove(&key) {
                    self.queued.insert(key, since);
                }
            }
            Step::Complete => match self.issued.remove(&key) {
                Some(since) => return Some(event.at_ns.saturating_sub(since)),
                None => {
                    self.completed.insert(key, event.at_ns);
                }
            },
            _ => {}
        }
        None
    }

    /// What was queued long ago has become part of a request under another sector; what completed had begun before.
    fn forget(&mut self) {
        if self.newest_ns < self.forget_at_ns {
            return;
        }
        self.forget_at_ns = self.newest_ns + STALE_NS;
        let before = self.newest_ns.saturating_sub(STALE_NS);
        self.completed.retain(|_, at| *at >= before);
        let before = before.saturating_sub(self.limit_ns.saturating_mul(2));
        self.queued.retain(|_, at| *at >= before);
    }
}
