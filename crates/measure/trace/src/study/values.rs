//! Values that are counted: with room for all from the first one on, or in no more room than they need.

use std::borrow::Cow;

use base::histogram::{LatencyHistogram, SparseHistogram};

/// A histogram, of one of few things or of one of very many.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// Counts at once.
    Roomy(Option<Box<LatencyHistogram>>),
    /// Counts now and then.
    Narrow {
        /// Not counted yet.
        fresh: Vec<u64>,
        counted: SparseHistogram,
    },
}

const FRESH: usize = 256;

impl Default for Values {
    fn default() -> Values {
        Values::new(true)
    }
}

impl Values {
    pub(super) fn new(roomy: bool) -> Values {
        match roomy {
            true => Values::Roomy(None),
            false => Values::Narrow { fresh: Vec::new(), counted: SparseHistogram::default() },
        }
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        match self {
            Values::Roomy(histogram) => histogram.get_or_insert_default().record(value),
            Values::Narrow { fresh, counted } => {
                fresh.push(value);
                if fresh.len() == FRESH {
                    *counted = together(fresh, counted).to_sparse();
                    fresh.clear();
                }
            }
        }
    }

    /// None if there are none.
    pub(super) fn histogram(&self) -> Option<Cow<'_, LatencyHistogram>> {
        match self {
            Values::Roomy(histogram) => histogram.as_deref().map(Cow::Borrowed),
            Values::Narrow { fresh, counted } => {
                let any = !fresh.is_empty() || counted.count() > 0;
                any.then(|| Cow::Owned(together(fresh, counted)))
            }
        }
    }

    /// Counts those of another too, with room for all.
    pub(super) fn merge(&mut self, other: &Values) {
        let Some(theirs) = other.histogram() else {
            return;
        };
        let mut ours = self.histogram().map(Cow::into_owned).unwrap_or_default();
        ours.merge(&theirs);
        *self = Values::Roomy(Some(Box::new(ours)));
    }
}

fn together(fresh: &[u64], counted: &SparseHistogram) -> LatencyHistogram {
    let mut whole = LatencyHistogram::new();
    whole.merge_sparse(counted);
    fresh.iter().for_each(|&value| whole.record(value));
    whole
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_count_the_same(values in prop::collection::vec(0..1u64 << 40, 1..1200)) {
            let (mut roomy, mut narrow) = (Values::new(true), Values::new(false));
            for &value in &values {
                roomy.record(value);
                narrow.record(value);
            }
            prop_assert_eq!(roomy.histogram(), narrow.histogram());
            let mut both = narrow.clone();
            both.merge(&roomy);
            prop_assert_eq!(both.histogram().map(|all| all.count()), Some(2 * values.len() as u64));
        }
    }
}
