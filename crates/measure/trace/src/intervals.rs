//! Time series of bounded memory.

/// Equal intervals since a start, at most `INTERVALS_MAX`: when there would be more, each two become one.
#[derive(Clone, Debug)]
pub struct Intervals<T> {
    started_ns: u64,
    width_ns: u64,
    items: Vec<T>,
    /// The interval that was looked for last, and when it begins: mostly it is looked for again.
    current: usize,
    current_ns: u64,
}

/// Two intervals taken together.
pub trait Absorb: Default {
    /// `later` is the interval after this one.
    fn absorb(&mut self, later: Self);
}

/// Even, so that pairs fit.
pub const INTERVALS_MAX: usize = 2048;

impl<T: Absorb> Intervals<T> {
    /// An interval of 0 is taken as 1.
    pub fn new(started_ns: u64, width_ns: u64) -> Intervals<T> {
        Intervals { started_ns, width_ns: width_ns.max(1), items: Vec::new(), current: 0, current_ns: started_ns }
    }

    /// The interval that holds `at_ns`; of a time before the start, the first.
    #[inline]
    pub fn at(&mut self, at_ns: u64) -> &mut T {
        if !self.is_current(at_ns) {
            self.go_to(at_ns);
        }
        &mut self.items[self.current]
    }

    /// Calls `add` for every interval that lies in part between two times, with the length of that part.
    #[inline]
    pub fn spread(&mut self, from_ns: u64, to_ns: u64, mut add: impl FnMut(&mut T, u64)) {
        let mut from_ns = from_ns.max(self.started_ns);
        if from_ns >= to_ns {
            return;
        }
        // Widens the intervals before their borders are taken.
        if !self.is_current(to_ns - 1) {
            self.go_to(to_ns - 1);
        }
        while from_ns < to_ns {
            if !self.is_current(from_ns) {
                self.go_to(from_ns);
            }
            let until_ns = self.current_ns.saturating_add(self.width_ns).min(to_ns);
            add(&mut self.items[self.current], until_ns - from_ns);
            from_ns = until_ns;
        }
    }

    #[inline]
    fn is_current(&self, at_ns: u64) -> bool {
        at_ns.wrapping_sub(self.current_ns) < self.width_ns && !self.items.is_empty()
    }

    fn go_to(&mut self, at_ns: u64) {
        let elapsed_ns = at_ns.saturating_sub(self.started_ns);
        while elapsed_ns / self.width_ns >= INTERVALS_MAX as u64 {
            self.double();
        }
        self.current = (elapsed_ns / self.width_ns) as usize;
        self.current_ns = self.started_ns + self.current as u64 * self.width_ns;
        if self.current >= self.items.len() {
            self.items.resize_with(self.current + 1, T::default);
        }
    }

    /// The present width of an interval, in nanoseconds.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// From the first interval to the last that anything was put in.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// When each interval begins, since the start.
    pub fn starts_ns(&self) -> Vec<u64> {
        (0..self.items.len() as u64).map(|index| index * self.width_ns).collect()
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
