//! The normalizer and the pre-tokenizer of a tokenizer.json, as far as the engine can run them.

use byteweld_core::pretoken::Pretokenizer;
use byteweld_core::rewrite::{
    Normalizer, NormalizerStep, SplitBehavior, SplitChain, SplitStep, check_steps,
};
use byteweld_core::table::hugging_face::{Pattern, Rewrite, Split};

use crate::Result;
use crate::facts::Facts;

/// How text is split into pre-tokens.
pub(crate) enum Splitting {
    /// It is not.
    Whole,
    /// By one pattern.
    Pattern(String),
    /// By a chain of steps.
    Steps(Vec<Step>),
}

/// A step that is not compiled yet.
pub(crate) enum Step {
    Split { pattern: String, behavior: SplitBehavior, invert: bool },
    PrefixSpace,
    ByteLetters,
}

// ---------------------------------------------------------------------- reading

/// Returns how the steps of a file split text.
pub(crate) fn splitting(splits: &[Split], facts: &Facts) -> Result<Splitting> {
    let step = |split: &Split| {
        Ok(match split {
            Split::PrefixSpace => Step::PrefixSpace,
            Split::ByteLetters => Step::ByteLetters,
            Split::At(pattern, behavior, invert) => {
                let (pattern, matches_everywhere) = look_up(pattern, "pre_tokenizer Split", facts)?;
                let (behavior, invert) = match behavior {
                    // There is nothing between the matches.
                    SplitBehavior::Removed if *invert && matches_everywhere => {
                        (SplitBehavior::Isolated, false)
                    }
                    // It makes no difference here.
                    SplitBehavior::Isolated | SplitBehavior::Contiguous => (*behavior, false),
                    _ => (*behavior, *invert),
                };
                Step::Split { pattern, behavior, invert }
            }
        })
    };
    Ok(canonical(splits.iter().map(step).collect::<Result<_>>()?))
}

/// A chain of one isolating split is a pattern, for which the engine has faster ways.
fn canonical(mut steps: Vec<Step>) -> Splitting {
    while matches!(steps.last(), Some(Step::ByteLetters)) {
        steps.pop(); // no later step sees the letters
    }
    match &mut steps[..] {
        [] => Splitting::Whole,
        [Step::Split { pattern, behavior: SplitBehavior::Isolated, .. }] => {
            Splitting::Pattern(std::mem::take(pattern))
        }
        _ => Splitting::Steps(steps),
    }
}

/// Returns the steps of a normalizer, compiled.
pub(crate) fn normalizer(steps: Vec<Rewrite>, facts: &Facts) -> Result<Normalizer> {
    check_steps(steps.len(), "normalizer").map_err(|error| error.to_string())?;
    let step = |step| {
        Ok(match step {
            Rewrite::Form(form) => NormalizerStep::Form(form),
            Rewrite::Lowercase => NormalizerStep::Lowercase,
            Rewrite::Replace(pattern, content) => {
                let (pattern, _) = look_up(&pattern, "normalizer Replace", facts)?;
                NormalizerStep::Replace { pattern: compile(&pattern)?, content }
            }
        })
    };
    Ok(Normalizer::new(steps.into_iter().map(step).collect::<Result<_>>()?))
}

/// The regular expression of a pattern, and whether it is known to match at every character.
fn look_up(pattern: &Pattern, what: &str, facts: &Facts) -> Result<(String, bool)> {
    let source = match pattern {
        Pattern::ByteLevel => &facts.byte_level,
        Pattern::Digits => &facts.digits,
        Pattern::Punctuation => &facts.punctuation,
        Pattern::Literal(source) => source,
        Pattern::Regex(source) => {
            let known = facts.regexes.get(source).ok_or_else(|| {
                let shown: String = source.chars().take(200).collect();
                format!(
                    "the pattern of the {what} is {shown:?}, which this page does not know; \
                     `byteweld studio` checks any pattern"
                )
            })?;
            return Ok((known.same_as.clone(), known.matches_everywhere));
        }
    };
    Ok((source.clone(), false))
}

// ---------------------------------------------------------------------- compiling

/// Compiles how text is split: one pattern, or a chain.
pub(crate) fn compile_splitting(splitting: &Splitting) -> Result<(Option<String>, SplitChain)> {
    match splitting {
        Splitting::Whole => Ok((None, SplitChain::default())),
        Splitting::Pattern(pattern) => Ok((Some(pattern.clone()), SplitChain::default())),
        Splitting::Steps(steps) => {
            check_steps(steps.len(), "chain of splits").map_err(|error| error.to_string())?;
            let steps: Result<Vec<SplitStep>> = steps.iter().map(compile_step).collect();
            Ok((None, SplitChain::new(steps?)))
        }
    }
}

fn compile_step(step: &Step) -> Result<SplitStep> {
    Ok(match step {
        Step::PrefixSpace => SplitStep::PrefixSpace,
        Step::ByteLetters => SplitStep::ByteLetters,
        Step::Split { pattern, behavior, invert } => {
            SplitStep::Split { pattern: compile(pattern)?, behavior: *behavior, invert: *invert }
        }
    })
}

fn compile(pattern: &str) -> Result<Pretokenizer> {
    Pretokenizer::new(Some(pattern)).map_err(|error| error.to_string())
}
