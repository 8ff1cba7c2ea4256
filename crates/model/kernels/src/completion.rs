//! How a kernel completes requests.
//!
//! Source: docs/model/sources/completion.md.

use serde::Deserialize;

use crate::release::Kernel;

/// Forms of the path from a device's interrupt to a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionVariant {
    /// Linux to 2.6.27: a softirq where the interrupt landed.
    Softirq,
    /// February 2008, first variant: a function call on the target, which raises the softirq there. Inferred.
    RemoteSoftirq,
    /// February 2008, second variant: a thread for each CPU, with a lock and a list.
    Thread,
    /// 2.6.28: a list of calls for each CPU, an interrupt when it was empty; targets are groups of CPUs.
    Grouped,
    /// 3.1 and later: on the spot when the submitter shares a cache.
    CacheAware,
    /// blk-mq until 4.19: on the spot in the interrupt, or in the message to the submitter.
    MultiQueueDirect,
    /// blk-mq: on the spot in the interrupt, with a single hardware queue by softirq, or by the list of calls.
    MultiQueue,
}

impl CompletionVariant {
    /// Whether `rq_affinity` can be 2.
    pub fn has_exact(self) -> bool {
        matches!(
            self,
            CompletionVariant::CacheAware | CompletionVariant::MultiQueueDirect | CompletionVariant::MultiQueue
        )
    }

    /// As machine files have it.
    pub fn name(self) -> &'static str {
        match self {
            CompletionVariant::Softirq => "softirq",
            CompletionVariant::RemoteSoftirq => "remote_softirq",
            CompletionVariant::Thread => "thread",
            CompletionVariant::Grouped => "grouped",
            CompletionVariant::CacheAware => "cache_aware",
            CompletionVariant::MultiQueueDirect => "multi_queue_direct",
            CompletionVariant::MultiQueue => "multi_queue",
        }
    }
}

impl Kernel {
    /// How requests are completed; the two variants of February 2008 are patches of 2.6.24.
    pub fn completion_form(&self, is_multi_queue: bool) -> CompletionVariant {
        match self.version {
            // "complete request softirq if single hw queue", 4.20.
            version if is_multi_queue && version < [4, 20, 0] => CompletionVariant::MultiQueueDirect,
            _ if is_multi_queue => CompletionVariant::MultiQueue,
            [2, 6, 24] if self.name().ends_with("-remote-softirq") => CompletionVariant::RemoteSoftirq,
            [2, 6, 24] if self.name().ends_with("-kthread") => CompletionVariant::Thread,
            version if version < [2, 6, 28] => CompletionVariant::Softirq,
            version if version < [3, 1, 0] => CompletionVariant::Grouped,
            _ => CompletionVariant::CacheAware,
        }
    }

    /// The default of `rq_affinity`: on by default from 2.6.32 on (`QUEUE_FLAG_DEFAULT`).
    pub fn rq_affinity(&self) -> u8 {
        u8::from(self.version >= [2, 6, 32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::named(name).unwrap()
    }

    #[test]
    fn each_kernel_completes_requests_in_its_way() {
        let variant = |name| kernel(name).completion_form(false);
        assert_eq!(variant("2.6.24"), CompletionVariant::Softirq);
        assert_eq!(variant("2.6.24-remote-softirq"), CompletionVariant::RemoteSoftirq);
        assert_eq!(variant("2.6.24-kthread"), CompletionVariant::Thread);
        assert_eq!(variant("2.6.28"), CompletionVariant::Grouped);
        assert_eq!(variant("3.0"), CompletionVariant::Grouped);
        assert_eq!(variant("3.1"), CompletionVariant::CacheAware);
        assert_eq!(kernel("4.19").completion_form(true), CompletionVariant::MultiQueueDirect);
        assert_eq!(kernel("6.1").completion_form(true), CompletionVariant::MultiQueue);
    }
}
