//! Normalisers: characters to other characters.
//!
//! The normal forms are those of Hugging Face, whose tables are Unicode 9's: the same crate does them. Only
//! stretches that a quick look cannot call normal are given to it. A stretch starts at a character that never
//! combines with what is before it and ends before the next such, so its normal form does not depend on what
//! is around it (Unicode Standard Annex 15, section 9.1).

use std::ops::ControlFlow;

use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

use super::{Rewritten, Writer};
use crate::error::Result;
use crate::pretoken::Pretokenizer;

/// A Unicode normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Composed.
    Nfc,
    /// Decomposed.
    Nfd,
    /// Composed, compatibility characters replaced.
    Nfkc,
    /// Decomposed, compatibility characters replaced.
    Nfkd,
}

impl Form {
    /// Below this character everything is normal and combines with nothing.
    fn first_unsure(self) -> char {
        match self {
            Form::Nfc => '\u{300}',
            Form::Nfd => '\u{C0}',
            Form::Nfkc | Form::Nfkd => '\u{A0}',
        }
    }

    /// Whether a character is normal by itself and combines with nothing before it.
    fn is_stable(self, c: char) -> bool {
        if c < self.first_unsure() {
            return true;
        }
        let one = std::iter::once(c);
        let quick = match self {
            Form::Nfc => is_nfc_quick(one),
            Form::Nfd => is_nfd_quick(one),
            Form::Nfkc => is_nfkc_quick(one),
            Form::Nfkd => is_nfkd_quick(one),
        };
        quick == IsNormalized::Yes && canonical_combining_class(c) == 0
    }

    /// Writes the normal form of a stretch.
    fn write(self, stretch: &str, offset: usize, writer: &mut Writer) {
        match self {
            Form::Nfc => write_changes(stretch, offset, stretch.nfc(), writer),
            Form::Nfd => write_changes(stretch, offset, stretch.nfd(), writer),
            Form::Nfkc => write_changes(stretch, offset, stretch.nfkc(), writer),
            Form::Nfkd => write_changes(stretch, offset, stretch.nfkd(), writer),
        }
    }
}

/// One thing that is done to a text.
pub enum NormalStep {
    /// A normal form.
    Form(Form),
    /// Lower case, character by character.
    Lowercase,
    /// Every match of a pattern becomes a text.
    Replace {
        /// The pattern.
        pattern: Pretokenizer,
        /// What a match becomes.
        content: String,
    },
}

/// Steps, one after another.
#[derive(Default)]
pub struct Normaliser {
    steps: Vec<NormalStep>,
}

impl Normaliser {
    /// A normaliser of these steps.
    pub fn new(steps: Vec<NormalStep>) -> Self {
        Self { steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Bytes that are not UTF-8 stay as they are.
    pub(crate) fn apply<'t>(&self, text: &'t [u8], wants_origins: bool) -> Result<Rewritten<'t>> {
        let mut rewritten = Rewritten::unchanged(text);
        for step in &self.steps {
            let changed = match step {
                NormalStep::Form(form) => each_chunk(&rewritten.text, wants_origins, |chunk| {
                    first_unstable(*form, chunk).map(|at| {
                        move |writer: &mut Writer, offset| {
                            normalise(*form, chunk, at, offset, writer)
                        }
                    })
                }),
                NormalStep::Lowercase => each_chunk(&rewritten.text, wants_origins, |chunk| {
                    chunk.chars().any(|c| c.to_lowercase().ne([c])).then_some(
                        move |writer: &mut Writer, offset| lowercase(chunk, offset, writer),
                    )
                }),
                NormalStep::Replace { pattern, content } => {
                    Some(replace(pattern, content, &rewritten.text, wants_origins)?)
                }
            };
            if let Some(Writer { text, origins }) = changed {
                rewritten = rewritten.then(text, origins);
            }
        }
        Ok(rewritten)
    }

    /// A token's text in its normalised form.
    pub(crate) fn apply_to_token(&self, text: &str) -> Result<Vec<u8>> {
        Ok(self.apply(text.as_bytes(), false)?.text.into_owned())
    }
}

/// Rewrites each stretch of valid UTF-8 for which `plan` has a way; `None` if it never has one.
fn each_chunk<'t, W: FnOnce(&mut Writer, usize)>(
    text: &'t [u8],
    wants_origins: bool,
    plan: impl Fn(&'t str) -> Option<W>,
) -> Option<Writer> {
    let mut writer: Option<Writer> = None;
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        match (plan(valid), &mut writer) {
            (Some(way), writer) => {
                let writer = writer.get_or_insert_with(|| {
                    let mut writer = Writer::new(text.len() + text.len() / 8, wants_origins);
                    writer.copy(&text[..at], 0);
                    writer
                });
                way(writer, at);
            }
            (None, Some(writer)) => writer.copy(valid.as_bytes(), at),
            (None, None) => {}
        }
        at += valid.len();
        if let Some(writer) = &mut writer {
            writer.copy(chunk.invalid(), at);
        }
        at += chunk.invalid().len();
    }
    writer
}

fn first_unstable(form: Form, text: &str) -> Option<usize> {
    text.char_indices().find(|(_, c)| !form.is_stable(*c)).map(|(at, _)| at)
}

/// Writes the normal form of a text whose first unstable character is at `unstable`.
fn normalise(form: Form, text: &str, mut unstable: usize, offset: usize, writer: &mut Writer) {
    let mut done = 0;
    loop {
        // The character before may combine with it.
        let start =
            text[done..unstable].char_indices().next_back().map_or(done, |(at, _)| done + at);
        writer.copy(&text.as_bytes()[done..start], offset + done);
        let rest = &text[unstable..];
        let length =
            rest.char_indices().find(|(_, c)| form.is_stable(*c)).map_or(rest.len(), |(at, _)| at);
        let end = unstable + length;
        form.write(&text[start..end], offset + start, writer);
        done = end;
        match first_unstable(form, &text[done..]) {
            Some(at) => unstable = done + at,
            None => break,
        }
    }
    writer.copy(&text.as_bytes()[done..], offset + done);
}

/// Writes characters that come with what they did to the original: 0 took one character's place, n > 0 was
/// added, -n took its place and that of n more.
fn write_changes(
    original: &str,
    offset: usize,
    changes: impl Iterator<Item = (char, isize)>,
    writer: &mut Writer,
) {
    let mut places = original.char_indices().map(|(at, _)| offset + at);
    let mut place = offset;
    let mut buffer = [0; 4];
    for (c, change) in changes {
        if change <= 0 {
            place = places.next().unwrap_or(place);
            for _ in 0..change.unsigned_abs() {
                places.next();
            }
        }
        writer.put(c.encode_utf8(&mut buffer).as_bytes(), place);
    }
}

fn lowercase(text: &str, offset: usize, writer: &mut Writer) {
    let mut buffer = [0; 4];
    for (at, c) in text.char_indices() {
        for lower in c.to_lowercase() {
            writer.put(lower.encode_utf8(&mut buffer).as_bytes(), offset + at);
        }
    }
}

fn replace(
    pattern: &Pretokenizer,
    content: &str,
    text: &[u8],
    wants_origins: bool,
) -> Result<Writer> {
    let mut writer = Writer::new(text.len(), wants_origins);
    let mut at = 0;
    pattern.for_each_tile(text, &mut |piece, is_match| {
        if is_match {
            writer.put(content.as_bytes(), at);
        } else {
            writer.copy(piece, at);
        }
        at += piece.len();
        ControlFlow::Continue(())
    })?;
    Ok(writer)
}
