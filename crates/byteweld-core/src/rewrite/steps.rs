//! A chain of steps that cuts a text, as Hugging Face's `Sequence` of pre-tokenisers does.
//!
//! Each step works on the pieces of the one before as if each were a text of its own. Empty pieces vanish.

use std::ops::{ControlFlow, Range};

use super::{Rewritten, Writer};
use crate::error::Result;
use crate::pretoken::Pretokenizer;

/// What becomes of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It is a piece.
    Isolated,
    /// It is dropped.
    Removed,
    /// It is part of the piece before, unless that is a match too.
    MergedWithPrevious,
    /// It is part of the piece after, unless that is a match too.
    MergedWithNext,
    /// Matches that touch are one piece.
    Contiguous,
}

/// One step.
pub enum Step {
    /// Cuts by the matches of a pattern.
    Split {
        /// The pattern.
        pattern: Pretokenizer,
        /// What becomes of a match.
        behaviour: Behaviour,
        /// Matches are what lies between, and the other way round.
        invert: bool,
    },
    /// A piece that does not start with a space gets one in front.
    PrefixSpace,
    /// The steps after it see each byte as its letter of GPT-2's alphabet.
    ByteLetters,
}

/// The chain.
#[derive(Default)]
pub struct Steps {
    steps: Vec<Step>,
}

impl Steps {
    /// A chain of these steps.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The patterns' engines, in order.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Split { pattern, .. } => Some(pattern.engine().name()),
            _ => None,
        })
    }

    /// The text as the last step leaves it, and its pieces in order.
    pub(crate) fn cut<'t>(
        &self,
        text: &'t [u8],
        wants_origins: bool,
    ) -> Result<(Rewritten<'t>, Vec<Range<usize>>)> {
        let mut rewritten = Rewritten::unchanged(text);
        #[allow(clippy::single_range_in_vec_init, reason = "one piece, the whole text")]
        let mut pieces = if text.is_empty() { Vec::new() } else { vec![0..text.len()] };
        let mut in_letters = false;
        for step in &self.steps {
            match step {
                Step::Split { pattern, behaviour, invert } => {
                    let mut next = Vec::with_capacity(pieces.len());
                    for piece in pieces {
                        let bytes = &rewritten.text[piece.clone()];
                        let tiles = if in_letters {
                            letter_tiles(pattern, bytes, piece.start)?
                        } else {
                            tiles(pattern, bytes, piece.start)?
                        };
                        behave(tiles, *behaviour, *invert, &mut next);
                    }
                    pieces = next;
                }
                Step::PrefixSpace => {
                    (rewritten, pieces) = prefix_space(rewritten, pieces, wants_origins)
                }
                Step::ByteLetters => in_letters = true,
            }
        }
        Ok((rewritten, pieces))
    }
}

type Tile = (Range<usize>, bool);

/// Matches (true) and what lies between, in order; they tile the piece, which starts at `start`.
fn tiles(pattern: &Pretokenizer, piece: &[u8], start: usize) -> Result<Vec<Tile>> {
    let mut list = Vec::new();
    let mut at = start;
    pattern.for_each_tile(piece, &mut |tile, is_match| {
        list.push((at..at + tile.len(), is_match));
        at += tile.len();
        ControlFlow::Continue(())
    })?;
    Ok(list)
}

/// The same, with the pattern looking at letters; a letter is a byte of the piece.
fn letter_tiles(pattern: &Pretokenizer, piece: &[u8], start: usize) -> Result<Vec<Tile>> {
    let letters: String = piece.iter().map(|&byte| byte_letter(byte)).collect();
    let mut list = Vec::new();
    let mut at = start;
    pattern.for_each_tile(letters.as_bytes(), &mut |tile, is_match| {
        let bytes = tile.iter().filter(|&&byte| !(0x80..0xC0).contains(&byte)).count();
        list.push((at..at + bytes, is_match));
        at += bytes;
        ControlFlow::Continue(())
    })?;
    Ok(list)
}

/// GPT-2's letter of a byte: itself if it shows in Latin-1, else the next one from U+0100.
pub(crate) fn byte_letter(byte: u8) -> char {
    let shows = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if shows(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !shows(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Turns tiles into pieces.
fn behave(tiles: Vec<Tile>, behaviour: Behaviour, invert: bool, pieces: &mut Vec<Range<usize>>) {
    let first = pieces.len();
    let mut was_match = false;
    let tiles = tiles.into_iter().map(|(range, is_match)| (range, is_match != invert));
    match behaviour {
        Behaviour::Isolated => pieces.extend(tiles.map(|(range, _)| range)),
        Behaviour::Removed => {
            pieces.extend(tiles.filter(|(_, is_match)| !is_match).map(|(range, _)| range));
        }
        Behaviour::Contiguous | Behaviour::MergedWithPrevious => {
            for (range, is_match) in tiles {
                let joins = match behaviour {
                    Behaviour::Contiguous => is_match == was_match,
                    _ => is_match && !was_match,
                };
                match pieces[first..].last_mut() {
                    Some(last) if joins => last.end = range.end,
                    _ => pieces.push(range),
                }
                was_match = is_match;
            }
        }
        Behaviour::MergedWithNext => {
            for (range, is_match) in tiles.collect::<Vec<_>>().into_iter().rev() {
                match pieces[first..].last_mut() {
                    Some(next) if is_match && !was_match => next.start = range.start,
                    _ => pieces.push(range),
                }
                was_match = is_match;
            }
            pieces[first..].reverse();
        }
    }
}

fn prefix_space(
    rewritten: Rewritten<'_>,
    pieces: Vec<Range<usize>>,
    wants_origins: bool,
) -> (Rewritten<'_>, Vec<Range<usize>>) {
    if pieces.iter().all(|piece| rewritten.text[piece.start] == b' ') {
        return (rewritten, pieces);
    }
    let mut writer = Writer::new(rewritten.text.len() + pieces.len(), wants_origins);
    let mut moved = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let start = writer.text.len();
        let bytes = &rewritten.text[piece.clone()];
        if bytes.first() != Some(&b' ') {
            writer.put(b" ", piece.start);
        }
        writer.copy(bytes, piece.start);
        moved.push(start..writer.text.len());
    }
    let Writer { text, origins } = writer;
    (rewritten.then(text, origins), moved)
}
