//! Tokens that are never learned.

use std::cmp::Ordering;

/// A set of byte strings, searched by the two halves of a pair.
pub(super) struct Forbidden {
    /// Sorted by length, then bytes, so that a lookup rarely compares bytes.
    texts: Vec<Box<[u8]>>,
    /// Their lengths, ascending.
    lengths: Vec<u64>,
}

impl Forbidden {
    pub(super) fn new(texts: &[Vec<u8>]) -> Self {
        let mut texts: Vec<Box<[u8]>> = texts.iter().map(|text| text.as_slice().into()).collect();
        texts.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let mut lengths: Vec<u64> = texts.iter().map(|text| text.len() as u64).collect();
        lengths.dedup();
        Self { texts, lengths }
    }

    /// Whether any of the byte strings is this long.
    pub(super) fn has_length(&self, length: u64) -> bool {
        self.lengths.binary_search(&length).is_ok()
    }

    /// Whether `left` and `right` together are one of the byte strings.
    pub(super) fn contains(&self, left: &[u8], right: &[u8]) -> bool {
        self.texts.binary_search_by(|text| compare(text, left, right)).is_ok()
    }
}

/// Compares a text with the concatenation of two, by length and then bytes.
fn compare(text: &[u8], left: &[u8], right: &[u8]) -> Ordering {
    text.len().cmp(&(left.len() + right.len())).then_with(|| {
        let (start, end) = text.split_at(left.len());
        start.cmp(left).then_with(|| end.cmp(right))
    })
}
