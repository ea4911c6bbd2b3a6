//! Reads all streams of a bzip2 file.
//!
//! The crate's own reader waits forever if the system has no memory for a block.

use std::io::{self, BufRead, ErrorKind, Read};

use bzip2::{Decompress, Status};

use crate::memory::probe;

/// What a stream allocates at most: four bytes for each of 900,000 in a block, and its state.
const STREAM_BYTES: usize = 4 << 20;

/// Whether data starts like a bzip2 file: a level, and the first block, or the end.
pub(super) fn is_bzip2(head: &[u8]) -> bool {
    const BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: &[u8] = &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    let Some(rest) = head.strip_prefix(b"BZh") else { return false };
    matches!(rest.split_first(), Some((b'1'..=b'9', rest)) if rest.starts_with(BLOCK) || rest.starts_with(END))
}

pub(super) struct Bzip2<R> {
    source: R,
    /// `None` between two streams.
    stream: Option<Decompress>,
}

impl<R: BufRead> Bzip2<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, stream: None }
    }
}

impl<R: BufRead> Read for Bzip2<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.source.fill_buf()?;
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None if input.is_empty() => return Ok(0),
                none => {
                    probe(STREAM_BYTES)?;
                    none.insert(Decompress::new(false))
                }
            };
            let (taken, written) = (stream.total_in(), stream.total_out());
            let status = stream.decompress(input, buffer);
            let taken = (stream.total_in() - taken) as usize;
            let written = (stream.total_out() - written) as usize;
            let is_end = input.is_empty();
            self.source.consume(taken);
            match status.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))? {
                Status::StreamEnd => self.stream = None,
                Status::MemNeeded => return Err(ErrorKind::OutOfMemory.into()),
                _ if taken == 0 && written == 0 && is_end => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                _ if taken == 0 && written == 0 => {
                    return Err(io::Error::new(ErrorKind::InvalidData, "the stream does not end"));
                }
                _ => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}
