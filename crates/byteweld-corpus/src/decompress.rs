//! Opens plain, gzip, zstd and xz files as one kind of reader. All members of an archive are read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::change_detector::ChangeDetector;

const BUFFER_BYTES: usize = 256 << 10;
const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
const XZ: &[u8] = &[0xFD, b'7', b'z', b'X', b'Z', 0];
/// The suffixes of the names of compressed files.
pub(crate) const SUFFIXES: [&str; 3] = [".gz", ".zst", ".xz"];
/// Formats that are rejected instead of being read as text.
const UNSUPPORTED: [(&[u8], &str); 4] = [
    (b"BZh91AY&SY", "bzip2 archive"),
    (b"PK\x03\x04", "zip archive"),
    (b"PAR1", "Parquet file"),
    (b"\x04\x22\x4D\x18", "lz4 archive"),
];
/// The memory limit of the xz decoder.
const XZ_MEMORY_LIMIT_KIB: u32 = 1 << 20;

/// Opens a file for reading its decompressed content, and for detecting changes to it. `consumed`
/// counts the bytes read from the file itself.
pub(crate) fn open(
    path: &Path,
    consumed: Arc<AtomicU64>,
) -> io::Result<(Box<dyn Read + Send>, ChangeDetector)> {
    let detector = ChangeDetector::new(File::open(path)?);
    let file = CountingReader { file: detector.file(), consumed };
    Ok((decoder(BufReader::with_capacity(detector.buffer_bytes(BUFFER_BYTES), file))?, detector))
}

/// Whether data starts like a compressed file that can be read.
pub fn is_compressed(head: &[u8]) -> bool {
    [GZIP, ZSTD, XZ].iter().any(|magic| head.starts_with(magic)) || is_skippable(head)
}

/// Decompresses a whole file in memory; fails if it holds more than `limit` bytes.
pub fn decompress(data: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    decoder(data)?.take(limit as u64 + 1).read_to_end(&mut out)?;
    if out.len() > limit {
        return Err(io::Error::other(format!("it holds more than {limit} bytes")));
    }
    Ok(out)
}

/// Decompresses at most the first `size` bytes of a file in memory.
pub fn decompress_head(data: &[u8], size: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    decoder(data)?.take(size as u64).read_to_end(&mut out)?;
    Ok(out)
}

fn decoder<'a>(mut reader: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let head = reader.fill_buf()?;
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(magic, _)| head.starts_with(magic)) {
        let message = format!("this is a {name}, which is not supported; convert it first");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(if head.starts_with(GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(reader))
    } else if head.starts_with(ZSTD) || is_skippable(head) {
        Box::new(Zstd { source: reader, decoder: FrameDecoder::new(), in_frame: false })
    } else if head.starts_with(XZ) {
        Box::new(lzma_rust2::XzReader::new_mem_limit(reader, true, XZ_MEMORY_LIMIT_KIB))
    } else {
        Box::new(reader)
    })
}

/// Whether a skippable zstd frame starts here; some programs write one first.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [first, 0x2A, 0x4D, 0x18, ..] if first & 0xF0 == 0x50)
}

/// Counts the bytes read from a file.
struct CountingReader {
    file: Arc<File>,
    consumed: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&*self.file).read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Reads all frames of a zstd file, except skippable ones.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Starts the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut magic = [0; 4];
            self.source.read_exact(&mut magic)?;
            if is_skippable(&magic) {
                let mut length = [0; 4];
                self.source.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            let mut frame = magic.as_slice().chain(&mut self.source);
            self.decoder.reset(&mut frame).map_err(io::Error::other)?;
            return Ok(true);
        }
    }
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
