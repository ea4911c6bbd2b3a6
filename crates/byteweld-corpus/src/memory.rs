//! What reading may hold in memory, and allocations that fail instead of aborting.

use crate::error::{Error, Result};

/// The limits of what must be in memory at once: a record, or a compressor's dictionary. Text
/// streams, so it needs none.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum length of a JSON record, and of a document that is returned or held whole.
    pub record_bytes: usize,
    /// The maximum memory for the dictionary (the window) of a compressed file.
    pub dictionary_bytes: usize,
    /// Whether the limits follow from a memory budget; otherwise they are the defaults.
    pub is_budget: bool,
}

impl Default for Limits {
    fn default() -> Self {
        // `xz -9` needs 64 MiB, `zstd --ultra -22` and `--long=27` 128 MiB, as much as the zstd
        // program itself accepts by default.
        Self { record_bytes: 1 << 30, dictionary_bytes: 128 << 20, is_budget: false }
    }
}

/// Reserves space for `more` bytes.
pub(crate) fn reserve(buffer: &mut Vec<u8>, more: usize) -> Result<()> {
    buffer.try_reserve(more).map_err(|_| Error::OutOfMemory)
}

/// Appends bytes; fails if there is no memory for them.
pub fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    reserve(buffer, bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// Fails if this much memory cannot be allocated now: libraries abort if they cannot allocate, so
/// what they are about to need is tried first.
pub(crate) fn probe(bytes: usize) -> std::io::Result<()> {
    let mut memory: Vec<u8> = Vec::new();
    let reserved = memory.try_reserve_exact(bytes);
    std::hint::black_box(&memory); // or the compiler removes what is never used
    reserved.map_err(|_| std::io::ErrorKind::OutOfMemory.into())
}
