//! Opens plain, gzip, zstd, xz and bzip2 files as one kind of reader. All members of an archive are read.

mod bzip2;
mod zstd;

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use crate::memory::{Limits, probe};
use crate::stored::Stored;

/// The maximum size of the buffer of stored bytes.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
const GZIP: &[u8] = &[0x1F, 0x8B];
const XZ: &[u8] = &[0xFD, b'7', b'z', b'X', b'Z', 0];
/// The suffixes of the names of compressed files.
pub(crate) const SUFFIXES: [&str; 4] = [".gz", ".zst", ".xz", ".bz2"];
/// Formats that are rejected instead of being read as text.
const UNSUPPORTED: [(&[u8], &str); 3] = [
    (b"PK\x03\x04", "zip archive"),
    (b"PAR1", "Parquet file"),
    (b"\x04\x22\x4D\x18", "lz4 archive"),
];
/// What opening a file allocates at most: its buffer and the state of a decoder, apart from the
/// dictionary.
const OPEN_BYTES: usize = 1 << 20;
/// What the xz decoder counts in its limit apart from the dictionary, in KiB.
const XZ_OVERHEAD_KIB: usize = 104;

/// The error of a dictionary that is larger than its limit.
#[derive(Debug)]
pub(crate) struct DictionaryTooLarge {
    /// The bytes that it needs, if known.
    pub(crate) needed: Option<u64>,
}

impl fmt::Display for DictionaryTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("decompressing it needs ")?;
        match self.needed {
            Some(needed) => write!(f, "a dictionary of {needed} bytes"),
            None => f.write_str("a larger dictionary in a later part"),
        }
    }
}

impl std::error::Error for DictionaryTooLarge {}

/// Reads the decompressed content of a file.
pub(crate) fn open(
    stored: Stored,
    buffer_bytes: usize,
    limits: &Limits,
) -> io::Result<Box<dyn Read + Send>> {
    probe(OPEN_BYTES)?;
    decoder(BufReader::with_capacity(buffer_bytes, stored), limits.dictionary_bytes)
}

/// Reads a part of a file as it is, whatever its first bytes look like.
pub(crate) fn open_plain(stored: Stored, buffer_bytes: usize) -> io::Result<Box<dyn Read + Send>> {
    probe(OPEN_BYTES)?;
    Ok(Box::new(BufReader::with_capacity(buffer_bytes, stored)))
}

/// Whether data starts like a compressed file that can be read.
pub fn is_compressed(head: &[u8]) -> bool {
    let is_known = [GZIP, XZ].iter().any(|magic| head.starts_with(magic));
    is_known || zstd::is_zstd(head) || bzip2::is_bzip2(head)
}

/// Decompresses a whole file in memory; fails if it holds more than `limit` bytes.
pub fn decompress(data: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let limits = Limits::default();
    decoder(data, limits.dictionary_bytes)?.take(limit as u64 + 1).read_to_end(&mut out)?;
    if out.len() > limit {
        return Err(io::Error::other(format!("it holds more than {limit} bytes")));
    }
    Ok(out)
}

/// Decompresses at most the first `size` bytes of a file in memory.
pub fn decompress_head(data: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let limits = Limits::default();
    decoder(data, limits.dictionary_bytes)?.take(size as u64).read_to_end(&mut out)?;
    Ok(out)
}

fn decoder<'a>(
    mut reader: impl BufRead + Send + 'a,
    dictionary_bytes: usize,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let head = reader.fill_buf()?;
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(magic, _)| head.starts_with(magic)) {
        let message = format!("this is a {name}, which is not supported; convert it first");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(if head.starts_with(GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(reader))
    } else if zstd::is_zstd(head) {
        Box::new(zstd::Zstd::new(reader, dictionary_bytes)?)
    } else if head.starts_with(XZ) {
        let needed = xz_dictionary_bytes(head);
        let limit = u32::try_from(dictionary_bytes / 1024 + XZ_OVERHEAD_KIB).unwrap_or(u32::MAX);
        Box::new(Xz {
            decoder: lzma_rust2::XzReader::new_mem_limit(reader, true, limit),
            first_bytes: needed.filter(|&needed| needed > dictionary_bytes as u64),
        })
    } else if bzip2::is_bzip2(head) {
        Box::new(bzip2::Bzip2::new(reader))
    } else {
        Box::new(reader)
    })
}

/// Reads an xz file, and names the dictionary if that is too large.
struct Xz<R: Read> {
    decoder: lzma_rust2::XzReader<R>,
    /// The size of the first dictionary, if that is too large.
    first_bytes: Option<u64>,
}

impl<R: Read> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| {
            // The decoder has one error for its limit and one for the system's.
            if error.kind() == io::ErrorKind::OutOfMemory && error.to_string().contains("limit") {
                return io::Error::other(DictionaryTooLarge { needed: self.first_bytes });
            }
            error
        })
    }
}

/// The size of the dictionary in the first block header of an xz file: the sum, if there are
/// several.
fn xz_dictionary_bytes(head: &[u8]) -> Option<u64> {
    const LZMA2: u8 = 0x21;
    let size = (usize::from(*head.get(12)?) + 1) * 4;
    let header = head.get(12..12 + size)?;
    // The filters are at the end, before padding and a checksum. That of LZMA2 is the last.
    let at = header.get(2..size - 4)?.windows(2).rposition(|pair| pair == [LZMA2, 1])?;
    let bits = u32::from(*header.get(at + 4)?);
    Some((2 | u64::from(bits & 1)) << (bits / 2 + 11).min(40))
}
