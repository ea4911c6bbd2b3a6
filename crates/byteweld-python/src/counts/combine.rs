//! Computes counts from counts: sums, pruned tables, the most common pre-tokens.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use byteweld_core::counts as core;
use byteweld_core::train::PretokenCounts;
use byteweld_core::{Error, Result};
use byteweld_spill::{PARTS, Runs, SortedCounts, Writer};

use super::table::Table;
use crate::limit::{MemoryLimit, core_error, merge_options, spool};

/// The tables, if all of them are in memory and their sum also fits.
pub(super) fn in_memory<'t>(
    tables: &[&'t Table],
    limit: Option<&MemoryLimit>,
) -> Option<Vec<&'t core::Counts>> {
    let counts: Vec<&core::Counts> = tables
        .iter()
        .map(|table| match table {
            Table::Memory(counts, _) => Some(counts),
            Table::Spilled(_) => None,
        })
        .collect::<Option<_>>()?;
    let Some(limit) = limit else { return Some(counts) };
    let (mut distinct, mut bytes) = (0, 0);
    for table in tables {
        let sums = table.sums();
        (distinct, bytes) = (distinct + sums.distinct, bytes + sums.distinct_bytes);
    }
    let needed = core::Counts::memory_needed(distinct as usize, bytes as usize);
    (needed <= limit.keep_bytes).then_some(counts)
}

pub(super) fn add_up(
    tables: &[&core::Counts],
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Table> {
    let mut sum = core::Counts::new();
    for table in tables {
        if go_on().is_break() {
            return Err(Error::Interrupted);
        }
        sum.merge(table)?;
    }
    Ok(sum.into())
}

pub(super) fn prune_spilled(
    sorted: &SortedCounts,
    limit: Option<&MemoryLimit>,
    is_kept: &mut dyn FnMut(&[u8], u64) -> Result<bool>,
) -> Result<Table> {
    let spool = spool(limit)?;
    let mut parts = Vec::with_capacity(PARTS);
    for part in 0..PARTS {
        let mut writer = Writer::new(Arc::clone(&spool));
        let mut reader = sorted.part(part, 0);
        while reader.next().map_err(core_error)? {
            if is_kept(reader.key(), reader.count())? {
                writer.push(reader.key(), reader.count()).map_err(core_error)?;
            }
        }
        parts.push(writer.finish().map_err(core_error)?);
    }
    Ok(Table::Spilled(SortedCounts::new(spool, parts)))
}

/// The n most common, with no more than n in memory.
pub(super) fn most_common(table: &Table, n: usize) -> Result<Vec<(Vec<u8>, u64)>> {
    // The top of the heap is the worst: the lowest count, and among equal counts the greatest
    // bytes.
    let mut best: BinaryHeap<(Reverse<u64>, Vec<u8>)> = BinaryHeap::new();
    if n == 0 {
        return Ok(Vec::new());
    }
    table.for_each(&mut |pretoken, count| {
        if best.len() == n {
            let is_better = best.peek().is_some_and(|(Reverse(least), greatest)| {
                count > *least || (count == *least && pretoken < greatest.as_slice())
            });
            if !is_better {
                return Ok(());
            }
            best.pop();
        }
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(pretoken.len());
        let reserved = reserved.and_then(|()| best.try_reserve(1));
        reserved.map_err(|_| Error::OutOfMemory { bytes: pretoken.len() })?;
        bytes.extend_from_slice(pretoken);
        best.push((Reverse(count), bytes));
        Ok(())
    })?;
    Ok(best.into_sorted_vec().into_iter().map(|(Reverse(count), bytes)| (bytes, count)).collect())
}

/// The sum of runs.
pub(super) fn merge_runs(
    runs: &Runs,
    limit: &MemoryLimit,
    threads: std::num::NonZeroUsize,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Table> {
    let sorted = runs.merge(merge_options(Some(limit), threads), go_on);
    sorted.map(Table::Spilled).map_err(core_error)
}
