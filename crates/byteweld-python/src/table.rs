//! Vocabularies as tables: rank files, and compiled ones.

use byteweld_core::encode::PairLayout;
use byteweld_core::table as core;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

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
    fn of_ranks(py: Python<'_>, data: &[u8]) -> Option<Self> {
        py.detach(|| core::VocabTable::from_ranks(data)).map(|inner| Self { inner })
    }

    /// Reads the output of `store`; None for any other data.
    #[staticmethod]
    fn restore(py: Python<'_>, data: &[u8]) -> Option<Self> {
        py.detach(|| core::VocabTable::from_compiled(data)).map(|inner| Self { inner })
    }

    fn store<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.inner.compile()))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn get<'py>(&self, py: Python<'py>, id: u32) -> Option<Bound<'py, PyBytes>> {
        self.inner.get(id).map(|token| PyBytes::new(py, token))
    }

    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tokens = PyDict::new(py);
        for (id, token) in self.inner.tokens() {
            tokens.set_item(id, PyBytes::new(py, token))?;
        }
        Ok(tokens)
    }

    fn merges(&self) -> Vec<(u32, u32, u32)> {
        self.inner.merges().to_vec()
    }

    #[getter]
    fn num_merges(&self) -> usize {
        self.inner.merges().len()
    }

    /// The lines that the fingerprint hashes.
    fn lines<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.inner.lines()))
    }

    fn with_tokens(&self, py: Python<'_>, tokens: Vec<(u32, Vec<u8>)>) -> Option<Self> {
        py.detach(|| self.inner.with_tokens(&tokens)).map(|inner| Self { inner })
    }

    fn with_merges_of_ranks(&self, py: Python<'_>) -> Option<Self> {
        py.detach(|| self.inner.with_recovered_merges()).map(|inner| Self { inner })
    }

    fn makes_every_token(&self, py: Python<'_>, without: Vec<u32>) -> bool {
        py.detach(|| self.inner.makes_every_token(&without))
    }

    fn made_among(&self, ids: Vec<u32>) -> Vec<u32> {
        self.inner.made_among(&ids)
    }

    /// The bytes that have a token, ignoring tokens with these ids.
    fn single_bytes<'py>(&self, py: Python<'py>, without: Vec<u32>) -> Bound<'py, PyBytes> {
        let ids = self.inner.byte_ids(&without);
        let bytes: Vec<u8> =
            (0..=255).filter(|&byte: &u8| ids[byte as usize] != u32::MAX).collect();
        PyBytes::new(py, &bytes)
    }

    fn has_repeats(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.has_repeats())
    }

    fn has_sound_merges(&self, py: Python<'_>, without: Vec<u32>) -> bool {
        py.detach(|| self.inner.has_sound_merges(&without))
    }
}
