//! Converts a `byteweld.Vocabulary` to the engine's input.

use std::collections::HashMap;

use byteweld_core::encode::{self as core, Gaps, Ranking};
use byteweld_core::pretoken::Pretokenizer;
use byteweld_core::rewrite::{
    AddedToken, Normalizer, NormalizerStep, SplitBehavior, SplitChain, SplitStep, check_steps,
};
use pyo3::prelude::*;

use crate::convert::{merges, tokens};
use crate::error::{check_memory, raise};
use crate::names::ByName;
use crate::table::Table;

/// What `Vocabulary.traits()` returns.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Traits {
    added_tokens: Vec<Added>,
    pattern: Option<String>,
    steps: Vec<StepArgument>,
    normalizer: Vec<NormalArgument>,
    roles: HashMap<String, u32>,
    alphabet: ByName<Gaps>,
    ranking: ByName<Ranking>,
    ignore_merges: bool,
}

/// An added token: text, id, special, single_word, lstrip, rstrip, normalized.
pub(crate) type Added = (String, u32, bool, bool, bool, bool, bool);

pub(crate) fn added_token(added: Added) -> AddedToken {
    let (text, id, special, single_word, lstrip, rstrip, normalized) = added;
    AddedToken { text, id, special, single_word, lstrip, rstrip, normalized }
}

/// A step: its name, or the pattern, behavior and invert of a split.
#[derive(FromPyObject)]
enum StepArgument {
    Mark(ByName<SplitStep>),
    Split(String, ByName<SplitBehavior>, bool),
}

impl StepArgument {
    fn into_step(self) -> byteweld_core::Result<SplitStep> {
        Ok(match self {
            StepArgument::Mark(ByName(step)) => step,
            StepArgument::Split(pattern, ByName(behavior), invert) => {
                SplitStep::Split { pattern: Pretokenizer::new(Some(&pattern))?, behavior, invert }
            }
        })
    }
}

/// A normalizer: its name, or the pattern and content of a replacement.
#[derive(FromPyObject)]
enum NormalArgument {
    Form(ByName<NormalizerStep>),
    Replace(String, String),
}

impl NormalArgument {
    fn into_step(self) -> byteweld_core::Result<NormalizerStep> {
        Ok(match self {
            NormalArgument::Form(ByName(step)) => step,
            NormalArgument::Replace(pattern, content) => {
                NormalizerStep::Replace { pattern: Pretokenizer::new(Some(&pattern))?, content }
            }
        })
    }
}

/// What is copied of a token and its merge, except its bytes.
const COPIED_BYTES: usize = 128;

/// Tokens as (id, bytes).
type Pairs = Vec<(u32, Vec<u8>)>;

fn slices(tokens: &Pairs) -> Vec<(u32, &[u8])> {
    tokens.iter().map(|(id, token)| (*id, &token[..])).collect()
}

/// Prepares a vocabulary; also returns the text of each of its special tokens.
pub(crate) fn prepare(vocab: &Bound<'_, PyAny>) -> PyResult<(core::Encoder, Vec<String>)> {
    let py = vocab.py();
    let traits: Traits = vocab.call_method0("traits")?.extract()?;
    // The largest copies; the encoder checks what it needs itself.
    check_memory(py, COPIED_BYTES * vocab.len()?)?;
    let added_bytes = tokens(&vocab.call_method0("not_ordinary")?)?;
    let looks_up_first =
        traits.ignore_merges || vocab.getattr("_makes_every_token")?.is_truthy()?;
    let table: Option<Py<Table>> = vocab.getattr("_table")?.extract()?;
    let ordinary;
    let (all, all_merges) = match &table {
        Some(table) => {
            let table = table.get();
            (table.ordinary(&added_bytes), table.merges_in_order().to_vec())
        }
        None => {
            ordinary = tokens(&vocab.call_method0("ordinary")?)?;
            (slices(&ordinary), merges(&vocab.getattr("_merges")?)?)
        }
    };
    let added: Vec<AddedToken> = traits.added_tokens.into_iter().map(added_token).collect();
    let specials = added.iter().filter(|token| token.special).map(|token| token.text.clone());
    let specials = specials.collect();
    let layout = table.as_ref().and_then(|table| table.get().layout());
    let prepared = py.detach(|| {
        // Before their patterns are compiled.
        check_steps(traits.normalizer.len(), "normalizer")?;
        check_steps(traits.steps.len(), "chain of splits")?;
        let steps = traits.steps.into_iter().map(StepArgument::into_step).collect::<Result<_, _>>();
        let normalizer =
            traits.normalizer.into_iter().map(NormalArgument::into_step).collect::<Result<_, _>>();
        core::Encoder::new(core::Vocabulary {
            tokens: all,
            merges: all_merges,
            layout,
            ranking: match traits.ranking.0 {
                Ranking::Merges if looks_up_first => Ranking::MergesAfterLookup,
                ranking => ranking,
            },
            added,
            added_bytes: slices(&added_bytes),
            pattern: traits.pattern,
            steps: SplitChain::new(steps?),
            normalizer: Normalizer::new(normalizer?),
            gaps: traits.alphabet.0,
            unk: traits.roles.get("unk").copied(),
        })
    });
    Ok((prepared.map_err(|error| raise(py, error))?, specials))
}
