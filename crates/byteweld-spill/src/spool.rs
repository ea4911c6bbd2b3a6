//! An unnamed temporary file, allocated in chunks. Released chunks are reused.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Large enough for efficient I/O, small enough to buffer one for each section being written.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// A temporary file without a name, so that nothing remains however the process ends.
pub struct Spool {
    file: File,
    folder: PathBuf,
    chunks: Mutex<Chunks>,
}

#[derive(Default)]
struct Chunks {
    /// The number of chunks in the file.
    count: u64,
    /// Unused chunks.
    free: Vec<u64>,
}

impl Spool {
    /// Creates a spool in a folder.
    pub fn new(folder: &Path) -> Result<Self> {
        let folder = folder.to_path_buf();
        match tempfile::tempfile_in(&folder) {
            Ok(file) => Ok(Self { file, folder, chunks: Mutex::default() }),
            Err(error) => Err(Error::Io { folder, error }),
        }
    }

    /// The size of the file.
    #[cfg(test)]
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.chunks().count * CHUNK_BYTES as u64
    }

    /// Allocates a chunk.
    pub(crate) fn allocate(&self) -> u64 {
        let mut chunks = self.chunks();
        chunks.free.pop().unwrap_or_else(|| {
            chunks.count += 1;
            chunks.count - 1
        })
    }

    /// Releases chunks for reuse.
    pub(crate) fn release(&self, chunks: &[u64]) {
        self.chunks().free.extend_from_slice(chunks);
    }

    /// Writes to the start of a chunk.
    pub(crate) fn write(&self, chunk: u64, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, chunk * CHUNK_BYTES as u64).map_err(|error| self.io_error(error))
    }

    /// Reads from an offset in a chunk.
    pub(crate) fn read(&self, chunk: u64, offset: usize, buffer: &mut [u8]) -> Result<()> {
        let offset = chunk * CHUNK_BYTES as u64 + offset as u64;
        self.read_at(buffer, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(),
            _ => self.io_error(error),
        })
    }

    pub(crate) fn damaged(&self) -> Error {
        Error::Damaged { folder: self.folder.clone() }
    }

    fn io_error(&self, error: io::Error) -> Error {
        Error::Io { folder: self.folder.clone(), error }
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(&self.file, bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => (bytes, offset) = (&bytes[written..], offset + written as u64),
            }
        }
        Ok(())
    }

    #[cfg(windows)]
    fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => (buffer, offset) = (&mut buffer[read..], offset + read as u64),
            }
        }
        Ok(())
    }

    /// Truncates the file, to test that damage is detected.
    #[cfg(test)]
    pub(crate) fn truncate(&self, bytes: u64) {
        self.file.set_len(bytes).unwrap();
    }
}
