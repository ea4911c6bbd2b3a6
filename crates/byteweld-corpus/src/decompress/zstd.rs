//! Reads zstd files: all frames, except skippable ones, with libzstd.

use std::io::{self, BufRead, Read};

use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::DictionaryTooLarge;

const MAGIC: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// The maximum length of a frame header.
const MAX_HEADER_BYTES: usize = 18;
/// The largest window that libzstd supports.
const MAX_WINDOW_LOG: u32 = if usize::BITS == 32 { 30 } else { 31 };

/// Whether a frame starts here, or a skippable one; some programs write that first.
pub(super) fn is_zstd(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || is_skippable(head)
}

fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [first, 0x2A, 0x4D, 0x18, ..] if first & 0xF0 == 0x50)
}

/// Reads all frames of a file, except skippable ones.
pub(super) struct Zstd<R> {
    source: R,
    decoder: DCtx<'static>,
    dictionary_bytes: u64,
    in_frame: bool,
    /// What the decoder takes next: at most the rest of a block and the header of the next one. So
    /// an error in a block does not take the content of the block before it with it.
    wanted: usize,
    /// Whether the last read was filled: the decoder may hold more.
    is_full: bool,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(source: R, dictionary_bytes: usize) -> io::Result<Self> {
        let mut decoder = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        // Windows are compared with their limit before the decoder sees them.
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(failure)?;
        let dictionary_bytes = dictionary_bytes as u64;
        Ok(Self { source, decoder, dictionary_bytes, in_frame: false, wanted: 0, is_full: false })
    }

    /// Starts the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut header = [0; MAX_HEADER_BYTES];
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
            if !header.starts_with(MAGIC) {
                return Err(io::Error::other("what follows the last zstd frame is not a frame"));
            }
            self.source.read_exact(&mut header[4..5])?;
            let length = header_bytes(header[4]);
            self.source.read_exact(&mut header[5..length])?;
            self.check_window(window_bytes(&header))?;
            self.decoder.reset(ResetDirective::SessionOnly).map_err(failure)?;
            let mut input = InBuffer::around(&header[..length]);
            let mut nothing = OutBuffer::around(&mut [][..]);
            // The decoder allocates its buffers here.
            self.wanted =
                self.decoder.decompress_stream(&mut nothing, &mut input).map_err(failure)?;
            return Ok(true);
        }
    }

    fn check_window(&self, window: u64) -> io::Result<()> {
        if window > self.dictionary_bytes {
            return Err(io::Error::other(DictionaryTooLarge { needed: Some(window) }));
        }
        if window > 1 << MAX_WINDOW_LOG {
            let message = format!(
                "this is a zstd archive with a window of {window} bytes, but at most {} are \
                 supported; compress it with --long={MAX_WINDOW_LOG} or less",
                1_u64 << MAX_WINDOW_LOG
            );
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                self.in_frame = self.next_frame()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            // What the decoder holds is read first.
            let available = if self.is_full { &[][..] } else { self.source.fill_buf()? };
            if available.is_empty() && !self.is_full {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut input = InBuffer::around(&available[..available.len().min(self.wanted)]);
            let mut output = OutBuffer::around(buffer);
            self.wanted =
                self.decoder.decompress_stream(&mut output, &mut input).map_err(failure)?;
            let (taken, read) = (input.pos(), output.pos());
            self.source.consume(taken);
            self.is_full = read == buffer.len();
            self.in_frame = self.wanted > 0;
            if read > 0 {
                return Ok(read);
            }
        }
    }
}

/// The error of a code of libzstd.
fn failure(code: usize) -> io::Error {
    if code == (ZSTD_ErrorCode::ZSTD_error_memory_allocation as usize).wrapping_neg() {
        return io::ErrorKind::OutOfMemory.into();
    }
    io::Error::other(zstd_safe::get_error_name(code))
}

/// The length of a frame header with this descriptor, the magic number included.
fn header_bytes(descriptor: u8) -> usize {
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    5 + usize::from(!is_single) + dictionary + content
}

/// The size of the window that a frame header asks for.
fn window_bytes(header: &[u8; MAX_HEADER_BYTES]) -> u64 {
    let descriptor = header[4];
    if descriptor & 0x20 == 0 {
        let base = 1_u64 << (10 + (header[5] >> 3));
        return base + base / 8 * u64::from(header[5] & 7);
    }
    // A single segment: the window is the content.
    let start = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let mut bytes = [0; 8];
    let length = header_bytes(descriptor) - start;
    bytes[..length].copy_from_slice(&header[start..start + length]);
    u64::from_le_bytes(bytes).saturating_add(if length == 2 { 256 } else { 0 })
}
