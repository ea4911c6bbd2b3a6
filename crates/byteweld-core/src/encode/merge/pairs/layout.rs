//! Which slot of a pair table each pair has: a perfect hash.
//!
//! Pairs are grouped by hash, and each group has a displacement, found by trial, that takes all its
//! pairs to free slots. The displacements, a byte each, stay in the L2 cache. Finding them takes most
//! of the time it takes to build a table, so `load(cache=)` keeps them.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::{Pair, hash_pair, pack_pair};

/// Pairs per group, on average. With more, groups often find no displacement.
const PAIRS_PER_GROUP: usize = 3;

/// Slots for this many pairs: a load factor of 7/8. With a higher one, groups often find no
/// displacement.
fn least_slots(pairs: usize) -> usize {
    pairs / 7 * 8 + 8
}

/// More slots than this many times the least are never needed, so a file that says so is wrong.
const MAX_GROWTH: usize = 16;

fn num_groups(pairs: usize) -> usize {
    pairs / PAIRS_PER_GROUP + 1
}

/// The slots of some pairs, each of which has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairLayout {
    /// Random for every layout, so that no vocabulary can be built to collide.
    seed: u64,
    num_slots: usize,
    /// By group.
    displacements: Vec<u8>,
}

impl PairLayout {
    /// Finds a layout of the pairs of a merge list.
    pub(crate) fn of_merges(merges: &[(u32, u32, u32)]) -> Self {
        let pairs = merges.iter().map(|&(left, right, _)| pack_pair(left, right));
        Self::find(&pairs.collect::<Vec<_>>())
    }

    /// Finds a layout of pairs, which may repeat.
    pub(super) fn find(pairs: &[Pair]) -> Self {
        let mut num_slots = least_slots(pairs.len());
        loop {
            let seed = RandomState::default().hash_one(num_slots);
            let displacements = vec![0; num_groups(pairs.len())];
            let mut layout = Self { seed, num_slots, displacements };
            if layout.place_all(pairs) {
                return layout;
            }
            // Try again with another seed and more slots.
            num_slots += num_slots / 8;
        }
    }

    pub(super) fn num_slots(&self) -> usize {
        self.num_slots
    }

    /// The slot of a pair.
    #[inline(always)]
    pub(super) fn slot(&self, pair: Pair) -> usize {
        let hash = hash_pair(pair, self.seed);
        let displacement = self.displacements[group(hash, self.displacements.len())];
        displaced(hash, displacement, self.num_slots)
    }

    /// Finds the displacements; returns whether that worked.
    fn place_all(&mut self, pairs: &[Pair]) -> bool {
        // Sort the hashes by group.
        let num_groups = self.displacements.len();
        let hashes: Vec<u64> = pairs.iter().map(|&pair| hash_pair(pair, self.seed)).collect();
        let mut starts = vec![0u32; num_groups + 1];
        for &hash in &hashes {
            starts[group(hash, num_groups) + 1] += 1;
        }
        let largest = starts.iter().max().map_or(0, |size| *size as usize);
        let mut groups_by_size = vec![Vec::new(); largest + 1];
        for (group, size) in starts[1..].iter().enumerate() {
            groups_by_size[*size as usize].push(group);
        }
        for group in 1..=num_groups {
            starts[group] += starts[group - 1];
        }
        let mut sorted = vec![0; pairs.len()];
        for &hash in hashes.iter().rev() {
            let end = &mut starts[group(hash, num_groups) + 1];
            *end -= 1;
            sorted[*end as usize] = hash;
        }
        // Now `starts[group + 1]` is the start of the group. Place the largest groups first, while
        // most slots are free.
        starts.push(pairs.len() as u32);
        let mut taken = Taken::new(self.num_slots);
        for group in groups_by_size.into_iter().rev().flatten() {
            let members = &mut sorted[starts[group + 1] as usize..starts[group + 2] as usize];
            let Some(displacement) = self.place(dedup(members), &mut taken) else {
                return false;
            };
            self.displacements[group] = displacement;
        }
        true
    }

    /// Takes slots for the hashes of a group: the first displacement for which they are free.
    fn place(&self, members: &[u64], taken: &mut Taken) -> Option<u8> {
        (0..=u8::MAX).find(|&displacement| {
            let slot = |hash: &u64| displaced(*hash, displacement, self.num_slots);
            let placed = members.iter().take_while(|&hash| taken.take(slot(hash))).count();
            if placed < members.len() {
                members[..placed].iter().for_each(|hash| taken.free(slot(hash)));
            }
            placed == members.len()
        })
    }

    /// The layout as bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.seed, self.num_slots as u64].map(u64::to_le_bytes);
        [numbers.as_flattened(), &self.displacements].concat()
    }

    /// Reads what [`PairLayout::to_bytes`] wrote, for a given number of pairs; `None` if it does not fit.
    pub(crate) fn from_bytes(bytes: &[u8], pairs: usize) -> Option<Self> {
        let (seed, rest) = bytes.split_first_chunk()?;
        let (num_slots, displacements) = rest.split_first_chunk()?;
        let num_slots = usize::try_from(u64::from_le_bytes(*num_slots)).ok()?;
        let least = least_slots(pairs);
        let is_right = (least..=MAX_GROWTH * least).contains(&num_slots)
            && displacements.len() == num_groups(pairs);
        is_right.then(|| Self {
            seed: u64::from_le_bytes(*seed),
            num_slots,
            displacements: displacements.to_vec(),
        })
    }
}

/// One bit per slot, so that all of them stay in L1 while groups are tried.
struct Taken(Vec<u64>);

impl Taken {
    fn new(slots: usize) -> Self {
        Self(vec![0; slots.div_ceil(64)])
    }

    /// Takes a slot; false if it was taken.
    #[inline]
    fn take(&mut self, slot: usize) -> bool {
        let (word, bit) = (&mut self.0[slot / 64], 1 << (slot % 64));
        let is_free = *word & bit == 0;
        *word |= bit;
        is_free
    }

    #[inline]
    fn free(&mut self, slot: usize) {
        self.0[slot / 64] &= !(1 << (slot % 64));
    }
}

/// The group of a hash.
#[inline(always)]
fn group(hash: u64, num_groups: usize) -> usize {
    scale((hash >> 32) as u32, num_groups)
}

/// Scales a 32-bit hash down to `0..count`, evenly.
#[inline(always)]
fn scale(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

/// The slot of a hash with a displacement.
#[inline(always)]
fn displaced(hash: u64, displacement: u8, num_slots: usize) -> usize {
    let shift = u32::from(displacement).wrapping_mul(0x9E37_79B9);
    scale(((hash ^ hash >> 32) as u32).wrapping_add(shift), num_slots)
}

/// Moves each distinct hash to the front. Different pairs have different hashes: a product with an odd
/// number can be undone.
fn dedup(members: &mut [u64]) -> &[u64] {
    members.sort_unstable();
    let mut kept = 0;
    for at in 0..members.len() {
        if kept == 0 || members[kept - 1] != members[at] {
            members[kept] = members[at];
            kept += 1;
        }
    }
    &members[..kept]
}
