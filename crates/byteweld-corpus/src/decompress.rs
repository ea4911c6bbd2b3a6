//! Plain, gzip, zstd and xz files behind one reader. Archives of several members are read to their end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::watch::Watch;

const BUFFER_BYTES: usize = 256 << 10;
const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
const XZ: &[u8] = &[0xFD, b'7', b'z', b'X', b'Z', 0];
/// What would otherwise be taken for text.
const UNREAD: [(&[u8], &str); 4] = [
    (b"BZh91AY&SY", "bzip2 archive"),
    (b"PK\x03\x04", "zip archive"),
    (b"PAR1", "Parquet file"),
    (b"\x04\x22\x4D\x18", "lz4 archive"),
];
/// The decoder of an xz file may ask for this much memory.
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// Opens a file; what it holds is what the reader gives, and the watch says whether it stayed the same.
/// `consumed` is raised by the file's own bytes.
pub(crate) fn open(
    path: &Path,
    consumed: Arc<AtomicU64>,
) -> io::Result<(Box<dyn Read + Send>, Watch)> {
    let watch = Watch::new(File::open(path)?);
    let file = Counted { file: watch.file(), consumed };
    Ok((decoder(BufReader::with_capacity(watch.buffer_bytes(BUFFER_BYTES), file))?, watch))
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

fn decoder<'a>(mut reader: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let head = reader.fill_buf()?;
    if let Some((_, name)) = UNREAD.iter().find(|(magic, _)| head.starts_with(magic)) {
        let message = format!("this is a {name}, which is not read; unpack or convert it first");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(if head.starts_with(GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(reader))
    } else if head.starts_with(ZSTD) || is_skippable(head) {
        Box::new(Zstd { source: reader, decoder: FrameDecoder::new(), in_frame: false })
    } else if head.starts_with(XZ) {
        Box::new(lzma_rust2::XzReader::new_mem_limit(reader, true, XZ_MEMORY_KIB))
    } else {
        Box::new(reader)
    })
}

/// Whether a zstd frame that holds no data starts here; some programs write one first.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [first, 0x2A, 0x4D, 0x18, ..] if first & 0xF0 == 0x50)
}

struct Counted {
    file: Arc<File>,
    consumed: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&*self.file).read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// All frames of a zstd file; skippable ones are skipped.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    /// Goes to the next frame; false at the end of the file.
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
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
            }
        }
    }
}
