//! Whether a file stayed the same from the moment it was opened until all of it was read.
//!
//! A file that is written to meanwhile gives text that it never held, which nobody could count again.

use std::fs::{File, Metadata};
use std::sync::Arc;
use std::time::SystemTime;

/// An open file, and what it was like when it was opened.
pub(crate) struct Watch {
    file: Arc<File>,
    opened: Option<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl State {
    /// Pipes and devices have no state: what comes out of them is what they hold.
    fn of(metadata: &Metadata) -> Option<Self> {
        let modified = metadata.modified().ok();
        metadata.is_file().then_some(Self { bytes: metadata.len(), modified })
    }
}

impl Watch {
    pub(crate) fn new(file: File) -> Self {
        let opened = file.metadata().ok().as_ref().and_then(State::of);
        Self { file: Arc::new(file), opened }
    }

    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// How much to read at once: all of a small file and its end, and no more than `most`. Millions of small
    /// files shall not ask for millions of large buffers.
    pub(crate) fn buffer_bytes(&self, most: usize) -> usize {
        let bytes = self.opened.map_or(most as u64, |state| state.bytes);
        usize::try_from(bytes).unwrap_or(most).saturating_add(1).clamp(4 << 10, most)
    }

    /// What happened to the file since it was opened, if anything did.
    pub(crate) fn find_change(&self) -> Option<String> {
        let opened = self.opened?;
        let now = State::of(&self.file.metadata().ok()?)?;
        let what = match now.bytes {
            bytes if bytes != opened.bytes => {
                format!("it had {} bytes when it was opened and has {bytes} now", opened.bytes)
            }
            _ if now != opened => "its size is the same, its time of change is not".to_owned(),
            _ => return None,
        };
        Some(format!(
            "the file changed while it was read: {what}; start again when nothing writes to it"
        ))
    }
}
