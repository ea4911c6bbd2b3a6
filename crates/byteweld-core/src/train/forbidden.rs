//! Tokens that are never learned.

use std::cmp::Ordering;

/// A set of byte strings, searched by the two halves of a pair.
pub(super) struct Forbidden {
    /// Sorted by length, then bytes, so that a lookup rarely compares bytes.
    texts: Vec<Box<[u8]>>,
}

impl Forbidden {
    pub(super) fn new(texts: &[Vec<u8>]) -> Self {
        let mut texts: Vec<Box<[u8]>> = texts.iter().map(|text| text.as_slice().into()).collect();
        texts.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        Self { texts }
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
