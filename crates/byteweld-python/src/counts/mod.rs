//! `Counts`: pre-tokens and how often each occurs.

mod builder;
mod combine;
mod loader;
mod table;

use byteweld_core::Error;
use byteweld_core::counts as core;
use byteweld_spill::{PARTS, Source};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use self::combine::{add_up, in_memory, most_common, prune_spilled};
use self::table::{Batch, Sums, SumsTuple};
use crate::convert::{import_numpy, new_bytes, threads};
use crate::error::raise;
use crate::limit::{MemoryLimit, Watch, core_error, merge_options, spool};

pub(crate) use self::builder::CountBuilder;
pub(crate) use self::loader::CountLoader;
pub(crate) use self::table::Table;

/// Signals are checked once per this many pre-tokens.
const CHECK_EVERY: usize = 1 << 12;

/// Pre-tokens and how often each occurs. Immutable.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Counts {
    pub(crate) table: Table,
}

/// Offsets, data and counts as numpy arrays, and the position of the next batch.
type PyBatch<'py> =
    (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u64>>, Option<u64>);

#[pymethods]
impl Counts {
    /// Makes a table of (bytes, count) pairs.
    #[new]
    fn new(py: Python<'_>, items: Vec<(Vec<u8>, u64)>) -> PyResult<Self> {
        let mut counts = core::Counts::new();
        for (pretoken, count) in items {
            counts.add(&pretoken, count).map_err(|e| raise(py, e))?;
        }
        Ok(Self { table: counts.into() })
    }

    fn __len__(&self) -> usize {
        match &self.table {
            Table::Memory(counts, _) => counts.len(),
            Table::Spilled(_) => self.table.sums().distinct as usize,
        }
    }

    /// Whether the counts are on disk.
    #[getter]
    fn is_spilled(&self) -> bool {
        matches!(self.table, Table::Spilled(_))
    }

    /// (distinct, distinct bytes, total, total bytes)
    fn sums(&self, py: Python<'_>) -> SumsTuple {
        py.detach(|| self.table.sums()).as_tuple()
    }

    /// The same for each part.
    fn sums_by_part(&self, py: Python<'_>) -> Vec<SumsTuple> {
        py.detach(|| self.table.sums_by_part()).map(Sums::as_tuple).to_vec()
    }

    fn get(&self, py: Python<'_>, pretoken: &[u8]) -> PyResult<u64> {
        match &self.table {
            Table::Memory(counts, _) => Ok(counts.get(pretoken)),
            Table::Spilled(sorted) => {
                sorted.get(pretoken).map_err(|error| raise(py, core_error(error)))
            }
        }
    }

    /// All (bytes, count) pairs, sorted by bytes.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
        match &self.table {
            Table::Memory(counts, _) => {
                let sorted = py.detach(|| counts.sorted()).map_err(|error| raise(py, error))?;
                pairs(py, sorted.into_iter())
            }
            Table::Spilled(sorted) => {
                let raised = |error| raise(py, core_error(error));
                let mut items = Vec::new();
                let mut cursor = sorted.in_order().map_err(raised)?;
                while let Some((bytes, count)) = cursor.next().map_err(raised)? {
                    items.try_reserve(1).map_err(|_| PyMemoryError::new_err(()))?;
                    items.push((new_bytes(py, bytes)?, count));
                    if items.len().is_multiple_of(CHECK_EVERY) {
                        py.check_signals()?;
                    }
                }
                Ok(items)
            }
        }
    }

    /// The n pairs with the highest counts; ties are sorted by bytes.
    fn most_common<'py>(
        &self,
        py: Python<'py>,
        n: usize,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
        let found = py.detach(|| most_common(&self.table, n));
        let found = found.map_err(|error| raise(py, error))?;
        pairs(py, found.into_iter())
    }

    /// A batch of one part, sorted by bytes, that starts at a position: 0, or the one returned with
    /// the previous batch.
    fn batch<'py>(&self, py: Python<'py>, part: usize, position: u64) -> PyResult<PyBatch<'py>> {
        import_numpy(py)?;
        let (batch, next) =
            py.detach(|| self.table.batch(part, position)).map_err(|error| raise(py, error))?;
        let Batch { offsets, data, counts } = batch;
        Ok((offsets.into_pyarray(py), data.into_pyarray(py), counts.into_pyarray(py), next))
    }

    /// The sum of tables; it is spilled to disk if it exceeds the limit.
    #[staticmethod]
    #[pyo3(signature = (tables, *, limit, num_threads))]
    fn merge(
        py: Python<'_>,
        tables: Vec<Py<Counts>>,
        limit: Option<Py<MemoryLimit>>,
        num_threads: Option<i128>,
    ) -> PyResult<Self> {
        let threads = threads(num_threads)?;
        let tables: Vec<&Table> = tables.iter().map(|table| &table.get().table).collect();
        let limit = limit.as_ref().map(Py::get);
        let mut watch = Watch::default();
        let merged = py.detach(|| match in_memory(&tables, limit) {
            Some(counts) => add_up(&counts, &mut || watch.go_on(|_| Ok(()))),
            None => {
                let spool = spool(limit)?;
                let mut parts: Vec<Vec<Source<'_>>> = (0..PARTS).map(|_| Vec::new()).collect();
                for table in &tables {
                    for (part, source) in parts.iter_mut().zip(table.sources(&spool)?) {
                        part.push(source);
                    }
                }
                let options = merge_options(limit, threads);
                let go_on = &mut || watch.go_on(|_| Ok(()));
                let sorted = byteweld_spill::merge(parts, &spool, options, go_on);
                sorted.map(Table::Spilled).map_err(core_error)
            }
        });
        watch.result(py, merged).map(|table| Self { table })
    }

    /// The counts without the pre-tokens that occur fewer than `threshold` times; and, for the
    /// dropped ones, the number of distinct ones, their occurrences, their bytes, and how far a
    /// pair's count may now be too low.
    #[pyo3(signature = (threshold, *, limit))]
    fn prune(
        &self,
        py: Python<'_>,
        threshold: u64,
        limit: Option<Py<MemoryLimit>>,
    ) -> PyResult<(Self, (u64, u128, u128, u128))> {
        let limit = limit.as_ref().map(Py::get);
        let mut watch = Watch::default();
        let mut dropped = core::Pruned::default();
        let pruned = py.detach(|| {
            let mut seen = 0_usize;
            let mut is_kept = |pretoken: &[u8], count: u64| {
                seen += 1;
                if seen.is_multiple_of(CHECK_EVERY) && watch.go_on(|_| Ok(())).is_break() {
                    return Err(Error::Interrupted);
                }
                if count < threshold {
                    dropped.add(pretoken, count);
                }
                Ok(count >= threshold)
            };
            match &self.table {
                Table::Memory(counts, _) => {
                    let mut kept = core::Counts::new();
                    for (pretoken, count) in counts.iter() {
                        if is_kept(pretoken, count)? {
                            kept.add(pretoken, count)?;
                        }
                    }
                    Ok(kept.into())
                }
                Table::Spilled(sorted) => prune_spilled(sorted, limit, &mut is_kept),
            }
        });
        let table = watch.result(py, pruned)?;
        let bound = (dropped.distinct, dropped.occurrences, dropped.bytes, dropped.pair_error());
        Ok((Self { table }, bound))
    }
}

/// Pairs as Python objects.
fn pairs<'py, B: AsRef<[u8]>>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = (B, u64)>,
) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
    let mut pairs = Vec::new();
    pairs.try_reserve_exact(items.len()).map_err(|_| PyMemoryError::new_err(()))?;
    for (bytes, count) in items {
        pairs.push((new_bytes(py, bytes.as_ref())?, count));
    }
    Ok(pairs)
}
