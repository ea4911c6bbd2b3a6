//! The classes of a pattern as bits: one lookup tells which of up to 32 classes contain a character.
//!
//! ASCII has its own table. Beyond ASCII, the classes of common patterns are unions of cells (`unicode.rs`). Where a
//! class is not such a union (scripts are not), patches list the ranges that differ; a class that needs too many is
//! rejected.

use std::ops::Range;
use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

use super::sets::contains;
use super::unicode::{self, CELL_NAMES, CellTable};

/// The character that represents a byte outside valid UTF-8: a noncharacter, never to be assigned, so it is not a
/// letter, mark, digit, punctuation, symbol or space.
pub(crate) const STAND_IN: char = '\u{FFFF}';

/// More than enough for any Unicode property that a pattern is likely to name.
const MAX_PATCHES: usize = 512;

/// A range of code points whose bits differ from those of their cells.
struct Patch {
    range: Range<u32>,
    /// The bits that differ.
    flips: u32,
}

pub(crate) struct Classes {
    /// Bits by byte. A non-ASCII byte has all of them, since it can start a character of any class.
    pub(crate) bytes: [u32; 256],
    /// Bits by code point, for characters of two bytes.
    two_byte: Box<[u32; 2048]>,
    /// Bits by cell, before patches.
    cells: [u32; 64],
    /// Ascending and disjoint.
    patches: Vec<Patch>,
    /// The bits of [`STAND_IN`].
    stand_in: u32,
    table: Arc<CellTable>,
}

impl Classes {
    /// Bit `i` of a character tells whether `list[i]` contains it. `None` if there are too many classes or patches.
    pub(crate) fn new(list: &[ClassUnicode]) -> Option<Self> {
        if list.len() > 32 {
            return None;
        }
        let mut classes = Self {
            bytes: std::array::from_fn(|byte| if byte < 0x80 { 0 } else { !0 }),
            two_byte: Box::new([0; 2048]),
            cells: [0; 64],
            patches: Vec::new(),
            stand_in: 0,
            table: CellTable::get(),
        };
        let mut patches = Vec::new();
        for (number, class) in list.iter().enumerate() {
            patches.append(&mut classes.add(class, 1 << number));
            if patches.len() > MAX_PATCHES {
                return None;
            }
        }
        classes.patches = disjoint(&patches);
        classes.stand_in = classes.of_code_point(STAND_IN as u32);
        for code_point in 0x80..0x800 {
            classes.two_byte[code_point as usize] = classes.of_code_point(code_point);
        }
        Some(classes)
    }

    /// Adds a class and returns its patches.
    fn add(&mut self, class: &ClassUnicode, bit: u32) -> Vec<Patch> {
        for byte in 0..128u8 {
            if contains(class, byte as char) {
                self.bytes[byte as usize] |= bit;
            }
        }
        if class.ranges().last().is_none_or(|last| last.end().is_ascii()) {
            return Vec::new();
        }
        let (cells, ranges) = as_cells(class);
        for (bits, is_in) in self.cells.iter_mut().zip(cells) {
            *bits |= if is_in { bit } else { 0 };
        }
        ranges.into_iter().map(|range| Patch { range, flips: bit }).collect()
    }

    /// The classes of a character.
    pub(crate) fn of(&self, c: char) -> u32 {
        match self.bytes.get(c as usize) {
            Some(bits) if c.is_ascii() => *bits,
            _ => self.of_code_point(c as u32),
        }
    }

    /// The ranges where a class is not a union of cells.
    pub(crate) fn patched(&self) -> impl Iterator<Item = &Range<u32>> {
        self.patches.iter().map(|patch| &patch.range)
    }

    /// All non-ASCII characters as ascending ranges, each with its classes.
    pub(crate) fn wide_ranges(&self) -> Vec<(Range<u32>, u32)> {
        const END: u32 = char::MAX as u32 + 1;
        let patches = self.patched().flat_map(|range| [range.start, range.end]);
        let runs = unicode::runs().flat_map(|run| [run.first, run.end]);
        let mut edges: Vec<u32> =
            patches.chain(runs).chain([0x80]).filter(|edge| (0x80..=END).contains(edge)).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
            .windows(2)
            .filter(|edges| char::from_u32(edges[0]).is_some())
            .map(|edges| (edges[0]..edges[1], self.of_code_point(edges[0])))
            .collect()
    }

    #[inline]
    fn of_code_point(&self, code_point: u32) -> u32 {
        let bits = self.cells[self.table.cell(code_point) & 63];
        if self.patches.is_empty() {
            return bits;
        }
        let after = self.patches.partition_point(|patch| patch.range.start <= code_point);
        match self.patches[..after].last() {
            Some(patch) if code_point < patch.range.end => bits ^ patch.flips,
            _ => bits,
        }
    }

    /// The classes and the length of the character at offset `at`. A byte outside valid UTF-8 counts as
    /// [`STAND_IN`], with length 1.
    #[inline(always)]
    pub(crate) fn at(&self, text: &[u8], at: usize) -> Option<(u32, usize)> {
        let &byte = text.get(at)?;
        Some(if byte < 0x80 { (self.bytes[byte as usize], 1) } else { self.wide(text, at) })
    }

    /// The same for a non-ASCII character.
    #[inline]
    pub(crate) fn wide(&self, text: &[u8], at: usize) -> (u32, usize) {
        let bytes = &text[at..];
        if let [first @ 0xC2..=0xDF, second @ 0x80..=0xBF, ..] = *bytes {
            let code_point = (first as usize & 0x1F) << 6 | second as usize & 0x3F;
            return (self.two_byte[code_point], 2);
        }
        match decode_long(bytes) {
            Some((code_point, len)) => (self.of_code_point(code_point), len),
            None => (self.stand_in, 1),
        }
    }
}

/// Decodes a character of three or four bytes into its code point and length. Rejects overlong forms, surrogates and
/// numbers above the last code point.
#[inline(always)]
fn decode_long(bytes: &[u8]) -> Option<(u32, usize)> {
    const CONTINUES: std::ops::RangeInclusive<u8> = 0x80..=0xBF;
    let low = |byte: u8| byte as u32 & 0x3F;
    match *bytes {
        [a @ 0xE0..=0xEF, b @ 0x80..=0xBF, c @ 0x80..=0xBF, ..] => {
            let code_point = (a as u32 & 0xF) << 12 | low(b) << 6 | low(c);
            let is_valid = code_point >= 0x800 && !(0xD800..0xE000).contains(&code_point);
            is_valid.then_some((code_point, 3))
        }
        [a @ 0xF0..=0xF4, b, c, d, ..] if [b, c, d].iter().all(|byte| CONTINUES.contains(byte)) => {
            let code_point = (a as u32 & 7) << 18 | low(b) << 12 | low(c) << 6 | low(d);
            (0x1_0000..0x11_0000).contains(&code_point).then_some((code_point, 4))
        }
        _ => None,
    }
}

/// The same patches as ascending, disjoint ranges.
fn disjoint(patches: &[Patch]) -> Vec<Patch> {
    let mut edges: Vec<(u32, u32)> = patches
        .iter()
        .flat_map(|patch| [(patch.range.start, patch.flips), (patch.range.end, patch.flips)])
        .collect();
    edges.sort_unstable();
    let (mut list, mut start, mut flips) = (Vec::new(), 0, 0);
    for (edge, flip) in edges {
        if flips != 0 && edge > start {
            list.push(Patch { range: start..edge, flips });
        }
        flips ^= flip; // one class's patches are disjoint, so each edge opens or closes one
        start = edge;
    }
    list
}

/// The non-ASCII part of a class as a set of cells, and the ranges where it differs from their union.
fn as_cells(class: &ClassUnicode) -> (Vec<bool>, Vec<Range<u32>>) {
    let segments = segments(class);
    let mut overlapping = vec![false; CELL_NAMES.len()];
    let mut inside = vec![true; CELL_NAMES.len()];
    for segment in &segments {
        overlapping[segment.cell] |= segment.is_inside;
        inside[segment.cell] &= segment.is_inside;
    }
    let differs_from = |cells: &[bool]| {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for segment in segments.iter().filter(|segment| segment.is_inside != cells[segment.cell]) {
            match ranges.last_mut() {
                Some(last) if last.end == segment.range.start => last.end = segment.range.end,
                _ => ranges.push(segment.range.clone()),
            }
        }
        ranges
    };
    // Either add ranges to the cells that lie inside, or remove ranges from all that overlap.
    let (missing, excess) = (differs_from(&inside), differs_from(&overlapping));
    if missing.len() <= excess.len() { (inside, missing) } else { (overlapping, excess) }
}

/// Consecutive code points of one cell, either all inside a class or all outside it.
struct Segment {
    range: Range<u32>,
    cell: usize,
    is_inside: bool,
}

/// All non-ASCII characters as ascending segments.
fn segments(class: &ClassUnicode) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut ranges = class.ranges().iter().peekable();
    for run in unicode::runs() {
        let mut at = run.first.max(0x80);
        while at < run.end {
            while ranges.peek().is_some_and(|range| (range.end() as u32) < at) {
                ranges.next();
            }
            let (is_inside, end) = match ranges.peek() {
                Some(range) if range.start() as u32 <= at => (true, range.end() as u32 + 1),
                Some(range) => (false, range.start() as u32),
                None => (false, run.end),
            };
            let end = end.min(run.end);
            segments.push(Segment { range: at..end, cell: run.cell, is_inside });
            at = end;
        }
    }
    segments
}

#[cfg(test)]
mod tests;
