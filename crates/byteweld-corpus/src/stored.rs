//! The bytes of a file as they are stored, before they are decompressed: counted, and hashed.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use twox_hash::xxhash3_128::Hasher;

/// The first read of a pipe or stream returns at least this much, so that its format is recognized.
const HEAD_BYTES: usize = 4 << 10;

/// What reading on to the end of a file takes at once.
const REST_BYTES: usize = 8 << 10;

/// Tells whether to stop. Reading calls it at least once per block of the file.
pub(crate) type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

/// Where bytes come from.
pub(crate) enum Source {
    /// A file, pipe or device.
    File(Arc<File>),
    /// What an opener returned.
    Stream(Box<dyn Read + Send>),
}

/// The error of a read that the caller stopped. (`ErrorKind::Interrupted` would be tried again.)
#[derive(Debug)]
pub(crate) struct Stopped;

/// What decompressors see of an error of the source; [`Stored::take_failure`] has the error itself.
#[derive(Debug)]
struct SourceFailed;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")
    }
}

impl fmt::Display for SourceFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the source cannot be read")
    }
}

impl std::error::Error for Stopped {}
impl std::error::Error for SourceFailed {}

/// The stored bytes of one file. A clone reads on where the other is: a decompressor has one, and
/// the file has one, to see what the decompressor left.
#[derive(Clone)]
pub(crate) struct Stored(Arc<Mutex<State>>);

struct State {
    source: Source,
    /// Whether a short read is not the end.
    is_stream: bool,
    consumed: Arc<AtomicU64>,
    interrupt: Interrupt,
    hasher: Option<Hasher>,
    bytes: u64,
    /// The number of bytes that may still be read.
    left: u64,
    failure: Option<io::Error>,
}

impl Stored {
    pub(crate) fn new(
        source: Source,
        is_stream: bool,
        consumed: Arc<AtomicU64>,
        interrupt: Interrupt,
        digest: bool,
        max_bytes: Option<u64>,
    ) -> Self {
        let hasher = digest.then(Hasher::new);
        let (bytes, failure, left) = (0, None, max_bytes.unwrap_or(u64::MAX));
        let state = State { source, is_stream, consumed, interrupt, hasher, bytes, left, failure };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of the source itself, if that is why a read failed.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.state().failure.take()
    }

    /// Hashes what the decompressor did not need.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.state().hasher.is_none() {
            return Ok(());
        }
        let mut rest = [0; REST_BYTES];
        while self.read(&mut rest)? > 0 {}
        Ok(())
    }

    /// The number of bytes read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.state().bytes
    }

    /// The digest of the bytes read, if that was requested.
    pub(crate) fn digest(&self) -> Option<u128> {
        self.state().hasher.as_ref().map(Hasher::finish_128)
    }
}

impl Read for Stored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let state = &mut *self.state();
        let most = usize::try_from(state.left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..most];
        let wanted =
            if state.is_stream && state.bytes == 0 { most.min(HEAD_BYTES) } else { most.min(1) };
        let mut filled = 0;
        while filled < wanted {
            let read = if (state.interrupt)() {
                Err(io::Error::other(Stopped))
            } else {
                match &mut state.source {
                    Source::File(file) => (&**file).read(&mut buffer[filled..]),
                    Source::Stream(stream) => stream.read(&mut buffer[filled..]),
                }
            };
            match read {
                Ok(0) => break,
                // A stream is not trusted to report only what it wrote.
                Ok(read) => filled = filled.saturating_add(read).min(buffer.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    state.failure = Some(error);
                    return Err(io::Error::other(SourceFailed));
                }
            }
        }
        if let Some(hasher) = &mut state.hasher {
            hasher.write(&buffer[..filled]);
        }
        state.bytes += filled as u64;
        state.left -= filled as u64;
        state.consumed.fetch_add(filled as u64, Ordering::Relaxed);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests;
