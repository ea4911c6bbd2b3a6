//! Patterns of GPT-2's family, 64 bytes at a time.
//!
//! In these patterns (`family.rs` says which they are) every character is a letter, a number, white
//! space or something else. A pre-token starts where the class changes, apart from a few rules about
//! neighboring characters. With one bit per character, those are shifts of masks:
//!
//! 1. a block of 64 bytes becomes masks, one per class (`tiers.rs` for ASCII, `kinds.rs` for the
//!    rest), with one bit per character (`block.rs`);
//! 2. the rules combine them into one mask: where pre-tokens start (`rules.rs`);
//! 3. contractions such as `'s` are looked at one by one, here;
//! 4. the bits become offsets.
//!
//! Where the rules would need to see further than the next block, and in a few rare cases, the plain
//! scanner takes over for a pre-token or two, and blocks start anew after them: no pattern looks
//! behind, so a pre-token's start is as good as the start of the text. The scanner is also what all
//! of this is tested against.

mod block;
mod family;
mod kinds;
mod rules;
mod tiers;

use std::ops::Range;

use super::MAX_BOUND;
use super::characters::Classes;
use super::patterns::Spec;
use super::scanner::{LastRun, Scanner};
use crate::cpu::{self, Work};
use block::Block;
use family::{Contractions, Family, Shape};
use kinds::Kinds;
use rules::{Ahead, Carry, Rules, low_bits};
use tiers::{BLOCK, Simd};

/// Less text than this is left to the scanner.
const MIN_BYTES: usize = 32;

/// The number of ends after which a batch is full.
const BATCH: usize = 448;

/// Space for the ends of a batch: the last block may bring as many as it has bytes, and the scanner
/// a few more.
pub(super) const MAX_ENDS: usize = BATCH + 2 * BLOCK;

/// A batch that has gone so far is full, so that a long pre-token has all bounds to itself.
const BATCH_BYTES: usize = 1 << 20;

/// A block that starts at a greater offset, relative to the start of a batch, may have bounds that
/// are too great.
const MAX_BASE: u32 = MAX_BOUND - BLOCK as u32;

/// Text is prefetched this far ahead: the processor itself does so only within a page.
const PREFETCHED: usize = 1 << 9;

/// How far back a certain start is looked for.
const MAX_CERTAIN_DISTANCE: usize = 1 << 12;

/// A pattern of the family.
pub(super) struct Bits {
    family: Family,
    kinds: Kinds,
    /// By the byte after an apostrophe.
    contractions: [Contraction; 256],
}

/// What the byte after an apostrophe says about a contraction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contraction {
    No,
    /// The two bytes are one.
    Yes,
    /// It depends on more bytes.
    Perhaps,
}

impl Bits {
    /// The pattern of a spec, if it is one of the family.
    pub(super) fn new(spec: &Spec, scanner: &Scanner) -> Option<Self> {
        let family = Family::new(spec, scanner.classes())?;
        let kinds = Kinds::new(family.classes, scanner.classes())?;
        let contractions = std::array::from_fn(|byte| match byte {
            0x80.. => Contraction::Perhaps,
            _ => {
                let lengths = scanner.contraction_lengths(byte as u8);
                match (lengths.clone().count(), lengths.max()) {
                    (0, _) => Contraction::No,
                    (_, Some(2)) => Contraction::Yes,
                    _ => Contraction::Perhaps,
                }
            }
        });
        Some(Self { family, kinds, contractions })
    }

    /// The last offset, at most `limit` and near it, where a pre-token starts whatever else the text
    /// contains.
    pub(super) fn last_certain_start(
        &self,
        classes: &Classes,
        text: &[u8],
        limit: usize,
    ) -> Option<usize> {
        let from = limit.saturating_sub(MAX_CERTAIN_DISTANCE);
        let is_first = |offset: usize| !(0x80..0xC0).contains(&text[offset]);
        let mut offset = limit;
        while offset > from {
            let before = (offset.saturating_sub(4)..offset).rev().find(|&at| is_first(at))?;
            if is_first(offset)
                && let Some((bits, length)) = classes.at(text, before)
                && let Some((next, _)) = classes.at(text, offset)
                && before + length == offset
                && self.family.is_certain_start(bits, next, text[offset])
            {
                return Some(offset);
            }
            offset = if is_first(offset) { before } else { offset - 1 };
        }
        None
    }
}

/// What an apostrophe is.
enum Apostrophe {
    /// No contraction.
    Plain,
    /// A contraction, and where no pre-token starts because of it.
    Contraction(Range<usize>),
    /// What follows it is too unusual for the rules.
    Uncertain,
}

/// A pre-token is too long for bounds.
#[derive(Debug)]
pub(super) struct TooLong;

/// Why a scan of blocks stopped.
enum Stop {
    /// The batch is full, or the text has ended.
    Done,
    /// It is uncertain whether a pre-token starts at this offset; all starts before it are written.
    Uncertain(usize),
}

/// A text that is being scanned.
pub(super) struct Scan<'s> {
    bits: &'s Bits,
    scanner: &'s Scanner,
    text: &'s [u8],
    /// Where the last pre-token found so far ends.
    end: usize,
    /// Where blocks go on; `None` if they start anew at `end`.
    blocks: Option<Progress>,
    last_run: LastRun,
}

/// What the scan of blocks keeps from one block to the next.
struct Progress {
    /// Where the current block starts.
    offset: usize,
    block: Block,
    next: Block,
    carry: Carry,
    /// Starts to clear and to set in the current block, for a contraction that began before it.
    pending: (u64, u64),
}

impl<'s> Scan<'s> {
    pub(super) fn new(bits: &'s Bits, scanner: &'s Scanner, text: &'s [u8]) -> Self {
        Self { bits, scanner, text, end: 0, blocks: None, last_run: LastRun::default() }
    }

    /// Where the next pre-token starts.
    pub(super) fn start(&self) -> usize {
        self.end
    }

    /// Writes the ends of the next pre-tokens, relative to [`Scan::start`], and returns how many
    /// there are: 0 at the end of the text.
    pub(super) fn fill(&mut self, ends: &mut [u32; MAX_ENDS]) -> Result<usize, TooLong> {
        cpu::run(Fill { scan: self, ends })
    }
}

struct Fill<'f, 's> {
    scan: &'f mut Scan<'s>,
    ends: &'f mut [u32; MAX_ENDS],
}

impl<T: Simd> Work<T> for Fill<'_, '_> {
    type Output = Result<usize, TooLong>;

    #[inline(always)]
    fn run(self, tier: T) -> Self::Output {
        let Self { scan, ends } = self;
        let mut fill = Filling { start: scan.end, ends, count: 0 };
        // Compiled separately for the most usual shapes, so that the conditions on them disappear.
        match scan.bits.family.shape {
            Shape::GPT2 => scan.fill_with(tier, Shape::GPT2, &mut fill),
            Shape::CL100K => scan.fill_with(tier, Shape::CL100K, &mut fill),
            Shape::O200K => scan.fill_with(tier, Shape::O200K, &mut fill),
            Shape::TEKKEN => scan.fill_with(tier, Shape::TEKKEN, &mut fill),
            shape => scan.fill_with(tier, shape, &mut fill),
        }?;
        Ok(fill.count)
    }
}

/// Ends of pre-tokens, as many as there are.
struct Filling<'f> {
    /// What the ends are relative to.
    start: usize,
    ends: &'f mut [u32; MAX_ENDS],
    count: usize,
}

impl Filling<'_> {
    fn push(&mut self, end: usize) -> Result<(), TooLong> {
        let end = u32::try_from(end - self.start).ok().filter(|&end| end <= MAX_BOUND);
        *self.ends.get_mut(self.count).ok_or(TooLong)? = end.ok_or(TooLong)?;
        self.count += 1;
        Ok(())
    }

    /// The last end.
    #[inline(always)]
    fn last(&self) -> usize {
        match self.count.checked_sub(1).and_then(|last| self.ends.get(last)) {
            Some(&end) => self.start + end as usize,
            None => self.start,
        }
    }
}

impl Scan<'_> {
    #[inline(always)]
    fn fill_with(
        &mut self,
        tier: impl Simd,
        shape: Shape,
        fill: &mut Filling<'_>,
    ) -> Result<(), TooLong> {
        while !self.is_full(fill) {
            if self.blocks.is_none() && self.text.len() - self.end < MIN_BYTES {
                self.scan_one(fill)?;
            } else if let Stop::Uncertain(offset) = self.scan_blocks(tier, shape, fill)? {
                while self.end <= offset {
                    self.scan_one(fill)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the batch is full, or the text has ended.
    #[inline(always)]
    fn is_full(&self, fill: &Filling<'_>) -> bool {
        let is_far = |blocks: &Progress| blocks.offset - fill.start >= BATCH_BYTES;
        fill.count >= BATCH
            || self.end >= self.text.len()
            || self.end - fill.start >= BATCH_BYTES
            || fill.count > 0 && self.blocks.as_ref().is_some_and(is_far)
    }

    /// Takes one pre-token from the scanner.
    #[inline(never)]
    fn scan_one(&mut self, fill: &mut Filling<'_>) -> Result<(), TooLong> {
        self.end = self.scanner.next(self.text, self.end, &mut self.last_run).0;
        fill.push(self.end)
    }

    /// Writes the starts in blocks, until the batch is full or a start is uncertain.
    #[inline(always)]
    fn scan_blocks(
        &mut self,
        tier: impl Simd,
        shape: Shape,
        fill: &mut Filling<'_>,
    ) -> Result<Stop, TooLong> {
        let Self { bits, scanner, text, .. } = *self;
        let tables = (&bits.kinds, scanner.classes());
        let classify =
            |offset: usize, spill: u64| Block::new(tier, shape, tables, text, offset, spill);
        // The state is kept in local variables, which may be registers.
        let Progress { mut offset, mut block, mut next, mut carry, mut pending } =
            self.blocks.take().unwrap_or_else(|| {
                let (offset, carry) = (self.end, Carry::default());
                let block = classify(offset, 0);
                let next = classify(offset + BLOCK, block.spill);
                Progress { offset, block, next, carry, pending: (0, 0) }
            });
        loop {
            cpu::prefetch(text, offset + PREFETCHED);
            let base = u32::try_from(offset - fill.start).ok().filter(|&base| base <= MAX_BASE);
            let base = base.ok_or(TooLong)?;
            let ahead = Ahead {
                next: &next,
                is_end: text.len() <= offset + 2 * BLOCK,
                is_end_whole: bits.family.is_end_whole,
            };
            let number_max = bits.family.number_max;
            let rules = Rules { shape, number_max, block: &block, count: block.count, ahead };
            let found = if block.is_ascii() {
                Rules { count: BLOCK as u32, ..rules }.apply(&mut carry)
            } else {
                rules.apply(&mut carry)
            };
            let (clear, set) = std::mem::take(&mut pending);
            let mut starts = block.bytes_of(tier, found.starts) & !clear | set;
            let mut uncertain = block.bytes_of(tier, found.uncertain);
            let mut apostrophes = block.bytes_of(tier, found.apostrophes);
            while apostrophes != 0 {
                let at = apostrophes.trailing_zeros();
                apostrophes &= apostrophes - 1;
                match self.apostrophe(shape, offset + at as usize) {
                    Apostrophe::Plain => {}
                    Apostrophe::Uncertain => uncertain |= 1 << at,
                    Apostrophe::Contraction(inside) => {
                        let shift = |range: Range<usize>| {
                            let bits = ((1u128 << range.len()) - 1) << (range.start - offset);
                            (bits as u64, (bits >> BLOCK) as u64)
                        };
                        let (here, later) = shift(inside.clone());
                        (starts, pending.0) = (starts & !here, pending.0 | later);
                        if shape.contractions == Contractions::First {
                            let (here, later) = shift(inside.end..inside.end + 1);
                            (starts, pending.1) = (starts | here, pending.1 | later);
                        }
                    }
                }
            }
            if offset == self.end {
                starts &= !1; // where the last pre-token ended
            }
            if text.len() < offset + BLOCK {
                let inside = low_bits((text.len() - offset) as u32);
                (starts, uncertain) = (starts & inside, uncertain & inside);
            }
            if uncertain != 0 {
                starts &= uncertain.wrapping_sub(1) & !uncertain;
            }
            if let Some(out) = fill.ends[fill.count..].first_chunk_mut() {
                fill.count += tier.write_offsets(starts, base, out);
            }
            if uncertain != 0 {
                self.end = fill.last();
                return Ok(Stop::Uncertain(offset + uncertain.trailing_zeros() as usize));
            }
            offset += BLOCK;
            if offset >= text.len() {
                self.end = text.len();
                fill.push(self.end)?;
                return Ok(Stop::Done);
            }
            block = next;
            next = classify(offset + BLOCK, block.spill);
            if fill.count >= BATCH || offset - fill.start >= BATCH_BYTES && fill.count > 0 {
                self.end = fill.last();
                self.blocks = Some(Progress { offset, block, next, carry, pending });
                return Ok(Stop::Done);
            }
        }
    }

    /// What the apostrophe at `at` is.
    #[inline(always)]
    fn apostrophe(&self, shape: Shape, at: usize) -> Apostrophe {
        let Some(&second) = self.text.get(at + 1) else { return Apostrophe::Plain };
        let end = match self.bits.contractions[usize::from(second)] {
            Contraction::No => return Apostrophe::Plain,
            Contraction::Yes => at + 2,
            Contraction::Perhaps => self.scanner.contraction_end(self.text, at),
        };
        if end == at {
            return Apostrophe::Plain;
        }
        if shape.contractions == Contractions::First {
            return Apostrophe::Contraction(at + 1..end);
        }
        // As a suffix, it ends the word before it. A letter after it starts another word, of which
        // the rules know nothing; and the apostrophe of another contraction would not be one.
        match self.text.get(end) {
            Some(b'\'' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..) => Apostrophe::Uncertain,
            _ => Apostrophe::Contraction(at..end),
        }
    }
}
