//! What is known of each task.

use std::collections::BTreeMap;

use crate::TaskId;

/// By the task's number. A load's tasks count from 0 and are found at once; the few of the kernel have high numbers.
#[derive(Clone, Debug)]
pub struct TaskMap<T> {
    low: Vec<Option<T>>,
    high: BTreeMap<TaskId, T>,
}

const LOW: TaskId = 1 << 16;

impl<T> TaskMap<T> {
    #[inline]
    pub fn get(&self, task: TaskId) -> Option<&T> {
        if task < LOW { self.low.get(task as usize)?.as_ref() } else { self.high.get(&task) }
    }

    #[inline]
    pub fn get_mut(&mut self, task: TaskId) -> Option<&mut T> {
        if task < LOW { self.low.get_mut(task as usize)?.as_mut() } else { self.high.get_mut(&task) }
    }

    /// What was known; nothing is from now on.
    pub fn remove(&mut self, task: TaskId) -> Option<T> {
        match task < LOW {
            true => self.low.get_mut(task as usize)?.take(),
            false => self.high.remove(&task),
        }
    }

    #[inline]
    pub fn get_or_insert_with(&mut self, task: TaskId, new: impl FnOnce() -> T) -> &mut T {
        if task >= LOW {
            return self.high.entry(task).or_insert_with(new);
        }
        let index = task as usize;
        if self.low.len() <= index {
            self.low.resize_with(index + 1, || None);
        }
        self.low[index].get_or_insert_with(new)
    }
}

impl<T> Default for TaskMap<T> {
    fn default() -> Self {
        TaskMap { low: Vec::new(), high: BTreeMap::new() }
    }
}
