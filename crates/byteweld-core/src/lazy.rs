//! A value that is made when it is first needed, without waiting for another thread to make it: in a
//! forked process, that thread does not exist. Two threads that come first both make it; one is kept.

use std::sync::{Arc, Mutex, OnceLock};

pub(crate) struct Lazy<T> {
    value: OnceLock<Arc<T>>,
    /// Held while storing, so that storing never waits either.
    gate: Mutex<()>,
}

impl<T> Lazy<T> {
    pub(crate) const fn new() -> Self {
        Self { value: OnceLock::new(), gate: Mutex::new(()) }
    }

    pub(crate) fn is_made(&self) -> bool {
        self.value.get().is_some()
    }

    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(value) = self.value.get() {
            return Arc::clone(value);
        }
        let made = Arc::new(make());
        if let Ok(_held) = self.gate.try_lock() {
            let _ = self.value.set(Arc::clone(&made)); // another thread may have stored it
        }
        made
    }
}
