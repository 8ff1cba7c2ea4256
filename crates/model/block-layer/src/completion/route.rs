//! On which CPU a request is completed.

use super::spec::{Affinity, CompletionSpec, CompletionVariant, RequestAffinity};
use events::smp::{Distance, Topology};

/// Where a request goes that was submitted on one CPU and whose interrupt landed `here` (`__blk_complete_request`, in
/// blk-mq `blk_mq_complete_need_ipi`); None: here.
pub(super) fn target(
    spec: &CompletionSpec,
    topology: &Topology,
    affinity: &Affinity,
    submitted_on: u16,
    here: u16,
) -> Option<u16> {
    let elsewhere = |cpu: u16| (cpu != here).then_some(cpu);
    if affinity.requests == RequestAffinity::Exact {
        return elsewhere(submitted_on);
    }
    let near = affinity.requests == RequestAffinity::Near;
    match spec.variant {
        CompletionVariant::Softirq => None,
        CompletionVariant::RemoteSoftirq | CompletionVariant::Thread => match affinity.completion {
            Some(cpu) => elsewhere(cpu),
            None if near => elsewhere(submitted_on),
            None => None,
        },
        CompletionVariant::Grouped if near => {
            let first = |cpu| topology.around(cpu, spec.shares_cache).start;
            elsewhere(first(submitted_on)).filter(|&cpu| cpu != first(here))
        }
        CompletionVariant::CacheAware | CompletionVariant::MultiQueueDirect | CompletionVariant::MultiQueue if near => {
            elsewhere(submitted_on).filter(|_| !shares(topology, spec.shares_cache, submitted_on, here))
        }
        CompletionVariant::Grouped
        | CompletionVariant::CacheAware
        | CompletionVariant::MultiQueueDirect
        | CompletionVariant::MultiQueue => None,
    }
}

/// The CPU that the counters of local and remote completions compare with: in the two kernels of 2008 a queue's
/// completion CPU, and without one the submitter's, whether requests go there or not.
pub(super) fn compared_with(affinity: &Affinity, submitted_on: u16) -> u16 {
    affinity.completion.unwrap_or(submitted_on)
}

fn shares(topology: &Topology, within: Distance, one: u16, other: u16) -> bool {
    topology.distance(one, other).is_none_or(|distance| distance <= within)
}
