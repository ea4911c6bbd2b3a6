//! Lays out pre-tokens in slots.
//!
//! Pre-tokens with the same count are adjacent, the largest counts first, so that a count is stored
//! once per block of slots instead of once per pre-token. The pre-tokens are read twice: the first
//! pass adds up how many slots each count needs, the second writes every pre-token into the region
//! of its count. So no list of pre-tokens is needed, and they may be read from disk.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};

use super::pretokens::PretokenCounts;
use super::slots::{Slots, Symbol};
use super::steps::ShownPretokens;
use crate::error::{Error, Result};
use crate::reserve::{collect, failed, reserve_exact};

/// Regions are made of blocks of `1 << shift` slots, so that a shift finds the count of a position.
/// Larger blocks make the table of counts smaller; smaller ones waste less when there are many
/// different counts. The largest shift in this range that wastes at most an eighth is used.
const MAX_SHIFT: u32 = 6;
const MIN_SHIFT: u32 = 2;

/// Interrupts are checked after this many bytes of pre-tokens, about every few milliseconds.
const CHECK_INTERVAL_BYTES: usize = 1 << 16;

/// The result of the first pass.
pub(super) struct Layout {
    /// The size of each count's region in slots.
    region_sizes: HashMap<u64, u64>,
    occurs: [bool; 256],
    /// The length of the text, weighted by the counts of its pre-tokens.
    pub(super) bytes: u64,
}

impl Layout {
    /// Reads the pre-tokens for the first time.
    pub(super) fn scan(
        pretokens: &dyn PretokenCounts,
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let mut region_sizes: HashMap<u64, u64> = HashMap::new();
        let mut occurs = [false; 256];
        let mut total: u128 = 0;
        for_each(pretokens, check_interrupt, |pretoken, count| {
            if count == 0 {
                return Ok(());
            }
            total += pretoken.len() as u128 * u128::from(count);
            for &byte in pretoken {
                occurs[usize::from(byte)] = true;
            }
            // A pre-token of one byte contains no pair.
            if pretoken.len() > 1 {
                region_sizes.try_reserve(1).map_err(|_| failed::<(u64, u64)>(1))?;
                *region_sizes.entry(count).or_insert(0) += pretoken.len() as u64 + 1;
            }
            Ok(())
        })?;
        Ok(Layout { region_sizes, occurs, bytes: check_total(total)? })
    }

    /// Fails if a byte occurs that has no id, naming the smallest one.
    pub(super) fn check_bytes(&self, base_ids: &[Option<u32>; 256]) -> Result<()> {
        for (byte, id) in base_ids.iter().enumerate() {
            if self.occurs[byte] && id.is_none() {
                return Err(Error::Train(format!(
                    "byte 0x{byte:02X} occurs in the text but has no id in the base alphabet; \
                     use an alphabet that has it or remove it from the text",
                )));
            }
        }
        Ok(())
    }

    /// Reads the pre-tokens for the second time and writes them into slots. Those to show, if any,
    /// are noted in `shown`.
    pub(super) fn lay_out<S: Symbol>(
        self,
        pretokens: &dyn PretokenCounts,
        mut shown: Option<&mut ShownPretokens>,
        check_interrupt: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Slots<S>> {
        let mut regions: Vec<(u64, u64)> = collect(self.region_sizes.into_iter())?;
        regions.sort_unstable_by_key(|&(count, _)| std::cmp::Reverse(count));
        let size: u128 = regions.iter().map(|&(_, size)| u128::from(size)).sum();
        let shift = block_shift(size, regions.len() as u128);
        let blocks: u128 =
            regions.iter().map(|&(_, size)| u128::from(size).div_ceil(1 << shift)).sum();
        let size = (blocks << shift) + 1;
        if size > u128::from(u32::MAX) {
            return Err(Error::Train(format!(
                "the distinct pre-tokens need {size} slots, but the trainer has only {}; \
                 use a pattern that makes shorter pre-tokens, or train on part of the corpus",
                u32::MAX,
            )));
        }
        let mut counts = Vec::new();
        reserve_exact(&mut counts, blocks as usize)?;
        // The free part of each count's region.
        let mut free: HashMap<u64, Range<usize>> = HashMap::new();
        free.try_reserve(regions.len())
            .map_err(|_| failed::<(u64, Range<usize>)>(regions.len()))?;
        for (count, size) in regions {
            let start = counts.len() << shift;
            free.insert(count, start..start + size as usize);
            let blocks = size.div_ceil(1 << shift) as usize;
            counts.resize(counts.len() + blocks, count);
        }
        let mut slots = Slots::new(size as usize, counts, shift)?;
        let mut is_same = true;
        for_each(pretokens, check_interrupt, |pretoken, count| {
            if count == 0 {
                return Ok(());
            }
            let mut start = 0;
            if pretoken.len() > 1 {
                match free.get_mut(&count).filter(|region| region.len() > pretoken.len()) {
                    Some(region) => {
                        start = region.start + 1;
                        slots.write_pretoken(start, pretoken);
                        region.start += pretoken.len() + 1;
                    }
                    None => is_same = false,
                }
            }
            match &mut shown {
                Some(shown) if is_same => shown.add(&slots, pretoken, count, start),
                _ => Ok(()),
            }
        })?;
        if is_same && free.values().all(Range::is_empty) {
            return Ok(slots);
        }
        Err(Error::Train("the counts changed between two reads; count again".to_owned()))
    }
}

/// Calls `each` with every pre-token, and `check_interrupt` at intervals.
fn for_each(
    pretokens: &dyn PretokenCounts,
    check_interrupt: &mut dyn FnMut() -> Result<()>,
    mut each: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let mut bytes_since_check = 0;
    pretokens.for_each(&mut |pretoken, count| {
        each(pretoken, count)?;
        bytes_since_check += pretoken.len() + 1;
        if bytes_since_check < CHECK_INTERVAL_BYTES {
            return Ok(());
        }
        bytes_since_check = 0;
        check_interrupt()
    })
}

/// The largest block size that wastes little; each region wastes less than one block.
fn block_shift(size: u128, regions: u128) -> u32 {
    let is_small = |&shift: &u32| regions << shift <= size / 8;
    (MIN_SHIFT..=MAX_SHIFT).rev().find(is_small).unwrap_or(MIN_SHIFT)
}

/// The pair counts add up to less than the weighted length of the text: if it fits, they fit.
fn check_total(bytes: u128) -> Result<u64> {
    match u64::try_from(bytes) {
        Ok(bytes) if i64::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err(Error::Train(format!(
            "the counts add up to {bytes} bytes of text, but at most {} are supported; divide all \
             counts by the same number",
            i64::MAX,
        ))),
    }
}
