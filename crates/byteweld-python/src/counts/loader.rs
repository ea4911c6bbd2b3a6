//! `CountLoader`: loads counts from sorted batches, such as those of saved counts.

use std::sync::Arc;

use byteweld_core::counts as core;
use byteweld_core::{Error, Result};
use byteweld_spill::{PARTS, Section, SortedCounts, Writer, part_of};
use pyo3::prelude::*;

use super::Counts;
use super::table::{Sums, SumsTuple, Table};
use crate::error::raise;
use crate::limit::{MemoryLimit, core_error, spool};

/// Takes sorted batches, part after part, and checks each pre-token.
#[pyclass(module = "byteweld._native")]
pub(crate) struct CountLoader {
    to: LoadTo,
    part: usize,
    /// The previous pre-token of this part.
    last: Option<Vec<u8>>,
    /// The totals of this part.
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

    /// Adds a batch to the current part. If a row is wrong, returns its number in the part and the
    /// reason.
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

    /// Starts the next part; returns the totals of this one.
    fn end_part(&mut self, py: Python<'_>) -> PyResult<SumsTuple> {
        Ok(self.next_part().map_err(|error| raise(py, error))?.as_tuple())
    }

    /// Returns the counts; nothing can be added afterwards.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Counts> {
        while self.part < PARTS {
            self.end_part(py)?;
        }
        match std::mem::replace(&mut self.to, LoadTo::Finished) {
            LoadTo::Memory(counts) => Ok(Counts { table: counts.into() }),
            LoadTo::Disk { spool, done, .. } => {
                Ok(Counts { table: Table::Spilled(SortedCounts::new(spool, done)) })
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
                return Ok(Some((row, "its bytes are outside the data".to_owned())));
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
        if let Some(last) = last {
            let mut bytes = Vec::new();
            let reserved = bytes.try_reserve_exact(last.len());
            reserved.map_err(|_| Error::OutOfMemory { bytes: last.len() })?;
            bytes.extend_from_slice(last);
            self.last = Some(bytes);
        }
        Ok(None)
    }

    /// The reason why a row is wrong, if it is.
    fn wrong(&self, pretoken: &[u8], count: u64, last: Option<&[u8]>) -> Option<String> {
        let shown =
            || format!("{:?}", String::from_utf8_lossy(&pretoken[..pretoken.len().min(80)]));
        if pretoken.is_empty() {
            return Some("an empty pre-token".to_owned());
        }
        if count == 0 {
            return Some(format!("pre-token {} has count 0; expected at least 1", shown()));
        }
        match last {
            Some(last) if last == pretoken => {
                return Some(format!("pre-token {} occurs twice", shown()));
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
