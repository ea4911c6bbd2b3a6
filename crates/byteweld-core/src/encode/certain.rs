//! How far the ids of a text are certain, whatever follows it.

use super::Encoder;
use super::specials::{Allowed, Choice};
use crate::cut;
use crate::specials::Specials;

impl Encoder {
    /// The offset up to which the ids of a text are certain, whatever follows; 0 if none are or it
    /// is not known. No special token to be rejected spans that offset.
    pub fn certain_end(
        &self,
        text: &[u8],
        allowed: &Allowed<'_>,
        refused: Option<&Choice>,
    ) -> usize {
        if self.rewrites.is_some() {
            return 0; // normalizers and flags look beyond the pattern
        }
        let mut sets = vec![&self.specials.finder];
        sets.extend(refused.map(|choice| &choice.set.finder));
        // The fast path: between two bytes that are always a boundary.
        if let Some(cut) = cut::last_cut(&self.pretokenizer, &sets, text) {
            return cut;
        }
        let certain_of = |set: &Specials| cut::certain_length(set, text).unwrap_or(0);
        let certain = sets.iter().map(|set| certain_of(set)).min().unwrap_or(0);
        let mut start = 0; // the end of the last certain special token
        let mut recognized = self.specials.recognize(text, allowed);
        while let Some((special, _)) =
            recognized.next(start).filter(|(special, _)| special.start < certain)
        {
            start = special.end;
        }
        // A token to be rejected may span that end, or with more text come to span it.
        let may_span = |choice: &Choice| {
            let finder = &choice.set.finder;
            start > certain_of(finder) || finder.lies_across(text, start)
        };
        if start > 0 && refused.is_some_and(may_span) {
            return 0;
        }
        cut::certain_end(&self.pretokenizer, &sets, text, start)
    }
}
