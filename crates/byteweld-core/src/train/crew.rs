//! What threads share out among them: the places of a merge, and the text when it is searched for pairs.
//!
//! Each thread has a part of the text and counts what it finds there by itself. The sums decide which pairs
//! are kept. Then the list of each kept pair is divided, in the order of the parts, and each thread writes
//! its places into its shares: lists ascend as if one thread had written them.

use super::births::{Birth, Census, Total};
use super::neighbours::Neighbours;
use super::pairs::Pair;
use super::slots::{CELLS, LONG, Merge, Slots, Symbol};
use super::tokens::{EDGE, Token, Tokens};
use crate::error::Result;
use crate::threads::{self, Stop};

/// Fewer places, or slots, are not worth a thread.
const WORTH_A_THREAD: usize = if cfg!(test) { 8 } else { 1 << 17 };

/// The threads, and their memory for merges, which is empty between two of them.
#[derive(Default)]
pub(super) struct Crew {
    threads: usize,
    /// One for each part of a merge, or more.
    parts: Vec<Neighbours>,
    sum: Neighbours,
}

/// The parts of a merge that was made.
pub(super) struct Merged {
    /// Where the parts start in the list of places.
    starts: Vec<usize>,
    /// How many of each part's places held the pair; they are at its front.
    kept: Vec<usize>,
}

impl Merged {
    /// Where the merge was made, part by part.
    pub(super) fn places<'p>(&self, places: &'p [u32]) -> impl Iterator<Item = &'p [u32]> {
        self.starts.iter().zip(&self.kept).map(|(&start, &kept)| &places[start..start + kept])
    }
}

impl Crew {
    pub(super) fn new(threads: usize) -> Self {
        Crew { threads, ..Self::default() }
    }

    fn parts_for(&self, size: usize) -> usize {
        (size / WORTH_A_THREAD).clamp(1, self.threads.max(1))
    }

    /// Merges everywhere. What it finds is kept for [`Crew::sum`] and [`Crew::finish`].
    pub(super) fn merge<S: Symbol>(
        &mut self,
        slots: &mut Slots<S>,
        merge: &Merge,
        places: &mut [u32],
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Merged> {
        let starts = slots.divide(merge, places, self.parts_for(places.len()));
        let parts = self.parts.len().max(starts.len());
        self.parts.resize_with(parts, Neighbours::default);
        for part in &mut self.parts[..starts.len()] {
            part.make_room_for(merge.new);
        }
        let kept = slots.merge(merge, places, &starts, &mut self.parts, goes_on)?;
        Ok(Merged { starts, kept })
    }

    /// What was found in all parts together.
    pub(super) fn sum(&mut self, merged: &Merged, new: Token) -> &mut Neighbours {
        let parts = &mut self.parts[..merged.starts.len()];
        if let [only] = parts {
            return only;
        }
        self.sum.make_room_for(new);
        for part in parts {
            self.sum.absorb(part);
        }
        &mut self.sum
    }

    /// Writes down where the new pairs stand, and forgets what was found.
    pub(super) fn finish(
        &mut self,
        merge: &Merge,
        merged: &Merged,
        places: &[u32],
        tokens: &Tokens,
        births: &mut [Birth],
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let parts = &mut self.parts[..merged.starts.len()];
        if parts.len() > 1 {
            parts.iter_mut().for_each(|part| part.take_births(&self.sum));
        }
        let size = |part: usize, _, pair| parts[part].places_of(pair, merge);
        let shares = share_out(births, parts.len(), size);
        let work = shares.into_iter().zip(parts.iter()).zip(merged.places(places)).collect();
        let is_long = places.len() > LONG;
        threads::each(work, self.threads, is_long, goes_on, |((mut shares, part), places), _| {
            for (&place, &(x, y)) in places.iter().zip(&part.around) {
                let (x_new, new_y) = part.births(x, y);
                shares.write(x_new, place.wrapping_sub(tokens.length(x)));
                shares.write(new_y, place);
            }
        })?;
        parts.iter_mut().for_each(Neighbours::clear);
        self.sum.clear();
        Ok(())
    }

    /// Counts all pairs of the text, part by part.
    pub(super) fn count_pairs<S: Symbol>(
        &self,
        slots: &Slots<S>,
        tokens: &Tokens,
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<Census>> {
        let is_unmerged = tokens.next() == EDGE + 1;
        let ranges = slots.ranges(self.parts_for(slots.len()), is_unmerged);
        let mut parts: Vec<Census> = ranges.into_iter().map(Census::new).collect();
        let work = parts.iter_mut().collect();
        let is_long = slots.len() > LONG;
        threads::each(work, self.threads, is_long, goes_on, |census: &mut Census, stop| {
            if is_unmerged {
                let mut totals = vec![Total::default(); CELLS];
                let range = census.range.clone();
                slots.byte_pairs(range, stop, |cell, _, count| totals[cell].add(count));
                return census.add_bytes(&totals);
            }
            for (pair, _, count) in slots.pairs(tokens, census.range.clone()) {
                census.total(pair).add(count);
                if stop.is_set() {
                    break;
                }
            }
        })?;
        Ok(parts)
    }

    /// Writes down where the pairs stand that are kept; `parts` know their births.
    pub(super) fn write_pairs<S: Symbol>(
        &self,
        slots: &Slots<S>,
        tokens: &Tokens,
        parts: Vec<Census>,
        births: &mut [Birth],
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let sizes: Vec<Vec<u32>> = parts.iter().map(|part| part.sizes(births.len())).collect();
        let shares = share_out(births, parts.len(), |part, birth, _| sizes[part][birth] as usize);
        drop(sizes);
        let work = shares.into_iter().zip(parts).collect();
        let is_long = slots.len() > LONG;
        let is_unmerged = tokens.next() == EDGE + 1;
        let write = |(mut shares, mut part): (Shares<'_>, Census), stop: &Stop| {
            if is_unmerged {
                let births = part.births_of_bytes();
                let write = |cell: usize, place, _| shares.write(births[cell], place);
                return slots.byte_pairs(part.range, stop, write);
            }
            for (pair, place, _) in slots.pairs(tokens, part.range.clone()) {
                shares.write(part.total(pair).birth, place);
                if stop.is_set() {
                    break;
                }
            }
        };
        threads::each(work, self.threads, is_long, goes_on, write)
    }
}

/// One thread's shares of the lists, by birth: what it has not yet written of each.
struct Shares<'b>(Vec<std::slice::IterMut<'b, u32>>);

impl Shares<'_> {
    /// Writes the next place of a new pair, if that is kept.
    #[inline]
    fn write(&mut self, birth: u32, place: u32) {
        if let Some(next) = self.0.get_mut(birth as usize).and_then(Iterator::next) {
            *next = place;
        }
    }
}

/// Divides the list of every birth: `size` says how many places a part has of a birth and its pair.
fn share_out(
    births: &mut [Birth],
    parts: usize,
    size: impl Fn(usize, usize, Pair) -> usize,
) -> Vec<Shares<'_>> {
    let mut shares: Vec<Shares<'_>> =
        (0..parts).map(|_| Shares(Vec::with_capacity(births.len()))).collect();
    for (number, birth) in births.iter_mut().enumerate() {
        let mut rest = &mut birth.places[..];
        for (part, shares) in shares.iter_mut().enumerate() {
            let (share, others) = rest.split_at_mut(size(part, number, birth.pair));
            shares.0.push(share.iter_mut());
            rest = others;
        }
    }
    shares
}
