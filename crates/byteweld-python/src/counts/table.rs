//! Where counts are kept: a table in memory, or sorted parts on disk.

use std::sync::{Arc, OnceLock};

use byteweld_core::counts as core;
use byteweld_core::train::PretokenCounts;
use byteweld_core::{Error, Result};
use byteweld_spill::{PARTS, SortedCounts, Source, part_of};

use crate::limit::core_error;

/// Limits of a batch: number of pre-tokens, and bytes (unless it is a single pre-token). Saved
/// counts are written batch by batch, so changing these changes the files.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_BYTES: usize = 4 << 20;

/// Counts in memory or on disk.
pub(crate) enum Table {
    /// With the sorted order, computed when first needed.
    Memory(core::Counts, OnceLock<core::SortedIndex>),
    Spilled(SortedCounts),
}

impl From<core::Counts> for Table {
    fn from(counts: core::Counts) -> Self {
        Table::Memory(counts, OnceLock::new())
    }
}

impl PretokenCounts for Table {
    fn for_each(&self, each: &mut dyn FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        match self {
            Table::Memory(counts, _) => counts.for_each(each),
            Table::Spilled(sorted) => {
                for part in 0..PARTS {
                    let mut reader = sorted.part(part, 0);
                    while reader.next().map_err(core_error)? {
                        each(reader.key(), reader.count())?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The sorted order of counts, computed when first needed.
fn sorted<'o>(
    counts: &core::Counts,
    order: &'o OnceLock<core::SortedIndex>,
) -> Result<&'o core::SortedIndex> {
    match order.get() {
        Some(order) => Ok(order),
        None => {
            let made = core::SortedIndex::new(counts, PARTS, part_of)?;
            Ok(order.get_or_init(|| made))
        }
    }
}

/// Pre-tokens of one part, back to back.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) offsets: Vec<i32>,
    pub(super) data: Vec<u8>,
    pub(super) counts: Vec<u64>,
}

impl Batch {
    fn new() -> Self {
        Self { offsets: vec![0], ..Self::default() }
    }

    /// Adds a pre-token, unless the batch is full.
    fn push(&mut self, pretoken: &[u8], count: u64) -> Result<bool> {
        let end = self.data.len() + pretoken.len();
        if !self.counts.is_empty() && (self.counts.len() == BATCH_ROWS || end > BATCH_BYTES) {
            return Ok(false);
        }
        let Ok(offset) = i32::try_from(end) else {
            return Err(Error::Overflow(format!(
                "a pre-token of {} bytes cannot be saved or sent: the limit is 2^31 - 1",
                pretoken.len()
            )));
        };
        let reserved = self.data.try_reserve(pretoken.len());
        let reserved = reserved.and_then(|()| self.offsets.try_reserve(1));
        let reserved = reserved.and_then(|()| self.counts.try_reserve(1));
        reserved.map_err(|_| Error::OutOfMemory { bytes: pretoken.len() })?;
        self.data.extend_from_slice(pretoken);
        self.offsets.push(offset);
        self.counts.push(count);
        Ok(true)
    }
}

/// Number of distinct pre-tokens, their bytes, number of occurrences, and bytes of all occurrences.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) distinct: u64,
    pub(super) distinct_bytes: u64,
    pub(super) total: u128,
    pub(super) total_bytes: u128,
}

/// The totals as a Python tuple.
pub(super) type SumsTuple = (u64, u64, u128, u128);

impl Sums {
    pub(super) fn as_tuple(self) -> SumsTuple {
        (self.distinct, self.distinct_bytes, self.total, self.total_bytes)
    }

    pub(super) fn add(&mut self, pretoken: &[u8], count: u64) {
        self.distinct += 1;
        self.distinct_bytes += pretoken.len() as u64;
        self.total += u128::from(count);
        self.total_bytes += pretoken.len() as u128 * u128::from(count);
    }
}

impl Table {
    pub(super) fn sums_by_part(&self) -> [Sums; PARTS] {
        let mut sums = [Sums::default(); PARTS];
        match self {
            Table::Memory(counts, _) => {
                for (pretoken, count) in counts.iter() {
                    sums[part_of(pretoken)].add(pretoken, count);
                }
            }
            Table::Spilled(sorted) => {
                for (sums, section) in sums.iter_mut().zip(sorted.parts()) {
                    *sums = Sums {
                        distinct: section.distinct(),
                        distinct_bytes: section.distinct_bytes(),
                        total: section.total(),
                        total_bytes: section.total_bytes(),
                    };
                }
            }
        }
        sums
    }

    pub(super) fn sums(&self) -> Sums {
        let add = |sum: Sums, part: Sums| Sums {
            distinct: sum.distinct + part.distinct,
            distinct_bytes: sum.distinct_bytes + part.distinct_bytes,
            total: sum.total + part.total,
            total_bytes: sum.total_bytes + part.total_bytes,
        };
        match self {
            Table::Memory(counts, _) => {
                let mut sums = Sums::default();
                counts.iter().for_each(|(pretoken, count)| sums.add(pretoken, count));
                sums
            }
            Table::Spilled(_) => self.sums_by_part().into_iter().fold(Sums::default(), add),
        }
    }

    /// A batch of a part's pre-tokens in order, and the position of the next batch.
    pub(super) fn batch(&self, part: usize, position: u64) -> Result<(Batch, Option<u64>)> {
        let mut batch = Batch::new();
        match self {
            Table::Memory(counts, order) => {
                let order = sorted(counts, order)?;
                let rows = order.part(counts, part, position as usize);
                for (next, (pretoken, count)) in (position..).zip(rows) {
                    if !batch.push(pretoken, count)? {
                        return Ok((batch, Some(next)));
                    }
                }
            }
            Table::Spilled(sorted) => {
                let mut reader = sorted.part(part, position);
                loop {
                    let next = reader.offset();
                    if !reader.next().map_err(core_error)? {
                        break;
                    }
                    if !batch.push(reader.key(), reader.count())? {
                        return Ok((batch, Some(next)));
                    }
                }
            }
        }
        Ok((batch, None))
    }

    /// The parts as sources for a merge; a table in memory is written to disk first.
    pub(super) fn sources(&self, spool: &Arc<byteweld_spill::Spool>) -> Result<Vec<Source<'_>>> {
        match self {
            Table::Spilled(sorted) => Ok(sorted.sources().collect()),
            Table::Memory(counts, order) => {
                let order = sorted(counts, order)?;
                let mut run = (0..PARTS).flat_map(|part| order.part(counts, part, 0));
                let sections = byteweld_spill::write_run(spool, &mut run).map_err(core_error)?;
                Ok(sections.into_iter().map(Source::Owned).collect())
            }
        }
    }
}
