//! Remote files as streams: Python opens them, and reads a block at a time.

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use pyo3::exceptions::{PyFileNotFoundError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// Whether a path is the URL of a remote file. Paths of local files have no two slashes in a row:
/// Python has normalized them.
pub(crate) fn is_remote(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().windows(3).any(|bytes| bytes == b"://")
}

/// Reads an object whose `read()` returns the next block as bytes, and none at the end
/// (`corpus/_remote.py`). Takes the GIL once per block.
pub(crate) struct RemoteReader {
    stream: Py<PyAny>,
    block: Option<PyBackedBytes>,
    /// How much of the block was read.
    taken: usize,
}

impl RemoteReader {
    /// Calls `open` with the URL, the offset to start at, and the one to stop at, if that is not the
    /// end.
    pub(crate) fn open(
        open: &Py<PyAny>,
        url: &Path,
        start: u64,
        stop: Option<u64>,
    ) -> io::Result<Self> {
        let stream = Python::attach(|py| {
            open.call1(py, (url.as_os_str(), start, stop)).map_err(|error| io_error(py, error))
        })?;
        Ok(Self { stream, block: None, taken: 0 })
    }
}

impl Read for RemoteReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.as_ref().is_none_or(|block| self.taken >= block.len()) {
            self.block = None; // first, so that two are never in memory
            let block = Python::attach(|py| {
                let block = self.stream.call_method0(py, "read");
                let block = block.and_then(|block| Ok(block.extract::<PyBackedBytes>(py)?));
                block.map_err(|error| io_error(py, error))
            })?;
            self.block = Some(block);
            self.taken = 0;
        }
        let rest = self.block.as_ref().map_or(&[][..], |block| &block[self.taken..]);
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.taken += length;
        Ok(length)
    }
}

/// An error of the system that holds the exception (`error.rs` takes it out again). Files that are
/// missing or forbidden may be skipped.
fn io_error(py: Python<'_>, error: PyErr) -> io::Error {
    let kind = if error.is_instance_of::<PyFileNotFoundError>(py) {
        ErrorKind::NotFound
    } else if error.is_instance_of::<PyPermissionError>(py) {
        ErrorKind::PermissionDenied
    } else {
        ErrorKind::Other
    };
    io::Error::new(kind, error)
}
