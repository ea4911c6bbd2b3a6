//! A compiled table, which `load(cache=)` keeps: tokens, merges, and what takes longest to find out
//! about them, the layout of the pair table.
//!
//! The format: four lengths (starts, bytes, merges, layout), then the four arrays; numbers are 32-bit
//! little-endian.

use super::VocabTable;
use crate::encode::PairLayout;

const HEADER_BYTES: usize = 16;

impl VocabTable {
    /// Compiles the table.
    pub fn compile(&self) -> Vec<u8> {
        let layout = match &self.layout {
            Some(layout) => layout.to_bytes(),
            None => PairLayout::of_merges(&self.merges).to_bytes(),
        };
        let numbers = self.starts.len() + 3 * self.merges.len();
        let length = HEADER_BYTES + 4 * numbers + self.bytes.len() + layout.len();
        let mut data = Vec::with_capacity(length);
        for length in [self.starts.len(), self.bytes.len(), self.merges.len(), layout.len()] {
            data.extend_from_slice(&(length as u32).to_le_bytes()); // tables are shorter than 2^32
        }
        data.extend(self.starts.iter().flat_map(|start| start.to_le_bytes()));
        data.extend_from_slice(&self.bytes);
        data.extend(self.merges.iter().flat_map(|&(a, b, c)| [a, b, c]).flat_map(u32::to_le_bytes));
        data.extend(layout);
        data
    }

    /// Reads a compiled table; `None` if the data is malformed. Merges are not checked, and a layout
    /// that is not theirs is ignored when the pair table is filled.
    pub fn from_compiled(data: &[u8]) -> Option<Self> {
        let (head, rest) = data.split_at_checked(HEADER_BYTES)?;
        let lengths: Vec<usize> = numbers(head).map(|length| length as usize).collect();
        let [starts, bytes, merges, layout] = lengths[..] else { return None };
        let (starts, rest) = rest.split_at_checked(starts.checked_mul(4)?)?;
        let (bytes, rest) = rest.split_at_checked(bytes)?;
        let (ids, rest) = rest.split_at_checked(merges.checked_mul(12)?)?;
        if rest.len() != layout {
            return None;
        }
        let layout = Some(PairLayout::from_bytes(rest, merges)?);
        let starts: Vec<u32> = numbers(starts).collect();
        let is_ascending = starts.is_sorted() && starts.first() == Some(&0);
        if !is_ascending || starts.last().map(|&end| end as usize) != Some(bytes.len()) {
            return None;
        }
        let count = starts.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let merges = ids.as_chunks::<12>().0.iter().map(|merge| {
            let [left, right, new] = [0, 4, 8].map(|at| {
                u32::from_le_bytes([merge[at], merge[at + 1], merge[at + 2], merge[at + 3]])
            });
            (left, right, new)
        });
        Some(Self { starts, bytes: bytes.to_vec(), count, merges: merges.collect(), layout })
    }
}

fn numbers(data: &[u8]) -> impl Iterator<Item = u32> {
    data.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four))
}
