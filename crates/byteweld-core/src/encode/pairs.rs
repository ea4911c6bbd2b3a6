//! Pairs of ids to merges: which pairs merge, with what rank, into what.
//!
//! Merging asks for many pairs, all over the table, and whether one merges is anybody's guess: a jump that the
//! processor guesses wrong costs as much as twenty instructions. So the table is perfect: every pair has a slot of
//! its own, and a look is one comparison. Pairs are parted into small groups by their hash, and each group has a
//! displacement, found by trying, that brings all its pairs to free slots. Displacements are few bytes and stay in
//! the nearest caches. What a rank makes is looked up only for the pair that is merged.

use std::hash::BuildHasher;
use std::hint::select_unpredictable;

use foldhash::fast::RandomState;

use crate::error::{Error, Result};
use crate::huge::advise;
use crate::prefetch::prefetch;

/// "No merge": ranks are lower, and no token has this id.
pub(super) const NONE: u32 = u32::MAX;

/// What a pair becomes.
#[derive(Clone, Copy)]
pub(super) struct Merged {
    pub(super) rank: u32,
    pub(super) id: u32,
}

/// What merging asks for.
pub(super) trait Ranks {
    /// The rank of a pair, or [`NONE`].
    fn rank(&self, left: u32, right: u32) -> u32;

    /// The id that the merge of a rank makes; [`NONE`] makes itself.
    fn made(&self, rank: u32) -> u32;
}

/// Pairs in a group, on average, and in how many slots there are seven pairs: with more, some group would often find
/// no displacement.
const GROUP: usize = 3;
const SLOTS_FOR_SEVEN: usize = 8;

/// A pair of ids as one number.
pub(super) type Pair = u64;

#[inline(always)]
pub(super) fn pair_of(left: u32, right: u32) -> Pair {
    u64::from(left) << 32 | u64::from(right)
}

fn ids_of(pair: Pair) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

/// No token has the id [`NONE`].
const NO_PAIR: Pair = u64::MAX;

/// A hash of a pair, good in its high bits.
#[inline(always)]
pub(super) fn hash_of(pair: Pair, seed: u64) -> u64 {
    (pair ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A pair and its rank, in 12 bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(super) struct Slot {
    pub(super) pair: Pair,
    pub(super) rank: u32,
}

pub(super) const EMPTY: Slot = Slot { pair: NO_PAIR, rank: NONE };

/// A pair whose rank was asked for, and the slot where it would be.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pair: Pair,
    slot: usize,
}

impl Asked {
    /// A pair that does not merge.
    pub(super) const NOTHING: Self = Self { pair: NO_PAIR, slot: 0 };
}

pub(super) struct Pairs {
    slots: Vec<Slot>,
    /// By group.
    displacements: Vec<u8>,
    /// The ranks of pairs of two ids below 256, which nearly always are those of the bytes, in a cell for each.
    low: Vec<u32>,
    /// By rank, the id that is made; `None` if it is the rank and `offset`.
    made: Option<Vec<u32>>,
    offset: u32,
    /// Drawn anew for every table, so that no vocabulary can be made to collide.
    seed: u64,
}

/// For each token the tokens that it starts with, itself not among them, as (id, length) from short to
/// long. In sorted order, the tokens that a token starts with stand before it, each starting with the
/// one before: a stack holds them.
fn proper_prefixes(tokens: &[(u32, impl AsRef<[u8]>)]) -> Vec<Vec<(u32, usize)>> {
    let tokens: Vec<(u32, &[u8])> = tokens.iter().map(|(id, t)| (*id, t.as_ref())).collect();
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_unstable_by(|&a, &b| tokens[a].1.cmp(tokens[b].1));
    let mut found = vec![Vec::new(); tokens.len()];
    let mut stack: Vec<usize> = Vec::new();
    for at in order {
        while stack.pop_if(|top| !tokens[at].1.starts_with(tokens[*top].1)).is_some() {}
        found[at] = stack.iter().map(|&place| (tokens[place].0, tokens[place].1.len())).collect();
        stack.push(at);
    }
    found
}

/// The cell of a pair of ids below 256.
#[inline]
fn cell(left: u32, right: u32) -> Option<usize> {
    (left < 256 && right < 256).then_some((left << 8 | right) as usize)
}

/// Which of `count` a number stands for: all 32-bit numbers are shared out evenly.
#[inline(always)]
fn share(number: u32, count: usize) -> usize {
    ((u64::from(number) * count as u64) >> 32) as usize
}

/// The slot, of so many, of a hash that is displaced.
#[inline(always)]
fn displaced(hash: u64, displacement: u8, slots: usize) -> usize {
    let shift = u32::from(displacement).wrapping_mul(0x9E37_79B9);
    share(((hash ^ hash >> 32) as u32).wrapping_add(shift), slots)
}

impl Pairs {
    /// The pairs of a merge list: a merge's rank is its place. Of a pair that is there twice the lower rank stays.
    pub(super) fn of_merges(merges: &[(u32, u32, u32)]) -> Result<Self> {
        if merges.len() >= NONE as usize {
            return Err(Error::Vocabulary("there are 2^32 - 1 or more merges".to_owned()));
        }
        let slots = merges
            .iter()
            .zip(0..)
            .map(|(&(left, right, _), rank)| Slot { pair: pair_of(left, right), rank });
        let mut pairs = Self::new(&slots.collect::<Vec<_>>());
        pairs.offset = merges.first().map_or(0, |&(_, _, id)| id);
        if !merges.iter().zip(0..).all(|((_, _, id), rank)| id.wrapping_sub(rank) == pairs.offset) {
            pairs.made = Some(merges.iter().map(|(_, _, id)| *id).collect());
        }
        Ok(pairs)
    }

    /// Every way to make a token of two tokens, ranked by the id of the result.
    ///
    /// A token has at most as many prefixes and suffixes that are tokens as it has bytes, and they are
    /// found without looking at a byte twice, so the work is linear in all tokens' bytes (and sorting).
    pub(super) fn of_ranks(tokens: &[(u32, impl AsRef<[u8]>)]) -> Self {
        let prefixes = proper_prefixes(tokens);
        let reverse = |token: &[u8]| token.iter().rev().copied().collect();
        let reversed: Vec<(u32, Vec<u8>)> =
            tokens.iter().map(|(id, token)| (*id, reverse(token.as_ref()))).collect();
        let suffixes = proper_prefixes(&reversed);
        let mut slots = Vec::with_capacity(tokens.len());
        for (at, (id, token)) in tokens.iter().enumerate() {
            // Prefixes from short to long, suffixes from long to short: lengths that add up meet.
            let mut ends = suffixes[at].iter().rev().peekable();
            for &(left, left_length) in &prefixes[at] {
                let wanted = token.as_ref().len() - left_length;
                while ends.next_if(|(_, length)| *length > wanted).is_some() {}
                if let Some(&(right, _)) = ends.next_if(|(_, length)| *length == wanted) {
                    slots.push(Slot { pair: pair_of(left, right), rank: *id });
                }
            }
        }
        Self::new(&slots)
    }

    /// A table of some pairs, which make the ids that their ranks are.
    fn new(pairs: &[Slot]) -> Self {
        let mut low = vec![NONE; 1 << 16];
        for &Slot { pair, rank } in pairs {
            let (left, right) = ids_of(pair);
            if let Some(cell) = cell(left, right) {
                low[cell] = low[cell].min(rank);
            }
        }
        let mut room = pairs.len() / (SLOTS_FOR_SEVEN - 1) * SLOTS_FOR_SEVEN + SLOTS_FOR_SEVEN;
        loop {
            let mut slots = Vec::with_capacity(room);
            advise(slots.spare_capacity_mut());
            slots.resize(room, EMPTY);
            let displacements = vec![0; pairs.len() / GROUP + 1];
            let seed = RandomState::default().hash_one(room);
            let mut table =
                Self { slots, displacements, low: Vec::new(), made: None, offset: 0, seed };
            if table.fill(pairs) {
                return Self { low, ..table };
            }
            // Bad luck: with another seed, and a little more room.
            room += room / 8;
        }
    }

    /// Brings pairs to slots of their own; says whether that could be done.
    fn fill(&mut self, pairs: &[Slot]) -> bool {
        // Group after group, the largest first, while there is most room.
        let groups = self.displacements.len();
        let mut starts = vec![0u32; groups + 1];
        let group_of = |slot: &Slot| share((self.hash(slot.pair) >> 32) as u32, groups);
        for slot in pairs {
            starts[group_of(slot) + 1] += 1;
        }
        let most = starts.iter().max().map_or(0, |most| *most as usize);
        let mut by_size = vec![Vec::new(); most + 1];
        for (group, size) in starts[1..].iter().enumerate() {
            by_size[*size as usize].push(group);
        }
        for group in 1..=groups {
            starts[group] += starts[group - 1];
        }
        let mut sorted = vec![EMPTY; pairs.len()];
        for slot in pairs.iter().rev() {
            let end = &mut starts[group_of(slot) + 1];
            *end -= 1;
            sorted[*end as usize] = *slot;
        }
        // Each `starts[group + 1]` is now where the group starts.
        starts.push(pairs.len() as u32);
        let mut is_taken = vec![false; self.slots.len()];
        for group in by_size.into_iter().rev().flatten() {
            let members = &mut sorted[starts[group + 1] as usize..starts[group + 2] as usize];
            let members = without_doubles(members);
            let Some(displacement) = self.displacement_of(members, &mut is_taken) else {
                return false;
            };
            self.displacements[group] = displacement;
        }
        true
    }

    /// Puts the pairs of a group into free slots, with the first displacement for which they are free.
    fn displacement_of(&mut self, members: &[Slot], is_taken: &mut [bool]) -> Option<u8> {
        let slots = self.slots.len();
        let place = |table: &Self, slot: &Slot, displacement: u8| {
            displaced(table.hash(slot.pair), displacement, slots)
        };
        for displacement in 0..=u8::MAX {
            let free = members.iter().take_while(|member| {
                let place = place(self, member, displacement);
                !std::mem::replace(&mut is_taken[place], true)
            });
            let count = free.count();
            if count == members.len() {
                for member in members {
                    let place = place(self, member, displacement);
                    self.slots[place] = *member;
                }
                return Some(displacement);
            }
            for member in &members[..count] {
                is_taken[place(self, member, displacement)] = false;
            }
        }
        None
    }

    #[inline(always)]
    fn hash(&self, pair: Pair) -> u64 {
        hash_of(pair, self.seed)
    }

    /// The slot of a pair.
    #[inline(always)]
    fn slot(&self, pair: Pair) -> usize {
        let hash = self.hash(pair);
        let displacement = self.displacements[share((hash >> 32) as u32, self.displacements.len())];
        displaced(hash, displacement, self.slots.len())
    }

    /// Asks for the rank of a pair, which [`Pairs::answer`] gives; what is done in between need not wait for it.
    /// Either id may be [`NONE`].
    #[inline(always)]
    pub(super) fn ask(&self, left: u32, right: u32) -> Asked {
        let pair = pair_of(left, right);
        let slot = self.slot(pair);
        prefetch(&self.slots, slot);
        Asked { pair, slot }
    }

    /// The rank of a pair that was asked for, or [`NONE`].
    #[inline(always)]
    pub(super) fn answer(&self, asked: Asked) -> u32 {
        let Slot { pair, rank } = self.slots[asked.slot];
        select_unpredictable(pair == asked.pair, rank, NONE)
    }

    /// Every pair that merges, as (left, right, what it becomes), from low rank to high.
    pub(super) fn by_rank(&self) -> Vec<(u32, u32, Merged)> {
        let used = self.slots.iter().filter(|slot| slot.rank != NONE);
        let mut all: Vec<(u32, u32, Merged)> = used
            .map(|&Slot { pair, rank }| {
                let (left, right) = ids_of(pair);
                (left, right, Merged { rank, id: self.made(rank) })
            })
            .collect();
        // The pair, too: of equal ranks the order must not depend on where the table has them.
        all.sort_unstable_by_key(|(left, right, merged)| (merged.rank, *left, *right));
        all
    }
}

/// Of pairs that are there more than once, the one of the lowest rank.
fn without_doubles(members: &mut [Slot]) -> &[Slot] {
    members.sort_unstable_by_key(|slot| (slot.pair, slot.rank));
    let mut kept = 0;
    for at in 0..members.len() {
        let pair = members[at].pair;
        if members[..kept].last().is_none_or(|last| last.pair != pair) {
            members[kept] = members[at];
            kept += 1;
        }
    }
    &members[..kept]
}

impl Ranks for Pairs {
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        match cell(left, right) {
            Some(cell) => self.low[cell],
            None => {
                let pair = pair_of(left, right);
                self.answer(Asked { pair, slot: self.slot(pair) })
            }
        }
    }

    #[inline]
    fn made(&self, rank: u32) -> u32 {
        match &self.made {
            Some(made) => made.get(rank as usize).copied().unwrap_or(NONE),
            None if rank == NONE => NONE,
            None => rank.wrapping_add(self.offset),
        }
    }
}

#[cfg(test)]
mod tests;
