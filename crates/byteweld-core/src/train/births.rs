//! The pairs that one step makes known, while they are counted and their places gathered.

use std::ops::Range;

use hashbrown::HashTable;

use super::pairs::Pair;
use super::slots;
use super::tokens::EDGE;

/// The number of a pair that is not kept.
pub(super) const UNKEPT: u32 = u32::MAX;

/// How often a pair occurs.
#[derive(Clone, Copy)]
pub(super) struct Total {
    /// Occurrences, each counted as often as its pretoken.
    pub(super) count: u64,
    /// Occurrences in the slots.
    pub(super) places: u32,
    /// The pair's number among the births of this step, or `UNKEPT`.
    pub(super) birth: u32,
}

impl Default for Total {
    fn default() -> Self {
        Total { count: 0, places: 0, birth: UNKEPT }
    }
}

impl Total {
    pub(super) fn add(&mut self, count: u64) {
        self.count += count;
        self.places += 1;
    }
}

/// A pair that becomes known.
pub(super) struct Birth {
    pub(super) pair: Pair,
    pub(super) count: u64,
    pub(super) places: Vec<u32>,
}

/// Totals of all pairs of a part of the text, in the order in which the pairs were first asked for.
pub(super) struct Census {
    /// The slots of the part.
    pub(super) range: Range<usize>,
    pub(super) totals: Vec<(Pair, Total)>,
    /// Indices of `totals`, found by the pair: for pairs of single bytes in a cell for each of the
    /// 65,536 (at first there are no others), for all others in a hash table.
    of_bytes: Vec<u32>,
    of_others: HashTable<u32>,
}

impl Census {
    pub(super) fn new(range: Range<usize>) -> Self {
        Census {
            range,
            totals: Vec::new(),
            of_bytes: vec![u32::MAX; 256 * 256],
            of_others: HashTable::new(),
        }
    }

    /// The total of a pair; of a new pair, zero.
    #[inline]
    pub(super) fn total(&mut self, pair: Pair) -> &mut Total {
        let index = match cell(pair) {
            Some(cell) if self.of_bytes[cell] != u32::MAX => self.of_bytes[cell],
            _ => self.index(pair),
        };
        &mut self.totals[index as usize].1
    }

    /// The index of a pair's total, which is made if there is none.
    fn index(&mut self, pair: Pair) -> u32 {
        // There are no more pairs than slots, so 32 bits are enough.
        let next = self.totals.len() as u32;
        let index = if let Some(cell) = cell(pair) {
            self.of_bytes[cell] = next;
            next
        } else {
            let totals = &self.totals;
            let found = self.of_others.entry(
                pair.hash(),
                |&index| totals[index as usize].0 == pair,
                |&index| totals[index as usize].0.hash(),
            );
            *found.or_insert(next).get()
        };
        if index == next {
            self.totals.push((pair, Total::default()));
        }
        index
    }

    /// Adds totals by cell; pairs with an edge are none.
    pub(super) fn add_bytes(&mut self, totals: &[Total]) {
        for (left, right) in (0..EDGE).flat_map(|left| (0..EDGE).map(move |right| (left, right))) {
            let pair = Pair { left, right };
            let total = totals[slots::cell(pair)];
            if total.places > 0 {
                *self.total(pair) = total;
            }
        }
    }

    /// By cell: the birth of each pair of bytes.
    pub(super) fn births_of_bytes(&self) -> Vec<u32> {
        let mut births = vec![UNKEPT; slots::CELLS];
        for (pair, total) in &self.totals {
            births[slots::cell(*pair)] = total.birth;
        }
        births
    }

    /// Adds the totals of another part.
    pub(super) fn absorb(&mut self, other: &Census) {
        for (pair, theirs) in &other.totals {
            let total = self.total(*pair);
            total.count += theirs.count;
            total.places += theirs.places;
        }
    }

    /// By birth, of which there are so many: how many places of it are here.
    pub(super) fn sizes(&self, births: usize) -> Vec<u32> {
        let mut sizes = vec![0; births];
        for (_, total) in &self.totals {
            if let Some(size) = sizes.get_mut(total.birth as usize) {
                *size = total.places;
            }
        }
        sizes
    }
}

/// The cell of a pair of single bytes.
#[inline]
fn cell(pair: Pair) -> Option<usize> {
    (pair.left < 256 && pair.right < 256).then_some((pair.left << 8 | pair.right) as usize)
}
