//! What kind of character a code point is: Unicode 16.0, pinned, the same in every release of ours.
//!
//! `unicode_runs.rs`, made by scripts/make_unicode_tables.py, gives every code point a cell: its general
//! category, and whether it is white space, Han, or folds to an ASCII letter. The classes of the field's
//! patterns are unions of cells, so one byte a code point serves all of them.

use std::sync::Arc;

use crate::lazy::Lazy;

pub(super) use super::unicode_runs::CELL_NAMES;
use super::unicode_runs::RUNS;

const BLOCK_BITS: u32 = 8;
const BLOCK: usize = 1 << BLOCK_BITS;
const END: u32 = 0x11_0000;

/// Code points of one cell, from `first` up to `end`.
#[derive(Clone, Copy)]
pub(super) struct CellRun {
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) cell: usize,
}

/// All runs, ascending; surrogates are no characters and are left out.
pub(super) fn runs() -> impl Iterator<Item = CellRun> {
    let ends = RUNS.iter().skip(1).map(|run| run >> 8).chain([END]);
    RUNS.iter()
        .zip(ends)
        .map(|(run, end)| CellRun { first: run >> 8, end, cell: (run & 0xFF) as usize })
        .filter(|run| run.first != 0xD800)
}

/// Cells by code point, in blocks; equal blocks are stored once (42 KB in all).
pub(super) struct Table {
    block_of: Vec<u8>,
    blocks: Vec<[u8; BLOCK]>,
}

impl Table {
    /// The one table of the process.
    pub(super) fn get() -> Arc<Self> {
        static TABLE: Lazy<Table> = Lazy::new();
        TABLE.get_or_make(Self::new)
    }

    fn new() -> Self {
        let mut table = Self { block_of: Vec::new(), blocks: Vec::new() };
        let mut uniform = [None; CELL_NAMES.len()]; // by cell: the block that holds no other
        let mut runs = RUNS.iter().map(|run| (run >> 8, (run & 0xFF) as usize)).peekable();
        let mut cell = 0;
        for start in (0..END).step_by(BLOCK) {
            let mut block = [cell as u8; BLOCK];
            while let Some((first, next)) = runs.next_if(|run| run.0 < start + BLOCK as u32) {
                block[(first - start) as usize..].fill(next as u8);
                cell = next;
            }
            let is_uniform = block.iter().all(|&other| other == cell as u8);
            let known = match uniform[cell].filter(|_| is_uniform) {
                Some(known) => Some(known),
                None => table.blocks.iter().position(|known| *known == block),
            };
            let number = known.unwrap_or_else(|| {
                table.blocks.push(block);
                table.blocks.len() - 1
            });
            if is_uniform {
                uniform[cell] = Some(number);
            }
            table.block_of.push(number as u8);
        }
        table
    }

    /// The cell of a code point; what is no code point is in the first.
    #[inline]
    pub(super) fn cell(&self, code_point: u32) -> usize {
        let Some(&block) = self.block_of.get((code_point >> BLOCK_BITS) as usize) else { return 0 };
        match self.blocks.get(block as usize) {
            Some(block) => block[code_point as usize % BLOCK] as usize,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests;
