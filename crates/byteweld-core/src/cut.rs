//! Cut points: offsets at which text may be split without changing a pre-token or splitting a
//! special token, even if more text follows.

use crate::pretoken::Pretokenizer;
use crate::specials::Specials;

/// Cut points inside a special token are rare, so give up after this many.
const MAX_TRIES: usize = 16;
/// The most bytes of a character; whether text may be cut depends on the characters on both sides.
const MAX_CHARACTER_BYTES: usize = 4;

/// The last cut point, or `None` if the last few candidates fail. `pretoken` proves what the
/// pattern allows; a special token that starts in the last bytes may be completed by what follows.
pub(crate) fn last_cut(
    pretokenizer: &Pretokenizer,
    specials: &[&Specials],
    text: &[u8],
) -> Option<usize> {
    let mut limit = text.len();
    for set in specials {
        limit = limit.min(certain_length(set, text)?);
    }
    for _ in 0..MAX_TRIES {
        let offset = pretokenizer.last_cut(text, limit)?;
        if !specials.iter().any(|set| set.lies_across(text, offset)) {
            return Some(offset);
        }
        limit = offset - 1;
    }
    None
}

/// The first cut point at or after `from`, whatever precedes and follows `text`, which is part of a
/// file and reaches its end if `is_end`. Before `from`, `text` must have as many bytes as the
/// longest special token and as a character, or start where the file does.
pub(crate) fn first_cut(
    pretokenizer: &Pretokenizer,
    specials: &Specials,
    text: &[u8],
    from: usize,
    is_end: bool,
) -> Option<usize> {
    let reach = specials.longest().max(MAX_CHARACTER_BYTES);
    let stop = if is_end { text.len() } else { (text.len() + 1).saturating_sub(reach) };
    (from.max(1)..stop).find(|&offset| {
        let start = offset.saturating_sub(MAX_CHARACTER_BYTES);
        let near = &text[start..text.len().min(offset + MAX_CHARACTER_BYTES)];
        let start_of_reach = offset.saturating_sub(reach);
        let around = &text[start_of_reach..text.len().min(offset + reach)];
        pretokenizer.last_cut(near, offset - start) == Some(offset - start)
            && !specials.lies_across(around, offset - start_of_reach)
    })
}

/// The end of the last pre-token of `text[start..]` that no appended text can change and that does
/// not split a special token; `start` if there is no such pre-token. `start` must be a pre-token
/// boundary.
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
    for _ in 0..MAX_TRIES {
        if limit <= start {
            break;
        }
        let offset = start + pretokenizer.certain_end(&text[start..limit]);
        if offset == start || !specials.iter().any(|set| set.lies_across(text, offset)) {
            return offset;
        }
        limit = offset - 1;
    }
    start
}

/// The end of the last special token that no appended text can change.
pub(crate) fn last_special_end(specials: &Specials, text: &[u8]) -> Option<usize> {
    let certain = certain_length(specials, text)?;
    let mut last = None;
    let mut position = 0;
    let mut search = specials.search(text);
    while let Some(special) = search.next(position).filter(|s| s.start < certain) {
        position = special.end;
        last = Some(special.end);
    }
    last
}

/// A special token that starts before this offset is complete.
pub(crate) fn certain_length(specials: &Specials, text: &[u8]) -> Option<usize> {
    (text.len() + 1).checked_sub(specials.longest().max(1))
}
