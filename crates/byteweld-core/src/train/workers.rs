//! Divides work among threads: the positions of a merge, and the text when it is scanned for pairs.
//!
//! Each thread counts pairs in its own part of the text. The sums decide which pairs are kept. Then
//! the position list of each kept pair is divided in the order of the parts, and each thread fills
//! its shares, so the lists ascend as if one thread had written them.

use super::neighbors::Neighbors;
use super::new_pairs::{NewPair, PairTotal, PairTotals};
use super::pairs::Pair;
use super::slots::{BYTE_PAIR_CELLS, LONG_WORK, Merge, Slots, Symbol};
use super::tokens::{EDGE, Token, Tokens};
use crate::error::Result;
use crate::reserve::{check_step, filled, reserve_exact};
use crate::threads::{self, Stop};

/// Starting a thread costs more than processing this many positions or slots.
const MIN_WORK_PER_THREAD: usize = if cfg!(test) { 8 } else { 1 << 17 };

/// The number of threads, and their scratch for merges, which is empty between merges.
#[derive(Default)]
pub(super) struct Workers {
    threads: usize,
    /// At least one per part of a merge.
    parts: Vec<Neighbors>,
    sum: Neighbors,
}

/// The parts of a completed merge.
pub(super) struct Merged {
    /// Where each part starts in the list of positions.
    starts: Vec<usize>,
    /// How many of each part's positions held the pair; these are at its front.
    kept: Vec<usize>,
}

impl Merged {
    /// The merged positions of each part.
    pub(super) fn positions<'p>(&self, positions: &'p [u32]) -> impl Iterator<Item = &'p [u32]> {
        self.starts.iter().zip(&self.kept).map(|(&start, &kept)| &positions[start..start + kept])
    }
}

impl Workers {
    pub(super) fn new(threads: usize) -> Self {
        Workers { threads, ..Self::default() }
    }

    fn parts_for(&self, size: usize) -> usize {
        (size / MIN_WORK_PER_THREAD).clamp(1, self.threads.max(1))
    }

    /// Merges everywhere, and keeps the neighbors for [`Workers::sum`] and [`Workers::finish`].
    pub(super) fn merge<S: Symbol>(
        &mut self,
        slots: &mut Slots<S>,
        merge: &Merge,
        positions: &mut [u32],
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Merged> {
        check_step()?;
        let starts = slots.divide(merge, positions, self.parts_for(positions.len()));
        let parts = self.parts.len().max(starts.len());
        self.parts.resize_with(parts, Neighbors::default);
        let ends = starts.iter().skip(1).copied().chain([positions.len()]);
        for (part, (start, end)) in self.parts.iter_mut().zip(starts.iter().zip(ends)) {
            part.reserve(merge.new, end - start)?;
        }
        let kept = slots.merge(merge, positions, &starts, &mut self.parts, check_interrupt)?;
        Ok(Merged { starts, kept })
    }

    /// The neighbors in all parts together.
    pub(super) fn sum(&mut self, merged: &Merged, new: Token) -> Result<&mut Neighbors> {
        let parts = &mut self.parts[..merged.starts.len()];
        if let [only] = parts {
            return Ok(only);
        }
        self.sum.reserve(new, 0)?;
        for part in parts {
            self.sum.absorb(part)?;
        }
        Ok(&mut self.sum)
    }

    /// Fills the position lists of the new pairs and clears the scratch.
    pub(super) fn finish(
        &mut self,
        merge: &Merge,
        merged: &Merged,
        positions: &[u32],
        tokens: &Tokens,
        new_pairs: &mut [NewPair],
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        check_step()?;
        let parts = &mut self.parts[..merged.starts.len()];
        if parts.len() > 1 {
            parts.iter_mut().for_each(|part| part.copy_new_pairs(&self.sum));
        }
        let size = |part: usize, _, pair| parts[part].places_of(pair, merge);
        let shares = share_out(new_pairs, parts.len(), size)?;
        let work = shares.into_iter().zip(parts.iter()).zip(merged.positions(positions)).collect();
        let is_long = positions.len() > LONG_WORK;
        threads::for_each(
            work,
            self.threads,
            is_long,
            check_interrupt,
            |((mut shares, part), positions), _| {
                for (&position, &(x, y)) in positions.iter().zip(&part.around) {
                    let (x_new, new_y) = part.new_pairs(x, y);
                    shares.write(x_new, position.wrapping_sub(tokens.length(x)));
                    shares.write(new_y, position);
                }
            },
        )?;
        parts.iter_mut().for_each(Neighbors::clear);
        self.sum.clear();
        Ok(())
    }

    /// Counts all pairs of the text in parts.
    pub(super) fn count_pairs<S: Symbol>(
        &self,
        slots: &Slots<S>,
        tokens: &Tokens,
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Vec<PairTotals>> {
        check_step()?;
        let is_unmerged = tokens.next() == EDGE + 1;
        let ranges = slots.ranges(self.parts_for(slots.len()), is_unmerged);
        let mut parts =
            ranges.into_iter().map(PairTotals::new).collect::<Result<Vec<PairTotals>>>()?;
        let mut results: Vec<Result<()>> = parts.iter().map(|_| Ok(())).collect();
        let work = parts.iter_mut().zip(&mut results).collect();
        let is_long = slots.len() > LONG_WORK;
        threads::for_each(
            work,
            self.threads,
            is_long,
            check_interrupt,
            |(part, result): (&mut PairTotals, &mut Result<()>), stop| {
                *result = count_part(slots, tokens, is_unmerged, part, stop);
            },
        )?;
        results.into_iter().collect::<Result<()>>()?;
        Ok(parts)
    }

    /// Fills the position lists of the kept pairs; `parts` hold the indices of their new pairs.
    pub(super) fn write_pairs<S: Symbol>(
        &self,
        slots: &Slots<S>,
        tokens: &Tokens,
        parts: Vec<PairTotals>,
        new_pairs: &mut [NewPair],
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        check_step()?;
        let sizes = parts.iter().map(|part| part.sizes(new_pairs.len()));
        let sizes = sizes.collect::<Result<Vec<Vec<u32>>>>()?;
        let shares =
            share_out(new_pairs, parts.len(), |part, index, _| sizes[part][index] as usize)?;
        drop(sizes);
        let mut results: Vec<Result<()>> = parts.iter().map(|_| Ok(())).collect();
        let work = shares.into_iter().zip(parts).zip(&mut results).collect();
        let is_long = slots.len() > LONG_WORK;
        let is_unmerged = tokens.next() == EDGE + 1;
        let write = |mut shares: Shares<'_>, mut part: PairTotals, stop: &Stop| {
            if is_unmerged {
                let new_pairs = part.new_pairs_of_bytes()?;
                let write = |cell: usize, position, _| shares.write(new_pairs[cell], position);
                slots.byte_pairs(part.range, stop, write);
                return Ok(());
            }
            for (pair, position, _) in slots.pairs(tokens, part.range.clone()) {
                shares.write(part.total(pair)?.new_pair, position);
                if stop.is_set() {
                    break;
                }
            }
            Ok(())
        };
        threads::for_each(
            work,
            self.threads,
            is_long,
            check_interrupt,
            |((shares, part), result): ((Shares<'_>, PairTotals), &mut Result<()>), stop| {
                *result = write(shares, part, stop);
            },
        )?;
        results.into_iter().collect()
    }
}

/// Counts all pairs of one part.
fn count_part<S: Symbol>(
    slots: &Slots<S>,
    tokens: &Tokens,
    is_unmerged: bool,
    part: &mut PairTotals,
    stop: &Stop,
) -> Result<()> {
    if is_unmerged {
        let mut totals = filled(PairTotal::default(), BYTE_PAIR_CELLS)?;
        let range = part.range.clone();
        slots.byte_pairs(range, stop, |cell, _, count| totals[cell].add(count));
        return part.add_bytes(&totals);
    }
    for (pair, _, count) in slots.pairs(tokens, part.range.clone()) {
        part.total(pair)?.add(count);
        if stop.is_set() {
            break;
        }
    }
    Ok(())
}

/// One thread's shares of the position lists, by new pair: what it has not filled yet.
struct Shares<'b>(Vec<std::slice::IterMut<'b, u32>>);

impl Shares<'_> {
    /// Writes the next position of a new pair, if the pair is kept.
    #[inline]
    fn write(&mut self, new_pair: u32, position: u32) {
        if let Some(next) = self.0.get_mut(new_pair as usize).and_then(Iterator::next) {
            *next = position;
        }
    }
}

/// Divides the position list of every new pair; `size` returns how many positions a part has, given
/// the part, the index of the new pair, and the pair.
fn share_out(
    new_pairs: &mut [NewPair],
    parts: usize,
    size: impl Fn(usize, usize, Pair) -> usize,
) -> Result<Vec<Shares<'_>>> {
    let mut shares: Vec<Shares<'_>> = (0..parts).map(|_| Shares(Vec::new())).collect();
    for shares in &mut shares {
        reserve_exact(&mut shares.0, new_pairs.len())?;
    }
    for (index, new_pair) in new_pairs.iter_mut().enumerate() {
        let mut rest = &mut new_pair.positions[..];
        for (part, shares) in shares.iter_mut().enumerate() {
            let (share, others) = rest.split_at_mut(size(part, index, new_pair.pair));
            shares.0.push(share.iter_mut());
            rest = others;
        }
    }
    Ok(shares)
}
