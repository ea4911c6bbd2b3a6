//! What counting needs of a place for tables that are too large for memory. The core knows no files.

use std::sync::Arc;

/// Takes tables that have no room left, as sorted runs, from several threads at once.
pub trait Spill: Send + Sync {
    /// How many parts a run has.
    fn parts(&self) -> usize;

    /// Which part a pre-token belongs to: below [`Spill::parts`], and always the same.
    fn part(&self, pretoken: &[u8]) -> usize;

    /// Whether to go on: an error ends the counting. Asked now and then while a table is sorted.
    fn go_on(&self) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }

    /// Takes a run: pre-tokens, each once, in order of their parts and then of their bytes.
    fn write(
        &self,
        run: &mut dyn Iterator<Item = (&[u8], u64)>,
    ) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// How much memory counting may take, and what to do then.
#[derive(Clone)]
pub struct Limit {
    /// Of each thread's table.
    pub table_bytes: usize,
    /// Of a text that cannot be cut, and so is held in memory whole.
    pub text_bytes: usize,
    /// Where full tables go.
    pub spill: Arc<dyn Spill>,
}
