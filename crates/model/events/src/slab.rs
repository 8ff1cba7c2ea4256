//! Storage for what comes and goes, named by small numbers that are used again: the crate `slab` with typed names.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Values of one kind by `Id`; taking one out frees its number for the next, the last freed first.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    values: slab::Slab<T>,
}

/// Names a value in a `Slab<T>`. Good until the value is taken out.
pub struct Id<T> {
    number: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Slab<T> {
    /// An empty one.
    pub fn new() -> Slab<T> {
        Slab { values: slab::Slab::new() }
    }

    /// How many values are in it.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The name of what is in it under that number.
    #[inline]
    pub fn id(&self, number: u32) -> Id<T> {
        debug_assert!(self.values.contains(number as usize));
        Id::of(number)
    }

    /// What is in it, in the order of the numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Id<T>, &T)> {
        self.values.iter().map(|(number, value)| (Id::of(number as u32), value))
    }

    /// Stores a value and returns its name.
    #[inline]
    pub fn put(&mut self, value: T) -> Id<T> {
        Id::of(self.values.insert(value) as u32)
    }

    /// Panics if it was taken out before: the caller has lost count of what it owns.
    #[inline]
    pub fn take(&mut self, id: Id<T>) -> T {
        self.values.remove(id.number as usize)
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

impl<T> Index<Id<T>> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: Id<T>) -> &T {
        &self.values[id.number as usize]
    }
}

impl<T> IndexMut<Id<T>> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        &mut self.values[id.number as usize]
    }
}

impl<T> Id<T> {
    /// Less than or equal to any other.
    pub const FIRST: Id<T> = Id { number: 0, of: PhantomData };

    fn of(number: u32) -> Id<T> {
        Id { number, of: PhantomData }
    }

    /// Small and dense: good as an index beside the slab.
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number.cmp(&other.number)
    }
}

impl<T> std::fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.number)
    }
}
