//! Serializes a table for the cache of compiled vocabularies.
//!
//! The format: three lengths (starts, bytes, merges), then the three arrays; numbers are 32-bit
//! little-endian.

use super::VocabTable;

const HEADER_BYTES: usize = 12;

impl VocabTable {
    /// Serializes the table.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.starts.len() + 3 * self.merges.len();
        let mut data = Vec::with_capacity(HEADER_BYTES + 4 * numbers + self.bytes.len());
        for length in [self.starts.len(), self.bytes.len(), self.merges.len()] {
            data.extend_from_slice(&(length as u32).to_le_bytes()); // tables are shorter than 2^32
        }
        data.extend(self.starts.iter().flat_map(|start| start.to_le_bytes()));
        data.extend_from_slice(&self.bytes);
        data.extend(self.merges.iter().flat_map(|&(a, b, c)| [a, b, c]).flat_map(u32::to_le_bytes));
        data
    }

    /// Deserializes a table; `None` if the data is malformed. Merges are not checked.
    pub fn from_bytes(data: &[u8]) -> Option<Self> {
        let (head, rest) = data.split_at_checked(HEADER_BYTES)?;
        let lengths: Vec<usize> = numbers(head).map(|length| length as usize).collect();
        let [starts, bytes, merges] = lengths[..] else { return None };
        let (starts, rest) = rest.split_at_checked(starts.checked_mul(4)?)?;
        let (bytes, rest) = rest.split_at_checked(bytes)?;
        if Some(rest.len()) != merges.checked_mul(12) {
            return None;
        }
        let starts: Vec<u32> = numbers(starts).collect();
        let is_ascending = starts.is_sorted() && starts.first() == Some(&0);
        if !is_ascending || starts.last().map(|&end| end as usize) != Some(bytes.len()) {
            return None;
        }
        let count = starts.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let mut ids = numbers(rest);
        let mut next = || ids.next();
        let merges = std::iter::from_fn(|| Some((next()?, next()?, next()?))).collect();
        Some(Self { starts, bytes: bytes.to_vec(), count, merges })
    }
}

fn numbers(data: &[u8]) -> impl Iterator<Item = u32> {
    data.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}
