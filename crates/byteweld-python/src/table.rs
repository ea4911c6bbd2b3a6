//! Vocabularies as tables: rank files, and compiled ones.

use byteweld_core::encode::PairLayout;
use byteweld_core::table as core;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::{new_bytes, tokens};
use crate::error::check_memory;

/// What reading a vocabulary allocates at most, as a multiple of the file.
pub(crate) const READ_FACTOR: usize = 8;

/// What work on a table allocates at most: as a multiple of the table, and for each token.
const WORK_FACTOR: usize = 4;
const WORK_BYTES: usize = 128;

/// What Python needs at most for a token or a merge.
pub(crate) const OBJECT_BYTES: usize = 256;

/// Returns the CRC-32C of some data.
#[pyfunction]
pub(crate) fn crc32c(py: Python<'_>, data: &[u8]) -> u32 {
    py.detach(|| core::crc32c(data))
}

/// Tokens by id and merges in rank order. Immutable.
#[pyclass(frozen, module = "byteweld._native")]
pub(crate) struct Table {
    inner: core::VocabTable,
}

impl Table {
    pub(crate) fn new(inner: core::VocabTable) -> Self {
        Self { inner }
    }

    /// Raises a `MemoryError` if there is not enough memory for work on the table.
    fn check_work(&self, py: Python<'_>) -> PyResult<()> {
        check_memory(py, WORK_FACTOR * self.inner.size() + WORK_BYTES * self.inner.len())
    }

    /// The same for this many objects of Python.
    fn check_objects(&self, py: Python<'_>, number: usize) -> PyResult<()> {
        check_memory(py, self.inner.size() + OBJECT_BYTES * number)
    }

    /// All tokens except those that are only added tokens. The ids of `added` must ascend.
    pub(crate) fn ordinary(&self, added: &[(u32, Vec<u8>)]) -> Vec<(u32, &[u8])> {
        let mut added = added.iter().map(|(id, _)| *id).peekable();
        let mut tokens = Vec::with_capacity(self.inner.len());
        for (id, token) in self.inner.tokens() {
            while added.next_if(|other| *other < id).is_some() {}
            if added.peek() != Some(&id) {
                tokens.push((id, token));
            }
        }
        tokens
    }

    pub(crate) fn layout(&self) -> Option<PairLayout> {
        self.inner.layout().cloned()
    }

    pub(crate) fn merges_in_order(&self) -> &[(u32, u32, u32)] {
        self.inner.merges()
    }
}

#[pymethods]
impl Table {
    /// Reads a rank file; None if anything in it is unusual.
    #[staticmethod]
    fn of_ranks(py: Python<'_>, data: &[u8]) -> PyResult<Option<Self>> {
        check_memory(py, READ_FACTOR * data.len())?;
        Ok(py.detach(|| core::VocabTable::from_ranks(data)).map(|inner| Self { inner }))
    }

    /// Reads the output of `store`; None for any other data.
    #[staticmethod]
    fn restore(py: Python<'_>, data: &[u8]) -> PyResult<Option<Self>> {
        check_memory(py, READ_FACTOR * data.len())?;
        Ok(py.detach(|| core::VocabTable::from_compiled(data)).map(|inner| Self { inner }))
    }

    fn store<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.check_work(py)?;
        new_bytes(py, &py.detach(|| self.inner.compile()))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn get<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.inner.get(id).map(|token| new_bytes(py, token)).transpose()
    }

    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_objects(py, self.inner.len())?;
        let tokens = PyDict::new(py);
        for (id, token) in self.inner.tokens() {
            tokens.set_item(id, new_bytes(py, token)?)?;
        }
        Ok(tokens)
    }

    fn merges(&self, py: Python<'_>) -> PyResult<Vec<(u32, u32, u32)>> {
        self.check_objects(py, self.inner.merges().len())?;
        Ok(self.inner.merges().to_vec())
    }

    #[getter]
    fn num_merges(&self) -> usize {
        self.inner.merges().len()
    }

    /// The lines that the fingerprint hashes.
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.check_work(py)?;
        new_bytes(py, &py.detach(|| self.inner.lines()))
    }

    fn with_tokens(&self, more: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = more.py();
        let more = tokens(more)?;
        self.check_work(py)?;
        Ok(py.detach(|| self.inner.with_tokens(&more)).map(|inner| Self { inner }))
    }

    fn with_merges_of_ranks(&self, py: Python<'_>) -> PyResult<Option<Self>> {
        self.check_work(py)?;
        Ok(py.detach(|| self.inner.with_recovered_merges()).map(|inner| Self { inner }))
    }

    fn makes_every_token(&self, py: Python<'_>, without: Vec<u32>) -> PyResult<bool> {
        self.check_work(py)?;
        Ok(py.detach(|| self.inner.makes_every_token(&without)))
    }

    fn made_among(&self, py: Python<'_>, ids: Vec<u32>) -> PyResult<Vec<u32>> {
        self.check_work(py)?;
        Ok(self.inner.made_among(&ids))
    }

    /// The bytes that have a token, ignoring tokens with these ids.
    fn single_bytes<'py>(
        &self,
        py: Python<'py>,
        without: Vec<u32>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.check_work(py)?;
        let ids = self.inner.byte_ids(&without);
        let bytes: Vec<u8> =
            (0..=255).filter(|&byte: &u8| ids[byte as usize] != u32::MAX).collect();
        new_bytes(py, &bytes)
    }

    fn has_repeats(&self, py: Python<'_>) -> PyResult<bool> {
        self.check_work(py)?;
        Ok(py.detach(|| self.inner.has_repeats()))
    }

    fn has_sound_merges(&self, py: Python<'_>, without: Vec<u32>) -> PyResult<bool> {
        self.check_work(py)?;
        Ok(py.detach(|| self.inner.has_sound_merges(&without)))
    }
}
