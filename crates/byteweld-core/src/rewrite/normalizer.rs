//! Normalizers: replace characters by other characters.
//!
//! The normal forms must equal those of Hugging Face, which uses Unicode 9 tables, so the same
//! crate computes them. Only stretches that the quick check cannot prove to be normal go through
//! it. A stretch starts at a character that never combines with a previous one and ends before the
//! next such character, so its normal form does not depend on its context (Unicode Standard Annex
//! 15, section 9.1).

use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

use super::{Limits, Rewritten, Writer};
use crate::error::Result;
use crate::pretoken::{Bounds, Pretokenizer};
use crate::watch::Watch;

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
    fn write(self, stretch: &str, offset: usize, writer: &mut Writer) -> Result<()> {
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

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Applies all steps. Bytes that are not UTF-8 stay unchanged.
    pub(crate) fn apply<'t>(
        &self,
        text: &'t [u8],
        with_origins: bool,
        limits: &mut Limits,
    ) -> Result<Rewritten<'t>> {
        let mut rewritten = Rewritten::unchanged(text);
        for step in &self.steps {
            let changed = match step {
                NormalizerStep::Replace { pattern, content } => {
                    Some(replace(pattern, content, &rewritten.text, with_origins, limits)?)
                }
                NormalizerStep::Form(form) => {
                    let first = |block: &str| first_unstable(*form, block);
                    each_chunk(&rewritten.text, with_origins, limits, first, |chunk| {
                        normalize(*form, chunk)
                    })?
                }
                NormalizerStep::Lowercase => {
                    let first = |block: &str| block.find(|c: char| c.to_lowercase().ne([c]));
                    each_chunk(&rewritten.text, with_origins, limits, first, lowercase)?
                }
            };
            if let Some(Writer { text, origins, .. }) = changed {
                rewritten = rewritten.then(text, origins);
            }
        }
        // Several texts may share the buffer.
        limits.max_bytes = limits.max_bytes.saturating_sub(rewritten.text.len());
        Ok(rewritten)
    }

    /// The normalized text of a token.
    pub(crate) fn apply_to_token(&self, text: &str) -> Result<Vec<u8>> {
        let mut limits = Limits::of_token(text.len());
        Ok(self.apply(text.as_bytes(), false, &mut limits)?.text.into_owned())
    }
}

/// Text is searched in blocks of about this many bytes, with a check for an interrupt between them.
const BLOCK: usize = 1 << 16;

/// A stretch of valid UTF-8 that has to be rewritten.
struct Chunk<'a> {
    text: &'a str,
    /// Where it starts in the text.
    offset: usize,
    /// The first character that changes, or may.
    first: usize,
    writer: &'a mut Writer,
    watch: &'a mut Watch,
}

/// Rewrites each stretch of valid UTF-8 in which `first` finds a character that changes; `None` if there is none.
fn each_chunk(
    text: &[u8],
    with_origins: bool,
    limits: &mut Limits,
    first: impl Fn(&str) -> Option<usize>,
    rewrite: impl Fn(Chunk<'_>) -> Result<()>,
) -> Result<Option<Writer>> {
    let mut writer: Option<Writer> = None;
    let mut offset = 0;
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        match (find_in_blocks(valid, limits.budget.watch(), &first)?, &mut writer) {
            (Some(first), writer) => {
                let writer = match writer {
                    Some(writer) => writer,
                    None => {
                        let mut new =
                            Writer::new(text.len() + text.len() / 8, with_origins, limits)?;
                        new.copy(&text[..offset], 0)?;
                        writer.insert(new)
                    }
                };
                let watch = limits.budget.watch();
                rewrite(Chunk { text: valid, offset, first, writer, watch })?;
            }
            (None, Some(writer)) => writer.copy(valid.as_bytes(), offset)?,
            (None, None) => {}
        }
        offset += valid.len();
        if let Some(writer) = &mut writer {
            writer.copy(chunk.invalid(), offset)?;
        }
        offset += chunk.invalid().len();
    }
    Ok(writer)
}

/// The first offset that `first` finds in a block of the text.
fn find_in_blocks(
    text: &str,
    watch: &mut Watch,
    first: impl Fn(&str) -> Option<usize>,
) -> Result<Option<usize>> {
    let mut start = 0;
    while start < text.len() {
        let mut end = text.len().min(start + BLOCK);
        while !text.is_char_boundary(end) {
            end += 1;
        }
        watch.worked(end - start)?;
        if let Some(at) = first(&text[start..end]) {
            return Ok(Some(start + at));
        }
        start = end;
    }
    Ok(None)
}

fn first_unstable(form: Form, text: &str) -> Option<usize> {
    text.char_indices().find(|(_, c)| !form.is_stable(*c)).map(|(at, _)| at)
}

/// Writes the normal form of a chunk.
fn normalize(form: Form, chunk: Chunk<'_>) -> Result<()> {
    let Chunk { text, offset, first: mut unstable, writer, watch } = chunk;
    let mut done = 0;
    loop {
        // The previous character may combine with it.
        let start =
            text[done..unstable].char_indices().next_back().map_or(done, |(at, _)| done + at);
        writer.copy(&text.as_bytes()[done..start], offset + done)?;
        let rest = &text[unstable..];
        let length =
            rest.char_indices().find(|(_, c)| form.is_stable(*c)).map_or(rest.len(), |(at, _)| at);
        let end = unstable + length;
        form.write(&text[start..end], offset + start, writer)?;
        watch.worked(end - start)?;
        done = end;
        match find_in_blocks(&text[done..], watch, |block| first_unstable(form, block))? {
            Some(at) => unstable = done + at,
            None => break,
        }
    }
    writer.copy(&text.as_bytes()[done..], offset + done)
}

/// Writes characters that come with their alignment to the original: 0 replaces one character, n >
/// 0 was inserted, -n replaces one character and removes the n characters after it.
fn write_changes(
    original: &str,
    offset: usize,
    changes: impl Iterator<Item = (char, isize)>,
    writer: &mut Writer,
) -> Result<()> {
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
        writer.put(c.encode_utf8(&mut buffer).as_bytes(), origin)?;
    }
    Ok(())
}

fn lowercase(chunk: Chunk<'_>) -> Result<()> {
    let Chunk { text, offset, writer, watch, .. } = chunk;
    let mut buffer = [0; 4];
    for (at, c) in text.char_indices() {
        watch.worked(1)?;
        for lower in c.to_lowercase() {
            writer.put(lower.encode_utf8(&mut buffer).as_bytes(), offset + at)?;
        }
    }
    Ok(())
}

fn replace(
    pattern: &Pretokenizer,
    content: &str,
    text: &[u8],
    with_origins: bool,
    limits: &mut Limits,
) -> Result<Writer> {
    let mut writer = Writer::new(text.len(), with_origins, limits)?;
    let (mut watch, mut bounds) = (limits.budget.watch().clone(), Bounds::default());
    let mut split = pattern.split(text, &mut limits.budget, &mut bounds)?;
    while let Some((span, is_match)) = split.next()? {
        match is_match {
            true => writer.put(content.as_bytes(), span.start)?,
            false => writer.copy(&text[span.clone()], span.start)?,
        }
        watch.worked(span.len())?;
    }
    Ok(writer)
}
