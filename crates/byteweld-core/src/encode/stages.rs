//! The stages of encoding by themselves, for `benches/stages`.

use super::Encoder;
use super::cache::{Batch, Cache, CacheTier, MAX_BATCH, Pretokens};
use crate::cpu::{self, Work};
use crate::error::Result;
use crate::pretoken::{Bounds, Budget};
use crate::watch::Watch;

impl Encoder {
    /// Splits a text into pre-tokens, and if `with_keys`, makes their keys and prefetches their
    /// slots. Returns the number of pre-tokens. (The keys of long ones are not made.)
    pub fn run_stage(&self, text: &[u8], with_keys: bool) -> Result<usize> {
        self.pool.with_scratch(|scratch| {
            let mut budget = Budget::new(Watch::default());
            let (mut bounds, mut total) = (Bounds::default(), 0);
            scratch.cache.prepare();
            let mut split = self.pretokenizer.split(text, &mut budget, &mut bounds)?;
            while let Some((base, bounds)) = split.next_batch()? {
                let count = bounds.len() - 1;
                total += count;
                for first in (0..count).step_by(MAX_BATCH).filter(|_| with_keys) {
                    let bounds = &bounds[first..=count.min(first + MAX_BATCH)];
                    let (cache, batch) = (&scratch.cache, &mut scratch.batch);
                    let pretokens = Pretokens { text: &text[base..], bounds, long: &[] };
                    cpu::run(MakeKeys { batch, cache, pretokens });
                }
            }
            Ok(total)
        })
    }
}

struct MakeKeys<'b> {
    batch: &'b mut Batch,
    cache: &'b Cache,
    pretokens: Pretokens<'b>,
}

impl<T: CacheTier> Work<T> for MakeKeys<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, tier: T) {
        self.batch.make_keys::<false>(tier, self.cache, self.pretokens);
    }
}
