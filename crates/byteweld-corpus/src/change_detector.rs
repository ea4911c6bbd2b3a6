//! Detects files that change between being opened and being read to the end.
//!
//! Such a file yields text that it never contained as a whole, so the result is not reproducible.

use std::fs::{File, Metadata};
use std::sync::Arc;
use std::time::SystemTime;

/// An open file, and its state when it was opened.
pub(crate) struct ChangeDetector {
    file: Arc<File>,
    opened: Option<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl State {
    /// `None` for pipes and devices, which have no state to compare.
    fn of(metadata: &Metadata) -> Option<Self> {
        let modified = metadata.modified().ok();
        metadata.is_file().then_some(Self { bytes: metadata.len(), modified })
    }
}

impl ChangeDetector {
    pub(crate) fn new(file: File) -> Self {
        let opened = file.metadata().ok().as_ref().and_then(State::of);
        Self { file: Arc::new(file), opened }
    }

    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Whether this is a regular file, which can be read twice.
    pub(crate) fn is_regular(&self) -> bool {
        self.opened.is_some()
    }

    /// The same file, to be read a second time.
    pub(crate) fn again(&self) -> Self {
        Self { file: Arc::clone(&self.file), opened: self.opened }
    }

    /// The buffer size: one byte more than the file, to reach its end, and at most `max_bytes`. So
    /// millions of small files do not allocate millions of large buffers.
    pub(crate) fn buffer_bytes(&self, max_bytes: usize) -> usize {
        let bytes = self.opened.map_or(max_bytes as u64, |state| state.bytes);
        usize::try_from(bytes).unwrap_or(max_bytes).saturating_add(1).clamp(4 << 10, max_bytes)
    }

    /// Describes how the file changed since it was opened, if it did.
    pub(crate) fn find_change(&self) -> Option<String> {
        let opened = self.opened?;
        let now = State::of(&self.file.metadata().ok()?)?;
        let what = match now.bytes {
            bytes if bytes != opened.bytes => {
                format!("it had {} bytes when it was opened and has {bytes} now", opened.bytes)
            }
            _ if now != opened => "its modification time is different".to_owned(),
            _ => return None,
        };
        Some(format!(
            "the file changed while it was read: {what}; start again when nothing writes to it"
        ))
    }
}
