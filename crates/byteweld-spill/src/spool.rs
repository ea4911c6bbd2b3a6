//! A file without a name, given out in chunks. Chunks that are given back are used again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Large enough for a disk, small enough that one can be held for each section being written.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// A temporary file. It has no name, so that nothing is left behind, whatever ends the process.
pub struct Spool {
    file: File,
    folder: PathBuf,
    chunks: Mutex<Chunks>,
}

#[derive(Default)]
struct Chunks {
    /// How many the file has.
    count: u64,
    /// Those that nobody uses.
    free: Vec<u64>,
}

impl Spool {
    /// Makes a spool in a folder.
    pub fn new(folder: &Path) -> Result<Self> {
        let folder = folder.to_path_buf();
        match tempfile::tempfile_in(&folder) {
            Ok(file) => Ok(Self { file, folder, chunks: Mutex::default() }),
            Err(error) => Err(Error::Io { folder, error }),
        }
    }

    /// How many bytes the file has grown to.
    pub fn disk_bytes(&self) -> u64 {
        self.chunks().count * CHUNK_BYTES as u64
    }

    /// Gives out a chunk to write to.
    pub(crate) fn take(&self) -> u64 {
        let mut chunks = self.chunks();
        chunks.free.pop().unwrap_or_else(|| {
            chunks.count += 1;
            chunks.count - 1
        })
    }

    /// Takes chunks back that are not needed any more.
    pub(crate) fn give_back(&self, chunks: &[u64]) {
        self.chunks().free.extend_from_slice(chunks);
    }

    /// Writes to the start of a chunk.
    pub(crate) fn write(&self, chunk: u64, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, chunk * CHUNK_BYTES as u64).map_err(|error| self.refused(error))
    }

    /// Reads from a chunk; what is not there was lost.
    pub(crate) fn read(&self, chunk: u64, within: usize, buffer: &mut [u8]) -> Result<()> {
        let offset = chunk * CHUNK_BYTES as u64 + within as u64;
        self.read_at(buffer, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(),
            _ => self.refused(error),
        })
    }

    pub(crate) fn damaged(&self) -> Error {
        Error::Damaged { folder: self.folder.clone() }
    }

    fn refused(&self, error: io::Error) -> Error {
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

    /// Cuts the file, as a test of what happens then.
    #[cfg(test)]
    pub(crate) fn truncate(&self, bytes: u64) {
        self.file.set_len(bytes).unwrap();
    }
}
