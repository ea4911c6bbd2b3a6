//! Opens plain, gzip, zstd, xz and bzip2 files as one kind of reader. All members of an archive are read.

mod bzip2;

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::memory::{Limits, probe};
use crate::stored::Stored;

/// The maximum size of the buffer of stored bytes.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
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

/// Whether data starts like a compressed file that can be read.
pub fn is_compressed(head: &[u8]) -> bool {
    let is_known = [GZIP, ZSTD, XZ].iter().any(|magic| head.starts_with(magic));
    is_known || is_skippable(head) || bzip2::is_bzip2(head)
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
    } else if head.starts_with(ZSTD) || is_skippable(head) {
        Box::new(Zstd::new(reader, dictionary_bytes))
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

/// Whether a skippable zstd frame starts here; some programs write one first.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [first, 0x2A, 0x4D, 0x18, ..] if first & 0xF0 == 0x50)
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

/// Reads all frames of a zstd file, except skippable ones.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    dictionary_bytes: u64,
    /// The largest window that was available so far.
    probed_bytes: u64,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R, dictionary_bytes: usize) -> Self {
        let mut decoder = FrameDecoder::new();
        let dictionary_bytes = dictionary_bytes as u64;
        decoder.set_max_window_size(dictionary_bytes);
        Self { source, decoder, in_frame: false, dictionary_bytes, probed_bytes: 1 << 20 }
    }

    /// Starts the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut header = [0; 18];
            self.source.read_exact(&mut header[..4])?;
            if is_skippable(&header) {
                let mut length = [0; 4];
                self.source.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            self.source.read_exact(&mut header[4..5])?;
            let length = zstd_header_bytes(header[4]);
            self.source.read_exact(&mut header[5..length])?;
            // The decoder's buffer grows to a power of two.
            let window = zstd_window_bytes(&header);
            let needed = window.checked_next_power_of_two().unwrap_or(u64::MAX);
            if needed > self.dictionary_bytes {
                return Err(io::Error::other(DictionaryTooLarge { needed: Some(needed) }));
            }
            if needed > self.probed_bytes {
                probe(needed as usize + (1 << 20))?;
                self.probed_bytes = needed;
            }
            // The first time makes the decoder, the second its buffer, which would otherwise grow
            // later, when the memory may be gone.
            for _ in 0..2 {
                self.decoder.reset(&header[..length]).map_err(io::Error::other)?;
            }
            return Ok(true);
        }
    }
}

/// The length of a zstd frame header with this descriptor, the magic number included.
fn zstd_header_bytes(descriptor: u8) -> usize {
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    5 + usize::from(!is_single) + dictionary + content
}

/// The size of the window that a zstd frame header asks for.
fn zstd_window_bytes(header: &[u8; 18]) -> u64 {
    let descriptor = header[4];
    if descriptor & 0x20 == 0 {
        let base = 1_u64 << (10 + (header[5] >> 3));
        return base + base / 8 * u64::from(header[5] & 7);
    }
    // A single segment: the window is the content.
    let start = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let mut bytes = [0; 8];
    let length = zstd_header_bytes(descriptor) - start;
    bytes[..length].copy_from_slice(&header[start..start + length]);
    u64::from_le_bytes(bytes) + if length == 2 { 256 } else { 0 }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.in_frame = true;
            }
            if self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.in_frame = !self.decoder.is_finished();
            let stored = self.decoder.get_checksum_from_data();
            if !self.in_frame
                && stored.is_some()
                && stored != self.decoder.get_calculated_checksum()
            {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "checksum mismatch"));
            }
        }
    }
}
