//! Sorted sequences of pre-tokens and counts, stored in the chunks of a spool.
//!
//! A record is the length of the pre-token, its bytes, and the count; numbers are LEB128 varints.
//! Records may cross chunks.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Result, reserve};
use crate::spool::{CHUNK_BYTES, Spool};

/// The maximum length of a varint.
const MAX_VARINT_BYTES: usize = 10;
/// The minimum buffer size of a reader.
pub(crate) const MIN_BUFFER_BYTES: usize = 4 << 10;
/// The minimum distance between indexed records; it doubles when there are more than
/// [`MAX_STARTS`].
const MIN_STRIDE_BYTES: u64 = 64 << 10;
const MAX_STARTS: usize = 4096;

/// The location and totals of one sorted sequence.
#[derive(Default)]
pub struct Section {
    chunks: Vec<u64>,
    bytes: u64,
    /// The length of the longest record.
    longest: usize,
    /// A sparse index: the offsets of some records.
    starts: Vec<u64>,
    stride: u64,
    distinct: u64,
    distinct_bytes: u64,
    total: u128,
    total_bytes: u128,
}

impl Section {
    /// The number of pre-tokens.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The total length of the pre-tokens.
    pub fn distinct_bytes(&self) -> u64 {
        self.distinct_bytes
    }

    /// The sum of their counts.
    pub fn total(&self) -> u128 {
        self.total
    }

    /// The number of bytes counted, each pre-token as often as it occurs.
    pub fn total_bytes(&self) -> u128 {
        self.total_bytes
    }

    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }

    pub(crate) fn release(self, spool: &Spool) {
        spool.release(&self.chunks);
    }

    fn add(&mut self, start: u64, key: &[u8], count: u64, record: usize) -> Result<()> {
        self.longest = self.longest.max(record);
        self.distinct += 1;
        self.distinct_bytes += key.len() as u64;
        self.total += u128::from(count);
        self.total_bytes += key.len() as u128 * u128::from(count);
        let is_far = self.starts.last().is_none_or(|last| start - last >= self.stride);
        if is_far {
            reserve(&mut self.starts, 1)?;
            self.starts.push(start);
        }
        if self.starts.len() > MAX_STARTS {
            let mut number = 0;
            self.starts.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
        Ok(())
    }
}

// ---------------------------------------------------------------------- writing

/// Writes a section. The caller passes distinct pre-tokens in sorted order.
pub struct Writer {
    spool: Arc<Spool>,
    section: Section,
    /// The unwritten part of the current chunk.
    buffer: Vec<u8>,
}

impl Writer {
    /// Starts a section.
    pub fn new(spool: Arc<Spool>) -> Self {
        let section = Section { stride: MIN_STRIDE_BYTES, ..Section::default() };
        Self { spool, section, buffer: Vec::new() }
    }

    /// Adds a pre-token; the count must not be 0.
    pub fn push(&mut self, key: &[u8], count: u64) -> Result<()> {
        let start = self.section.bytes;
        self.push_varint(key.len() as u64)?;
        self.push_bytes(key)?;
        self.push_varint(count)?;
        let record = (self.section.bytes - start) as usize;
        self.section.add(start, key, count, record)
    }

    /// Ends the section.
    pub fn finish(mut self) -> Result<Section> {
        if !self.buffer.is_empty() {
            self.write_chunk()?;
        }
        Ok(self.section)
    }

    fn push_varint(&mut self, mut number: u64) -> Result<()> {
        let mut bytes = [0; MAX_VARINT_BYTES];
        let mut length = 0;
        loop {
            bytes[length] = number as u8 & 0x7F;
            number >>= 7;
            length += 1;
            if number == 0 {
                return self.push_bytes(&bytes[..length]);
            }
            bytes[length - 1] |= 0x80;
        }
    }

    fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.section.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - self.buffer.len()));
            if self.buffer.capacity() < CHUNK_BYTES {
                reserve(&mut self.buffer, CHUNK_BYTES)?; // a whole chunk, when it is first needed
            }
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == CHUNK_BYTES {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self) -> Result<()> {
        let chunk = self.spool.allocate();
        reserve(&mut self.section.chunks, 1)?;
        self.section.chunks.push(chunk);
        self.spool.write(chunk, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

// ---------------------------------------------------------------------- reading

/// Reads the records of a section in order.
pub struct Reader<'s> {
    spool: &'s Spool,
    section: &'s Section,
    /// Bytes read; those before `start` are consumed.
    buffer: Vec<u8>,
    /// The usual size of the buffer.
    buffer_bytes: usize,
    start: usize,
    end: usize,
    /// The offset in the section of the end of the buffer.
    position: u64,
    key: Range<usize>,
    count: u64,
}

impl<'s> Reader<'s> {
    /// Reads from the start of a record. The buffer grows only for a record that does not fit.
    pub fn new(spool: &'s Spool, section: &'s Section, offset: u64, buffer_bytes: usize) -> Self {
        let rest = section.bytes.saturating_sub(offset);
        let bytes = rest.min(buffer_bytes.max(MIN_BUFFER_BYTES) as u64) as usize;
        let position = offset.min(section.bytes);
        let (start, end, count) = (0, 0, 0);
        let (buffer, key) = (Vec::new(), 0..0);
        Self { spool, section, buffer, buffer_bytes: bytes, start, end, position, key, count }
    }

    /// Advances to the next record; false at the end.
    #[expect(clippy::should_implement_trait, reason = "the record is borrowed from the reader")]
    pub fn next(&mut self) -> Result<bool> {
        self.fill(2 * MAX_VARINT_BYTES)?;
        if self.start == self.end {
            return Ok(false);
        }
        let length = self.read_varint()?;
        if length > (self.end - self.start) as u64 + (self.section.bytes - self.position) {
            return Err(self.spool.damaged());
        }
        let length = length as usize;
        self.fill(length + MAX_VARINT_BYTES)?;
        if length > self.end - self.start {
            return Err(self.spool.damaged());
        }
        self.key = self.start..self.start + length;
        self.start += length;
        self.count = self.read_varint()?;
        if self.count == 0 {
            return Err(self.spool.damaged()); // never written, but a hole in the file reads as zeros
        }
        Ok(true)
    }

    /// The bytes of the pre-token.
    pub fn key(&self) -> &[u8] {
        &self.buffer[self.key.clone()]
    }

    /// Its count.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The offset of the next record in the section.
    pub fn offset(&self) -> u64 {
        self.position - (self.end - self.start) as u64
    }

    fn read_varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let Some(&byte) = self.buffer[..self.end].get(self.start) else { break };
            self.start += 1;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.spool.damaged())
    }

    /// Ensures that the buffer has at least `min_bytes` bytes, or all remaining ones.
    #[inline]
    fn fill(&mut self, min_bytes: usize) -> Result<()> {
        let is_enough = self.end - self.start >= min_bytes || self.position == self.section.bytes;
        if is_enough { Ok(()) } else { self.fill_more(min_bytes) }
    }

    #[cold]
    fn fill_more(&mut self, min_bytes: usize) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let remaining = self.end as u64 + (self.section.bytes - self.position);
        let needed = remaining.min(min_bytes as u64) as usize;
        let needed = needed.max(self.buffer_bytes);
        if needed > self.buffer.len() {
            let more = needed - self.buffer.len();
            reserve(&mut self.buffer, more)?;
            self.buffer.resize(needed, 0);
        }
        while self.end < self.buffer.len() && self.position < self.section.bytes {
            let within = (self.position % CHUNK_BYTES as u64) as usize;
            let length = (self.buffer.len() - self.end)
                .min(CHUNK_BYTES - within)
                .min((self.section.bytes - self.position).min(usize::MAX as u64) as usize);
            let chunk = self.section.chunks[(self.position / CHUNK_BYTES as u64) as usize];
            self.spool.read(chunk, within, &mut self.buffer[self.end..self.end + length])?;
            self.end += length;
            self.position += length as u64;
        }
        Ok(())
    }
}
