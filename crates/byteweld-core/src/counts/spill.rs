//! The interface to disk for counts that exceed the memory limit. The core itself uses no files.

use std::sync::Arc;

/// Receives full tables as sorted runs, from several threads at once.
pub trait Spill: Send + Sync {
    /// The number of parts in a run.
    fn parts(&self) -> usize;

    /// The part that a pre-token belongs to: below [`Spill::parts`], and always the same.
    fn part(&self, pretoken: &[u8]) -> usize;

    /// Called at intervals while a table is sorted; an error stops the counting.
    fn check_interrupt(&self) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Writes a run: distinct pre-tokens, sorted by part and then by bytes.
    fn write(
        &self,
        run: &mut dyn Iterator<Item = (&[u8], u64)>,
    ) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// How much memory counting may use, and where to spill.
#[derive(Clone)]
pub struct MemoryLimit {
    /// The limit of each thread's table.
    pub table_bytes: usize,
    /// The limit of text without a cut point, which is kept in memory as a whole.
    pub text_bytes: usize,
    /// Where full tables go.
    pub spill: Arc<dyn Spill>,
}
