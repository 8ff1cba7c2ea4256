//! Time series of bounded memory.

/// Equal intervals since a start, at most `INTERVALS_MAX`: when there would be more, each two become one.
#[derive(Clone, Debug)]
pub struct Intervals<T> {
    started_ns: u64,
    width_ns: u64,
    items: Vec<T>,
}

/// What can be said of two intervals together.
pub trait Absorb: Default {
    /// `later` is the interval after this one.
    fn absorb(&mut self, later: Self);
}

/// Even, so that pairs fit.
pub const INTERVALS_MAX: usize = 2048;

impl<T: Absorb> Intervals<T> {
    /// An interval of 0 is taken as 1.
    pub fn new(started_ns: u64, width_ns: u64) -> Intervals<T> {
        Intervals {
            started_ns,
            width_ns: width_ns.max(1),
            items: Vec::new(),
        }
    }

    /// The interval that holds `at_ns`; of a time before the start, the first.
    #[inline]
    pub fn at(&mut self, at_ns: u64) -> &mut T {
        let elapsed_ns = at_ns.saturating_sub(self.started_ns);
        while elapsed_ns / self.width_ns >= INTERVALS_MAX as u64 {
            self.double();
        }
        let index = (elapsed_ns / self.width_ns) as usize;
        if index >= self.items.len() {
            self.items.resize_with(index + 1, T::default);
        }
        &mut self.items[index]
    }

    /// Calls `add` for every interval that lies in part between two times, with the length of that part.
    #[inline]
    pub fn spread(&mut self, from_ns: u64, to_ns: u64, mut add: impl FnMut(&mut T, u64)) {
        let mut from_ns = from_ns.max(self.started_ns);
        if from_ns < to_ns {
            // Widens the intervals before their borders are taken.
            self.at(to_ns - 1);
        }
        while from_ns < to_ns {
            let index = (from_ns - self.started_ns) / self.width_ns;
            let border_ns =
                (self.started_ns).saturating_add((index + 1).saturating_mul(self.width_ns));
            let until_ns = border_ns.min(to_ns);
            add(self.at(from_ns), until_ns - from_ns);
            from_ns = until_ns;
        }
    }

    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// From the first interval to the last that anything was put in.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// When each interval begins, since the start.
    pub fn starts_ns(&self) -> Vec<u64> {
        (0..self.items.len() as u64)
            .map(|index| index * self.width_ns)
            .collect()
    }

    fn double(&mut self) {
        let mut items = std::mem::take(&mut self.items).into_iter();
        while let Some(mut first) = items.next() {
            if let Some(second) = items.next() {
                first.absorb(second);
            }
            self.items.push(first);
        }
        self.width_ns = self.width_ns.saturating_mul(2);
    }
}
