//! Prepared values by number, kept for later executions.

use std::collections::HashMap;
use std::rc::Rc;

/// How many values are kept; then all are dropped. The driver uses a few numbers at a time.
const MAX_KEPT: usize = 128;

pub(crate) struct Prepared<T> {
    values: HashMap<u16, Rc<T>>,
}

impl<T> Default for Prepared<T> {
    fn default() -> Self {
        Self { values: HashMap::new() }
    }
}

impl<T> Prepared<T> {
    pub(crate) fn get(&mut self, number: u16, prepare: impl FnOnce(u16) -> T) -> Rc<T> {
        if self.values.len() == MAX_KEPT && !self.values.contains_key(&number) {
            self.values.clear();
        }
        Rc::clone(self.values.entry(number).or_insert_with(|| Rc::new(prepare(number))))
    }

    /// Replaces a value by a fresh one.
    pub(crate) fn forget(&mut self, number: u16) {
        self.values.remove(&number);
    }
}
