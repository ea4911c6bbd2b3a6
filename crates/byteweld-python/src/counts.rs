//! Counts for Python: a table in memory, or sorted parts on disk that are walked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use byteweld_core::counts as core;
use byteweld_core::train::Words;
use byteweld_core::{Error, Result};
use byteweld_spill::{PARTS, Runs, Section, Sorted, Source, Writer, part_of};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{import_numpy, threads};
use crate::error::raise;
use crate::limit::{MemoryLimit, Watch, core_error, merge_options, spool};

/// A batch has at most so many pre-tokens, and ends before it has more bytes than this (unless it is one
/// pre-token). Saved counts are written batch by batch, so these numbers are part of their bytes.
const BATCH_ROWS: usize = 1 << 16;
const BATCH_BYTES: usize = 4 << 20;

/// Python is asked for signals after so many pre-tokens.
const ASK_EVERY: usize = 1 << 12;

/// Pre-token bytes and how many. Immutable.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Counts {
    pub(crate) table: Table,
}

/// Where the counts are.
pub(crate) enum Table {
    /// The order is made when it is first asked for.
    Memory(core::Counts, OnceLock<core::Order>),
    Spilled(Sorted),
}

impl From<core::Counts> for Table {
    fn from(counts: core::Counts) -> Self {
        Table::Memory(counts, OnceLock::new())
    }
}

impl Words for Table {
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

/// Pre-tokens of one part, back to back.
#[derive(Default)]
struct Batch {
    offsets: Vec<i32>,
    data: Vec<u8>,
    counts: Vec<u64>,
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
        self.data.extend_from_slice(pretoken);
        self.offsets.push(offset);
        self.counts.push(count);
        Ok(true)
    }
}

/// Distinct pre-tokens, their bytes, how many there are in all, and the bytes of all.
#[derive(Clone, Copy, Default)]
struct Sums {
    distinct: u64,
    distinct_bytes: u64,
    total: u128,
    total_bytes: u128,
}

impl Sums {
    fn add(&mut self, pretoken: &[u8], count: u64) {
        self.distinct += 1;
        self.distinct_bytes += pretoken.len() as u64;
        self.total += u128::from(count);
        self.total_bytes += pretoken.len() as u128 * u128::from(count);
    }
}

impl Table {
    fn sums_by_part(&self) -> [Sums; PARTS] {
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

    fn sums(&self) -> Sums {
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

    /// A batch of a part's pre-tokens in order, and where the next one starts.
    fn batch(&self, part: usize, position: u64) -> Result<(Batch, Option<u64>)> {
        let mut batch = Batch::new();
        match self {
            Table::Memory(counts, order) => {
                let order = order.get_or_init(|| core::Order::new(counts, PARTS, part_of));
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

    /// The parts as what to merge; those in memory are written to disk.
    fn sources(&self, spool: &Arc<byteweld_spill::Spool>) -> Result<Vec<Source<'_>>> {
        match self {
            Table::Spilled(sorted) => Ok(sorted.sources().collect()),
            Table::Memory(counts, order) => {
                let order = order.get_or_init(|| core::Order::new(counts, PARTS, part_of));
                let mut run = (0..PARTS).flat_map(|part| order.part(counts, part, 0));
                let sections = byteweld_spill::sections(spool, &mut run).map_err(core_error)?;
                Ok(sections.into_iter().map(Source::Own).collect())
            }
        }
    }
}

/// (offsets, data, counts) as arrays of numpy, and where the next batch starts.
type PyBatch<'py> =
    (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u64>>, Option<u64>);

#[pymethods]
impl Counts {
    /// A table from (bytes, count) pairs.
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
    fn sums(&self, py: Python<'_>) -> (u64, u64, u128, u128) {
        let sums = py.detach(|| self.table.sums());
        (sums.distinct, sums.distinct_bytes, sums.total, sums.total_bytes)
    }

    /// The same for each part.
    fn sums_by_part(&self, py: Python<'_>) -> Vec<(u64, u64, u128, u128)> {
        let sums = py.detach(|| self.table.sums_by_part());
        sums.iter().map(|s| (s.distinct, s.distinct_bytes, s.total, s.total_bytes)).collect()
    }

    fn get(&self, py: Python<'_>, pretoken: &[u8]) -> PyResult<u64> {
        match &self.table {
            Table::Memory(counts, _) => Ok(counts.get(pretoken)),
            Table::Spilled(sorted) => {
                sorted.get(pretoken).map_err(|error| raise(py, core_error(error)))
            }
        }
    }

    /// All (bytes, count) pairs in order of the bytes.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
        match &self.table {
            Table::Memory(counts, _) => {
                let sorted = py.detach(|| counts.sorted());
                let pairs = sorted.into_iter().map(|(bytes, n)| (PyBytes::new(py, bytes), n));
                Ok(pairs.collect())
            }
            Table::Spilled(sorted) => {
                let raised = |error| raise(py, core_error(error));
                let mut items = Vec::new();
                let mut cursor = sorted.in_order().map_err(raised)?;
                while let Some((bytes, count)) = cursor.next().map_err(raised)? {
                    items.push((PyBytes::new(py, bytes), count));
                    if items.len().is_multiple_of(ASK_EVERY) {
                        py.check_signals()?;
                    }
                }
                Ok(items)
            }
        }
    }

    /// The n pairs with the greatest counts; ties in order of the bytes.
    fn most_common<'py>(
        &self,
        py: Python<'py>,
        n: usize,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
        let found = py.detach(|| most_common(&self.table, n));
        let found = found.map_err(|error| raise(py, error))?;
        Ok(found.into_iter().map(|(bytes, n)| (PyBytes::new(py, &bytes), n)).collect())
    }

    /// A batch of one part, in order of the bytes, from a position on (0, or what the last batch said).
    fn batch<'py>(&self, py: Python<'py>, part: usize, position: u64) -> PyResult<PyBatch<'py>> {
        import_numpy(py)?;
        let (batch, next) =
            py.detach(|| self.table.batch(part, position)).map_err(|error| raise(py, error))?;
        let Batch { offsets, data, counts } = batch;
        Ok((offsets.into_pyarray(py), data.into_pyarray(py), counts.into_pyarray(py), next))
    }

    /// The sum of tables. What a limit has no room for goes to disk.
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

    /// The counts without the pre-tokens that occur less than `threshold` times; and of these, how many are
    /// distinct, how often they occurred, their bytes, and by how much a pair's count may be too small.
    #[pyo3(signature = (threshold, *, limit))]
    fn prune(
        &self,
        py: Python<'_>,
        threshold: u64,
        limit: Option<Py<MemoryLimit>>,
    ) -> PyResult<(Self, (u64, u128, u128, u128))> {
        let limit = limit.as_ref().map(Py::get);
        let mut watch = Watch::default();
        let mut dropped = core::Dropped::default();
        let pruned = py.detach(|| {
            let mut seen = 0_usize;
            let mut is_kept = |pretoken: &[u8], count: u64| {
                seen += 1;
                if seen.is_multiple_of(ASK_EVERY) && watch.go_on(|_| Ok(())).is_break() {
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

/// The tables, if all of them are in memory and their sum may be, too.
fn in_memory<'t>(
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

fn add_up(tables: &[&core::Counts], go_on: &mut dyn FnMut() -> ControlFlow<()>) -> Result<Table> {
    let mut sum = core::Counts::new();
    for table in tables {
        if go_on().is_break() {
            return Err(Error::Interrupted);
        }
        sum.merge(table)?;
    }
    Ok(sum.into())
}

fn prune_spilled(
    sorted: &Sorted,
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
    Ok(Table::Spilled(Sorted::new(spool, parts)))
}

/// The n best, with no more than n in memory.
fn most_common(table: &Table, n: usize) -> Result<Vec<(Vec<u8>, u64)>> {
    // The first of the heap is the worst: the smallest count, and of these the greatest bytes.
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
        best.push((Reverse(count), pretoken.to_vec()));
        Ok(())
    })?;
    Ok(best.into_sorted_vec().into_iter().map(|(Reverse(count), bytes)| (bytes, count)).collect())
}

// ---------------------------------------------------------------------- from sorted batches

/// Takes sorted batches, part after part, and checks each pre-token.
#[pyclass(module = "byteweld._native")]
pub(crate) struct CountLoader {
    to: LoadTo,
    part: usize,
    /// The pre-token before, in this part.
    last: Option<Vec<u8>>,
    /// Of this part.
    sums: Sums,
}

enum LoadTo {
    Memory(core::Counts),
    Disk { spool: Arc<byteweld_spill::Spool>, done: Vec<Section>, writer: Writer },
    Finished,
}

#[pymethods]
impl CountLoader {
    /// With a limit, the counts go to disk.
    #[new]
    #[pyo3(signature = (*, limit))]
    fn new(py: Python<'_>, limit: Option<Py<MemoryLimit>>) -> PyResult<Self> {
        let to = match limit {
            None => LoadTo::Memory(core::Counts::new()),
            Some(limit) => {
                let spool = spool(Some(limit.get())).map_err(|error| raise(py, error))?;
                let writer = Writer::new(Arc::clone(&spool));
                LoadTo::Disk { spool, done: Vec::new(), writer }
            }
        };
        Ok(Self { to, part: 0, last: None, sums: Sums::default() })
    }

    /// Adds a batch to the current part. If a row is wrong: its number in the part, and what is wrong.
    fn add(
        &mut self,
        py: Python<'_>,
        offsets: numpy::PyReadonlyArray1<'_, i32>,
        data: numpy::PyReadonlyArray1<'_, u8>,
        counts: numpy::PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Option<(u64, String)>> {
        let (offsets, data, counts) = (offsets.as_slice()?, data.as_slice()?, counts.as_slice()?);
        let added = py.detach(|| self.add_rows(offsets, data, counts));
        added.map_err(|error| raise(py, error))
    }

    /// Goes on to the next part; says what this one held, as [`Counts::sums`] does.
    fn end_part(&mut self, py: Python<'_>) -> PyResult<(u64, u64, u128, u128)> {
        let sums = self.next_part().map_err(|error| raise(py, error))?;
        Ok((sums.distinct, sums.distinct_bytes, sums.total, sums.total_bytes))
    }

    /// The counts; nothing can be added afterwards.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Counts> {
        while self.part < PARTS {
            self.end_part(py)?;
        }
        match std::mem::replace(&mut self.to, LoadTo::Finished) {
            LoadTo::Memory(counts) => Ok(Counts { table: counts.into() }),
            LoadTo::Disk { spool, done, .. } => {
                Ok(Counts { table: Table::Spilled(Sorted::new(spool, done)) })
            }
            LoadTo::Finished => Ok(Counts { table: core::Counts::new().into() }),
        }
    }
}

impl CountLoader {
    fn add_rows(
        &mut self,
        offsets: &[i32],
        data: &[u8],
        counts: &[u64],
    ) -> Result<Option<(u64, String)>> {
        let before = self.last.take();
        let mut last = before.as_deref();
        for (ends, &count) in offsets.windows(2).zip(counts) {
            let row = self.sums.distinct;
            let Some(pretoken) = data.get(ends[0] as usize..ends[1] as usize) else {
                return Ok(Some((row, "its bytes lie outside the data".to_owned())));
            };
            if let Some(wrong) = self.wrong(pretoken, count, last) {
                return Ok(Some((row, wrong)));
            }
            match &mut self.to {
                LoadTo::Memory(table) => table.add(pretoken, count)?,
                LoadTo::Disk { writer, .. } => {
                    writer.push(pretoken, count).map_err(core_error)?;
                }
                LoadTo::Finished => {}
            }
            self.sums.add(pretoken, count);
            last = Some(pretoken);
        }
        self.last = last.map(<[u8]>::to_vec);
        Ok(None)
    }

    /// What is wrong with a row.
    fn wrong(&self, pretoken: &[u8], count: u64, last: Option<&[u8]>) -> Option<String> {
        let shown =
            || format!("{:?}", String::from_utf8_lossy(&pretoken[..pretoken.len().min(80)]));
        if pretoken.is_empty() {
            return Some("an empty pre-token".to_owned());
        }
        if count == 0 {
            return Some(format!("pre-token {} has count 0; such rows are left out", shown()));
        }
        match last {
            Some(last) if last == pretoken => {
                return Some(format!("pre-token {} is there twice", shown()));
            }
            Some(last) if last > pretoken => {
                return Some(format!("pre-token {} is not in order of the bytes", shown()));
            }
            _ => {}
        }
        let part = part_of(pretoken);
        (part != self.part)
            .then(|| format!("pre-token {} belongs to part {part}, not {}", shown(), self.part))
    }

    fn next_part(&mut self) -> Result<Sums> {
        if let LoadTo::Disk { spool, done, writer } = &mut self.to {
            let ended = std::mem::replace(writer, Writer::new(Arc::clone(spool)));
            done.push(ended.finish().map_err(core_error)?);
        }
        (self.part, self.last) = (self.part + 1, None);
        Ok(std::mem::take(&mut self.sums))
    }
}

/// What runs add up to.
pub(crate) fn merge_runs(
    runs: &Runs,
    limit: &MemoryLimit,
    threads: std::num::NonZeroUsize,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Table> {
    let sorted = runs.merge(merge_options(Some(limit), threads), go_on);
    sorted.map(Table::Spilled).map_err(core_error)
}
