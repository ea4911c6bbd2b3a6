//! The classes of a pattern as bits: which of up to 32 classes a character is in, by one look-up.
//!
//! ASCII has its own table. Elsewhere the classes of the field are unions of cells (`unicode.rs`); what differs
//! from that, as scripts do, is a list of ranges, and too many of them are refused.

use std::sync::Arc;

use std::ops::Range;

use regex_syntax::hir::ClassUnicode;

use super::unicode::{self, CELL_NAMES, Table};

/// What a byte that is not part of a character stands for: a noncharacter, unassigned for ever, so no letter,
/// mark, digit, punctuation, symbol or space.
pub(super) const STAND_IN: char = '\u{FFFF}';

/// More than any property of Unicode has that a pattern is likely to name.
const MAX_PATCHES: usize = 512;

/// A range in which the bits differ from those of the cells.
struct Patch {
    range: Range<u32>,
    flips: u32,
}

pub(super) struct Classes {
    /// By byte; those that are not ASCII have all bits here, since they may start anything.
    pub(super) bytes: [u32; 256],
    /// By code point, for the characters of two bytes.
    two: Box<[u32; 2048]>,
    cells: [u32; 64],
    /// Ascending, and no two overlap.
    patches: Vec<Patch>,
    stand_in: u32,
    table: Arc<Table>,
}

impl Classes {
    /// Bit `i` is `list[i]`.
    pub(super) fn new(list: &[ClassUnicode]) -> Option<Self> {
        if list.len() > 32 {
            return None;
        }
        let mut classes = Self {
            bytes: std::array::from_fn(|byte| if byte < 0x80 { 0 } else { !0 }),
            two: Box::new([0; 2048]),
            cells: [0; 64],
            patches: Vec::new(),
            stand_in: 0,
            table: Table::get(),
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
            classes.two[code_point as usize] = classes.of_code_point(code_point);
        }
        Some(classes)
    }

    /// Adds a class; what it is besides cells is returned.
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
        for (mask, is_in) in self.cells.iter_mut().zip(cells) {
            *mask |= if is_in { bit } else { 0 };
        }
        ranges.into_iter().map(|range| Patch { range, flips: bit }).collect()
    }

    /// The classes of a character.
    pub(super) fn of(&self, c: char) -> u32 {
        match self.bytes.get(c as usize) {
            Some(bits) if c.is_ascii() => *bits,
            _ => self.of_code_point(c as u32),
        }
    }

    /// The ranges in which classes are not unions of cells.
    pub(super) fn patched(&self) -> impl Iterator<Item = &Range<u32>> {
        self.patches.iter().map(|patch| &patch.range)
    }

    /// All characters that are not ASCII in ranges, ascending, and the classes of each range.
    pub(super) fn wide_ranges(&self) -> Vec<(Range<u32>, u32)> {
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

    /// The classes and the length of the character at `at`; a byte that is not part of a character counts as
    /// one, [`STAND_IN`].
    #[inline(always)]
    pub(super) fn at(&self, text: &[u8], at: usize) -> Option<(u32, usize)> {
        let &byte = text.get(at)?;
        Some(if byte < 0x80 { (self.bytes[byte as usize], 1) } else { self.wide(text, at) })
    }

    /// The same for a character that is not ASCII.
    #[inline]
    pub(super) fn wide(&self, text: &[u8], at: usize) -> (u32, usize) {
        let bytes = &text[at..];
        if let [first @ 0xC2..=0xDF, second @ 0x80..=0xBF, ..] = *bytes {
            let code_point = (first as usize & 0x1F) << 6 | second as usize & 0x3F;
            return (self.two[code_point], 2);
        }
        match decode_long(bytes) {
            Some((code_point, len)) => (self.of_code_point(code_point), len),
            None => (self.stand_in, 1),
        }
    }
}

/// The code point of three or four bytes of UTF-8, without overlong forms, surrogates and what lies beyond the
/// last code point.
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

pub(super) fn contains(class: &ClassUnicode, c: char) -> bool {
    let ranges = class.ranges();
    let after = ranges.partition_point(|range| range.start() <= c);
    after > 0 && c <= ranges[after - 1].end()
}

/// The same patches as ranges that do not overlap, ascending.
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
        flips ^= flip; // the patches of one class do not overlap, so each edge opens or closes
        start = edge;
    }
    list
}

/// A class outside ASCII as a set of cells, and the ranges in which it differs from their union.
fn as_cells(class: &ClassUnicode) -> (Vec<bool>, Vec<Range<u32>>) {
    let segments = segments(class);
    let mut touched = vec![false; CELL_NAMES.len()];
    let mut whole = vec![true; CELL_NAMES.len()];
    for segment in &segments {
        touched[segment.cell] |= segment.inside;
        whole[segment.cell] &= segment.inside;
    }
    let differs_from = |cells: &[bool]| {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for segment in segments.iter().filter(|segment| segment.inside != cells[segment.cell]) {
            match ranges.last_mut() {
                Some(last) if last.end == segment.range.start => last.end = segment.range.end,
                _ => ranges.push(segment.range.clone()),
            }
        }
        ranges
    };
    let (missing, excess) = (differs_from(&whole), differs_from(&touched));
    if missing.len() <= excess.len() { (whole, missing) } else { (touched, excess) }
}

/// Code points of one cell that are all in a class or all outside of it.
struct Segment {
    range: Range<u32>,
    cell: usize,
    inside: bool,
}

/// All characters outside ASCII in segments, ascending.
fn segments(class: &ClassUnicode) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut ranges = class.ranges().iter().peekable();
    for run in unicode::runs() {
        let mut at = run.first.max(0x80);
        while at < run.end {
            while ranges.peek().is_some_and(|range| (range.end() as u32) < at) {
                ranges.next();
            }
            let (inside, end) = match ranges.peek() {
                Some(range) if range.start() as u32 <= at => (true, range.end() as u32 + 1),
                Some(range) => (false, range.start() as u32),
                None => (false, run.end),
            };
            let end = end.min(run.end);
            segments.push(Segment { range: at..end, cell: run.cell, inside });
            at = end;
        }
    }
    segments
}

#[cfg(test)]
mod tests;
