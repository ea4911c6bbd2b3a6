//! A chain of splits, like Hugging Face's `Sequence` of pre-tokenizers.
//!
//! Each step processes the pieces of the previous step independently. Empty pieces are dropped.

use std::ops::Range;

use super::{Limits, Rewritten, Writer};
use crate::error::Result;
use crate::pretoken::{Bounds, Pretokenizer};
use crate::reserve::{push, reserve};

/// What a split does with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBehavior {
    /// It becomes a piece.
    Isolated,
    /// It is dropped.
    Removed,
    /// It joins the previous piece, unless that is a match too.
    MergedWithPrevious,
    /// It joins the next piece, unless that is a match too.
    MergedWithNext,
    /// Adjacent matches become one piece.
    Contiguous,
}

/// One step of a chain.
pub enum SplitStep {
    /// Splits at the matches of a pattern.
    Split {
        /// The pattern.
        pattern: Pretokenizer,
        /// What to do with a match.
        behavior: SplitBehavior,
        /// Swaps matches and the text between them.
        invert: bool,
    },
    /// Prepends a space to every piece that does not start with one.
    PrefixSpace,
    /// Later steps see each byte as its GPT-2 byte letter.
    ByteLetters,
}

/// A chain of steps.
#[derive(Default)]
pub struct SplitChain {
    steps: Vec<SplitStep>,
}

impl SplitChain {
    /// A chain of these steps.
    pub fn new(steps: Vec<SplitStep>) -> Self {
        Self { steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The patterns' engines, in order.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().filter_map(|step| match step {
            SplitStep::Split { pattern, .. } => Some(pattern.engine().name()),
            _ => None,
        })
    }

    /// Applies the chain; returns the rewritten text and its pieces in order.
    pub(crate) fn split<'t>(
        &self,
        text: &'t [u8],
        with_origins: bool,
        limits: &mut Limits,
    ) -> Result<(Rewritten<'t>, Vec<Range<usize>>)> {
        let mut rewritten = Rewritten::unchanged(text);
        #[allow(clippy::single_range_in_vec_init, reason = "one piece, the whole text")]
        let mut pieces = if text.is_empty() { Vec::new() } else { vec![0..text.len()] };
        let (mut in_letters, mut spans) = (false, Spans::default());
        for step in &self.steps {
            match step {
                SplitStep::Split { pattern, behavior, invert } => {
                    let mut next = Vec::new();
                    for piece in pieces {
                        limits.budget.watch().worked(piece.len())?;
                        let bytes = &rewritten.text[piece.clone()];
                        spans.find(pattern, bytes, piece.start, in_letters, limits)?;
                        apply_behavior(&spans.list, *behavior, *invert, &mut next)?;
                    }
                    pieces = next;
                }
                SplitStep::PrefixSpace => {
                    (rewritten, pieces) = prefix_space(rewritten, pieces, with_origins, limits)?;
                }
                SplitStep::ByteLetters => in_letters = true,
            }
        }
        Ok((rewritten, pieces))
    }
}

/// A range, and whether it is a match.
type Span = (Range<usize>, bool);

/// The matches of one piece at a time, and the text between them, in order.
#[derive(Default)]
struct Spans {
    list: Vec<Span>,
    /// The piece in byte letters.
    letters: Vec<u8>,
}

impl Spans {
    /// Finds those of a piece that starts at `start`; they cover it. If `in_letters`, the pattern sees each byte as
    /// its byte letter.
    fn find(
        &mut self,
        pattern: &Pretokenizer,
        piece: &[u8],
        start: usize,
        in_letters: bool,
        limits: &mut Limits,
    ) -> Result<()> {
        let Self { list, letters } = self;
        let mut text = piece;
        if in_letters {
            letters.clear();
            reserve(letters, 2 * piece.len())?;
            for &byte in piece {
                let letter = byte_letter(byte);
                letters.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            text = letters;
        }
        list.clear();
        let mut at = start;
        let (mut watch, mut bounds) = (limits.budget.watch().clone(), Bounds::default());
        let mut split = pattern.split(text, &mut limits.budget, &mut bounds)?;
        while let Some((span, is_match)) = split.next()? {
            let is_start = |byte: &&u8| !(0x80..0xC0).contains(*byte);
            let bytes = match in_letters {
                true => text[span].iter().filter(is_start).count(),
                false => span.len(),
            };
            watch.worked(bytes)?;
            push(list, (at..at + bytes, is_match))?;
            at += bytes;
        }
        Ok(())
    }
}

/// GPT-2's byte letter: the byte itself if it is printable in Latin-1, else the next character from
/// U+0100.
pub(crate) fn byte_letter(byte: u8) -> char {
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !is_printable(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Turns spans into pieces.
fn apply_behavior(
    spans: &[Span],
    behavior: SplitBehavior,
    invert: bool,
    pieces: &mut Vec<Range<usize>>,
) -> Result<()> {
    reserve(pieces, spans.len())?;
    let first = pieces.len();
    let mut was_match = false;
    let spans = spans.iter().map(|(range, is_match)| (range.clone(), *is_match != invert));
    match behavior {
        SplitBehavior::Isolated => pieces.extend(spans.map(|(range, _)| range)),
        SplitBehavior::Removed => {
            pieces.extend(spans.filter(|(_, is_match)| !is_match).map(|(range, _)| range));
        }
        SplitBehavior::Contiguous | SplitBehavior::MergedWithPrevious => {
            for (range, is_match) in spans {
                let joins = match behavior {
                    SplitBehavior::Contiguous => is_match == was_match,
                    _ => is_match && !was_match,
                };
                match pieces[first..].last_mut() {
                    Some(last) if joins => last.end = range.end,
                    _ => pieces.push(range),
                }
                was_match = is_match;
            }
        }
        SplitBehavior::MergedWithNext => {
            for (range, is_match) in spans.rev() {
                match pieces[first..].last_mut() {
                    Some(next) if is_match && !was_match => next.start = range.start,
                    _ => pieces.push(range),
                }
                was_match = is_match;
            }
            pieces[first..].reverse();
        }
    }
    Ok(())
}

fn prefix_space<'t>(
    rewritten: Rewritten<'t>,
    pieces: Vec<Range<usize>>,
    with_origins: bool,
    limits: &Limits,
) -> Result<(Rewritten<'t>, Vec<Range<usize>>)> {
    if pieces.iter().all(|piece| rewritten.text[piece.start] == b' ') {
        return Ok((rewritten, pieces));
    }
    let capacity = rewritten.text.len() + pieces.len();
    let mut writer = Writer::new(capacity, with_origins, limits)?;
    let mut moved = Vec::new();
    reserve(&mut moved, pieces.len())?;
    for piece in pieces {
        let start = writer.text.len();
        let bytes = &rewritten.text[piece.clone()];
        if bytes.first() != Some(&b' ') {
            writer.put(b" ", piece.start)?;
        }
        writer.copy(bytes, piece.start)?;
        moved.push(start..writer.text.len());
    }
    let Writer { text, origins, .. } = writer;
    Ok((rewritten.then(text, origins), moved))
}
