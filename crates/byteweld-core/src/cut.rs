//! Where a text that goes on may be cut: no pre-token changes, and no special token is torn.

use crate::pretoken::Pretokenizer;
use crate::specials::Specials;

/// Few cuts lie inside a special token's text; give up soon if many do.
const TRIES: usize = 16;

/// The last such place, or `None` if the last few fail. What the pattern allows is proved by `pretoken`; a special token that
/// has begun in the last bytes may still be completed by what follows.
pub(crate) fn last_cut(
    pretokenizer: &Pretokenizer,
    specials: &[&Specials],
    text: &[u8],
) -> Option<usize> {
    let mut limit = text.len();
    for set in specials {
        limit = limit.min(certain_length(set, text)?);
    }
    for _ in 0..TRIES {
        let place = pretokenizer.last_cut(text, limit)?;
        if !specials.iter().any(|set| set.lies_across(text, place)) {
            return Some(place);
        }
        limit = place - 1;
    }
    None
}

/// The end of the last pre-token of `text[start..]`, which starts at a true boundary, that no text added behind
/// can change and that tears no special token; `start` if there is none.
pub(crate) fn certain_end(
    pretokenizer: &Pretokenizer,
    specials: &[&Specials],
    text: &[u8],
    start: usize,
) -> usize {
    let mut limit = text.len();
    for set in specials {
        limit = limit.min(certain_length(set, text).unwrap_or(0));
    }
    for _ in 0..TRIES {
        if limit <= start {
            break;
        }
        let place = start + pretokenizer.certain_end(&text[start..limit]);
        if place == start || !specials.iter().any(|set| set.lies_across(text, place)) {
            return place;
        }
        limit = place - 1;
    }
    start
}

/// The end of the last special token that is certain.
pub(crate) fn last_special_end(specials: &Specials, text: &[u8]) -> Option<usize> {
    let certain = certain_length(specials, text)?;
    let mut last = None;
    let mut position = 0;
    while let Some(special) = specials.find(text, position).filter(|s| s.start < certain) {
        position = special.end;
        last = Some(special.end);
    }
    last
}

/// A special token that starts before this place is all there.
pub(crate) fn certain_length(specials: &Specials, text: &[u8]) -> Option<usize> {
    (text.len() + 1).checked_sub(specials.longest().max(1))
}
