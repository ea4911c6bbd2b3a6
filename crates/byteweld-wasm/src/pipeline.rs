//! The normalizer and the pre-tokenizer of a tokenizer.json, as far as the engine can run them.

use byteweld_core::pretoken::Pretokenizer;
use byteweld_core::rewrite::{
    Form, Normalizer, NormalizerStep, SplitBehavior, SplitChain, SplitStep, check_steps,
};
use serde::Deserialize;

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

/// A pattern, and whether it matches at every character.
pub(crate) struct Split {
    pub(crate) pattern: String,
    pub(crate) matches_everywhere: bool,
}

/// A step that is not compiled yet.
pub(crate) enum Step {
    Split { pattern: String, behavior: SplitBehavior, invert: bool },
    PrefixSpace,
    ByteLetters,
}

// ---------------------------------------------------------------------- as written in a file

/// A pattern: a regular expression, or text that is matched literally.
#[derive(Deserialize)]
pub(crate) enum Pattern {
    Regex(String),
    String(String),
}

/// What a Split does with a match.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
pub(crate) enum Behavior {
    #[default]
    Isolated,
    Removed,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// A pre-tokenizer. Fields without a default are required, and there are no others.
#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub(crate) enum PreTokenizer {
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
    ByteLevel {
        add_prefix_space: bool,
        #[serde(default, rename = "trim_offsets")]
        _trim_offsets: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    Split {
        pattern: Pattern,
        behavior: Behavior,
        invert: bool,
    },
    Digits {
        individual_digits: bool,
    },
    Punctuation {
        #[serde(default)]
        behavior: Behavior,
    },
}

/// In old files GPT-2's pattern is implied.
fn yes() -> bool {
    true
}

/// A normalizer.
#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub(crate) enum NormalizerPart {
    Sequence {
        normalizers: Vec<NormalizerPart>,
    },
    // With braces, so that other fields are rejected.
    #[serde(rename = "NFC")]
    Nfc {},
    #[serde(rename = "NFD")]
    Nfd {},
    #[serde(rename = "NFKC")]
    Nfkc {},
    #[serde(rename = "NFKD")]
    Nfkd {},
    Lowercase {},
    Replace {
        pattern: Pattern,
        content: String,
    },
}

// ---------------------------------------------------------------------- reading

/// Returns how a pre-tokenizer splits text.
pub(crate) fn read_pre_tokenizer(given: Option<PreTokenizer>, facts: &Facts) -> Result<Splitting> {
    let mut steps = Vec::new();
    let mut byte_levels = 0;
    let mut pending: Vec<PreTokenizer> = given.into_iter().collect();
    while let Some(part) = pending.pop() {
        match part {
            PreTokenizer::Sequence { pretokenizers } => {
                pending.extend(pretokenizers.into_iter().rev());
            }
            PreTokenizer::ByteLevel { add_prefix_space, use_regex, .. } => {
                byte_levels += 1;
                if add_prefix_space {
                    steps.push(Step::PrefixSpace);
                }
                if use_regex {
                    let pattern = facts.byte_level.clone();
                    let behavior = SplitBehavior::Isolated;
                    steps.push(Step::Split { pattern, behavior, invert: false });
                }
                steps.push(Step::ByteLetters);
            }
            PreTokenizer::Split { pattern, behavior, invert } => {
                let split = read_pattern(pattern, "the pre_tokenizer Split", facts)?;
                steps.push(split_step(split, behavior, invert));
            }
            PreTokenizer::Digits { individual_digits } => {
                let behavior =
                    if individual_digits { Behavior::Isolated } else { Behavior::Contiguous };
                steps.push(split_step(literal(&facts.digits), behavior, false));
            }
            PreTokenizer::Punctuation { behavior } => {
                steps.push(split_step(literal(&facts.punctuation), behavior, false));
            }
        }
    }
    match byte_levels {
        1 => Ok(canonical(steps)),
        0 => Err("its pre_tokenizer has no ByteLevel, so it is not byte-level BPE".to_owned()),
        _ => Err("its pre_tokenizer has ByteLevel twice".to_owned()),
    }
}

/// A pattern of which nothing more is known.
fn literal(pattern: &str) -> Split {
    Split { pattern: pattern.to_owned(), matches_everywhere: false }
}

fn split_step(split: Split, behavior: Behavior, invert: bool) -> Step {
    let Split { pattern, matches_everywhere } = split;
    let (behavior, invert) = match behavior {
        // There is nothing between the matches.
        Behavior::Removed if invert && matches_everywhere => (SplitBehavior::Isolated, false),
        Behavior::Removed => (SplitBehavior::Removed, invert),
        Behavior::MergedWithPrevious => (SplitBehavior::MergedWithPrevious, invert),
        Behavior::MergedWithNext => (SplitBehavior::MergedWithNext, invert),
        // It makes no difference here.
        Behavior::Isolated => (SplitBehavior::Isolated, false),
        Behavior::Contiguous => (SplitBehavior::Contiguous, false),
    };
    Step::Split { pattern, behavior, invert }
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

/// Returns the steps of a normalizer, in order.
pub(crate) fn read_normalizer(
    given: Option<NormalizerPart>,
    facts: &Facts,
) -> Result<Vec<NormalizerStep>> {
    let mut parts = Vec::new();
    let mut pending: Vec<NormalizerPart> = given.into_iter().collect();
    while let Some(part) = pending.pop() {
        match part {
            NormalizerPart::Sequence { normalizers } => {
                pending.extend(normalizers.into_iter().rev());
            }
            part => parts.push(part),
        }
    }
    check_steps(parts.len(), "normalizer").map_err(|error| error.to_string())?;
    parts.into_iter().map(|part| normalizer_step(part, facts)).collect()
}

fn normalizer_step(part: NormalizerPart, facts: &Facts) -> Result<NormalizerStep> {
    Ok(match part {
        NormalizerPart::Nfc {} => NormalizerStep::Form(Form::Nfc),
        NormalizerPart::Nfd {} => NormalizerStep::Form(Form::Nfd),
        NormalizerPart::Nfkc {} => NormalizerStep::Form(Form::Nfkc),
        NormalizerPart::Nfkd {} => NormalizerStep::Form(Form::Nfkd),
        NormalizerPart::Lowercase {} => NormalizerStep::Lowercase,
        NormalizerPart::Replace { pattern, content } => {
            let split = read_pattern(pattern, "the normalizer Replace", facts)?;
            NormalizerStep::Replace { pattern: compile(&split.pattern)?, content }
        }
        NormalizerPart::Sequence { .. } => return Err("a Sequence is not a step".to_owned()),
    })
}

fn read_pattern(pattern: Pattern, what: &str, facts: &Facts) -> Result<Split> {
    match pattern {
        Pattern::Regex(text) | Pattern::String(text) if text.is_empty() => {
            Err(format!("the pattern of {what} is empty"))
        }
        Pattern::String(text) => Ok(literal(&escape(&text))),
        Pattern::Regex(source) => facts.regex(&source).ok_or_else(|| {
            let shown: String = source.chars().take(200).collect();
            format!(
                "the pattern of {what} is {shown:?}, which this page does not know; `byteweld studio` \
                 checks any pattern"
            )
        }),
    }
}

/// A regular expression that matches a text literally.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
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

/// A normalizer of these steps.
pub(crate) fn normalizer(steps: Vec<NormalizerStep>) -> Normalizer {
    Normalizer::new(steps)
}
