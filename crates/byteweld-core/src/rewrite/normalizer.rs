//! Normalizers: replace characters by other characters.
//!
//! The normal forms must equal those of Hugging Face, which uses Unicode 9 tables, so the same
//! crate computes them. Only stretches that the quick check cannot prove to be normal go through
//! it. A stretch starts at a character that never combines with a previous one and ends before the
//! next such character, so its normal form does not depend on its context (Unicode Standard Annex
//! 15, section 9.1).

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
    /// All characters below this one are normal and never combine.
    fn first_unstable(self) -> char {
        match self {
            Form::Nfc => '\u{300}',
            Form::Nfd => '\u{C0}',
            Form::Nfkc | Form::Nfkd => '\u{A0}',
        }
    }

    /// Whether a character is normal by itself and never combines with a previous one.
    fn is_stable(self, c: char) -> bool {
        if c < self.first_unstable() {
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

/// One step of a normalizer.
pub enum NormalizerStep {
    /// A normal form.
    Form(Form),
    /// Lowercases each character.
    Lowercase,
    /// Replaces every match of a pattern.
    Replace {
        /// The pattern.
        pattern: Pretokenizer,
        /// The replacement.
        content: String,
    },
}

/// A sequence of steps.
#[derive(Default)]
pub struct Normalizer {
    steps: Vec<NormalizerStep>,
}

impl Normalizer {
    /// A normalizer with these steps.
    pub fn new(steps: Vec<NormalizerStep>) -> Self {
        Self { steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Applies all steps. Bytes that are not UTF-8 stay unchanged.
    pub(crate) fn apply<'t>(&self, text: &'t [u8], with_origins: bool) -> Result<Rewritten<'t>> {
        let mut rewritten = Rewritten::unchanged(text);
        for step in &self.steps {
            let changed = match step {
                NormalizerStep::Form(form) => each_chunk(&rewritten.text, with_origins, |chunk| {
                    first_unstable(*form, chunk).map(|at| {
                        move |writer: &mut Writer, offset| {
                            normalize(*form, chunk, at, offset, writer)
                        }
                    })
                }),
                NormalizerStep::Lowercase => each_chunk(&rewritten.text, with_origins, |chunk| {
                    chunk.chars().any(|c| c.to_lowercase().ne([c])).then_some(
                        move |writer: &mut Writer, offset| lowercase(chunk, offset, writer),
                    )
                }),
                NormalizerStep::Replace { pattern, content } => {
                    Some(replace(pattern, content, &rewritten.text, with_origins)?)
                }
            };
            if let Some(Writer { text, origins }) = changed {
                rewritten = rewritten.then(text, origins);
            }
        }
        Ok(rewritten)
    }

    /// The normalized text of a token.
    pub(crate) fn apply_to_token(&self, text: &str) -> Result<Vec<u8>> {
        Ok(self.apply(text.as_bytes(), false)?.text.into_owned())
    }
}

/// Rewrites each stretch of valid UTF-8 for which `plan` returns a function; `None` if it never
/// does.
fn each_chunk<'t, W: FnOnce(&mut Writer, usize)>(
    text: &'t [u8],
    with_origins: bool,
    plan: impl Fn(&'t str) -> Option<W>,
) -> Option<Writer> {
    let mut writer: Option<Writer> = None;
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        match (plan(valid), &mut writer) {
            (Some(rewrite), writer) => {
                let writer = writer.get_or_insert_with(|| {
                    let mut writer = Writer::new(text.len() + text.len() / 8, with_origins);
                    writer.copy(&text[..at], 0);
                    writer
                });
                rewrite(writer, at);
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

/// Writes the normal form of text whose first unstable character is at `unstable`.
fn normalize(form: Form, text: &str, mut unstable: usize, offset: usize, writer: &mut Writer) {
    let mut done = 0;
    loop {
        // The previous character may combine with it.
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

/// Writes characters that come with their alignment to the original: 0 replaces one character, n >
/// 0 was inserted, -n replaces one character and removes the n characters after it.
fn write_changes(
    original: &str,
    offset: usize,
    changes: impl Iterator<Item = (char, isize)>,
    writer: &mut Writer,
) {
    let mut origins = original.char_indices().map(|(at, _)| offset + at);
    let mut origin = offset;
    let mut buffer = [0; 4];
    for (c, change) in changes {
        if change <= 0 {
            origin = origins.next().unwrap_or(origin);
            for _ in 0..change.unsigned_abs() {
                origins.next();
            }
        }
        writer.put(c.encode_utf8(&mut buffer).as_bytes(), origin);
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
    with_origins: bool,
) -> Result<Writer> {
    let mut writer = Writer::new(text.len(), with_origins);
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
