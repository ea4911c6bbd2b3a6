//! Many texts at once, on as many threads as the caller asks for.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Allowed, Encoder};
use crate::encode::merge::Scratch;
use crate::error::Result;
use crate::threads::together;

/// Less text than this is done on the caller's thread: starting others would take longer.
const WORTH_A_THREAD_BYTES: usize = 32 << 10;

impl Encoder {
    /// Encodes texts; the results are in the order of the texts, whatever the threads.
    pub fn encode_batch<T: AsRef<[u8]> + Sync>(
        &self,
        texts: &[T],
        allowed: &Allowed<'_>,
        threads: NonZeroUsize,
    ) -> Result<Vec<Vec<u32>>> {
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let threads = threads.get().min(bytes / WORTH_A_THREAD_BYTES).min(texts.len()).max(1);
        let next = AtomicUsize::new(0);
        // One worker's life: the next text, until there are none or one fails.
        let work_with = |scratch: &mut Scratch| -> Vec<(usize, Result<Vec<u32>>)> {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(at) else { return done };
                let mut ids = Vec::new();
                let result = self.encode_with(text.as_ref(), allowed, &mut ids, scratch);
                if result.is_err() {
                    next.store(texts.len(), Ordering::Relaxed);
                }
                done.push((at, result.map(|()| ids)));
            }
        };
        let work = || self.with_scratch(work_with);
        let mut done = together(threads, &work, work).into_iter();
        let mut results = done.next().unwrap_or_default();
        results.extend(done.flatten());
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, ids)| ids).collect()
    }
}
