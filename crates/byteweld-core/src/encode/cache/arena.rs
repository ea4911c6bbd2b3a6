//! A ring of bytes for what does not fit in an entry of the cache.

/// The size of the ring. New data replaces the oldest.
const ARENA_BYTES: usize = 4 << 20;

/// The ring grows to this size step by step, then gets all of its memory. (Memory that is not written
/// to takes none of the computer's.)
const FIRST_BYTES: usize = 1 << 14;

/// Positions count in units of this many bytes, so that 32 bits reach far.
const UNIT: usize = 4;

/// Longer data is not kept.
pub(super) const MAX_BYTES: usize = ARENA_BYTES / 16;

/// Where data was written, counted from the first byte ever written.
pub(super) type Position = u32;

#[derive(Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    /// Where the next data goes, in units.
    next: u64,
}

impl Arena {
    /// A copy; `None` if there is not enough memory.
    pub(super) fn copy(&self) -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.bytes.len()).ok()?;
        bytes.extend_from_slice(&self.bytes);
        Some(Self { bytes, next: self.next })
    }

    /// Writes parts one after the other, of at most [`MAX_BYTES`] together. `None` if positions have
    /// run out, after gigabytes, or there is not enough memory.
    pub(super) fn push(&mut self, parts: [&[u8]; 2]) -> Option<Position> {
        let units = parts.iter().map(|part| part.len()).sum::<usize>().div_ceil(UNIT);
        let capacity = ARENA_BYTES / UNIT;
        let mut first = self.next as usize % capacity;
        if first + units > capacity {
            self.next += (capacity - first) as u64; // data is contiguous
            first = 0;
        }
        let position = Position::try_from(self.next).ok()?;
        let (start, end) = (first * UNIT, (first + units) * UNIT);
        if self.bytes.len() < end {
            // Once, and not twice as much again and again: freed blocks would stay with the process.
            let is_large = end > FIRST_BYTES;
            let wanted = if is_large { ARENA_BYTES } else { end };
            self.bytes.try_reserve_exact(wanted - self.bytes.len()).ok()?;
            self.bytes.resize(end, 0);
        }
        let [one, other] = parts;
        self.bytes[start..start + one.len()].copy_from_slice(one);
        self.bytes[start + one.len()..][..other.len()].copy_from_slice(other);
        self.next += units as u64;
        Some(position)
    }

    /// The data at a position, unless it was replaced.
    #[inline]
    pub(super) fn get(&self, position: Position, length: usize) -> Option<&[u8]> {
        let capacity = (ARENA_BYTES / UNIT) as u64;
        let is_there = self.next.wrapping_sub(u64::from(position)) <= capacity;
        let start = (u64::from(position) % capacity) as usize * UNIT;
        self.bytes.get(start..start + length).filter(|_| is_there)
    }
}

#[cfg(test)]
mod tests;
