//! How text is rewritten and split before it is merged, and what is added around its ids.

use std::collections::BTreeMap;

use super::json::{Kind, Value, show, wrong};
use super::parts::{Part, id as read_id, list, steps, unreadable};
use crate::error::Result;
use crate::rewrite::{Form, SplitBehavior};

const BYTE_LEVEL_KEYS: [&str; 4] = ["type", "add_prefix_space", "trim_offsets", "use_regex"];
const TEMPLATE_KEYS: [&str; 7] =
    ["type", "add_prefix_space", "trim_offsets", "use_regex", "single", "pair", "special_tokens"];
const TWO_KEYS: [&str; 5] = ["type", "sep", "cls", "trim_offsets", "add_prefix_space"];

/// How many ids may be added around a text.
const MAX_TEMPLATE: usize = 1 << 16;

const BEHAVIORS: [(&str, SplitBehavior); 5] = [
    ("Isolated", SplitBehavior::Isolated),
    ("Removed", SplitBehavior::Removed),
    ("MergedWithPrevious", SplitBehavior::MergedWithPrevious),
    ("MergedWithNext", SplitBehavior::MergedWithNext),
    ("Contiguous", SplitBehavior::Contiguous),
];

const FORMS: [(&str, Rewrite); 5] = [
    ("NFC", Rewrite::Form(Form::Nfc)),
    ("NFD", Rewrite::Form(Form::Nfd)),
    ("NFKC", Rewrite::Form(Form::Nfkc)),
    ("NFKD", Rewrite::Form(Form::Nfkd)),
    ("Lowercase", Rewrite::Lowercase),
];

/// What a step of the pipeline looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// GPT-2's pattern, which a ByteLevel implies.
    ByteLevel,
    /// The class of the library's Digits.
    Digits,
    /// The class of the library's Punctuation.
    Punctuation,
    /// A regular expression of Oniguruma.
    Regex(String),
    /// A regular expression that matches a text literally.
    Literal(String),
}

/// A step of a pre-tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Prepends a space to every piece that does not start with one.
    PrefixSpace,
    /// Later steps see each byte as its byte letter.
    ByteLetters,
    /// Splits at the matches of a pattern; the flag swaps matches and the text between them.
    At(Pattern, SplitBehavior, bool),
}

/// A step of a normalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// A Unicode normal form.
    Form(Form),
    /// Lowercases each character.
    Lowercase,
    /// Replaces every match of a pattern.
    Replace(Pattern, String),
}

/// The ids before and after those of a text.
pub type Template = (Vec<u32>, Vec<u32>);

/// Reads the pre-tokenizer; also returns whether it has a ByteLevel.
pub(super) fn read_pre_tokenizer(value: Option<&Value<'_>>) -> Result<(Vec<Split>, bool)> {
    let mut chain = Vec::new();
    let mut is_byte_level = false;
    for (kind, step) in steps(value, "pre_tokenizer", "pretokenizers")? {
        match kind {
            "ByteLevel" => {
                if std::mem::replace(&mut is_byte_level, true) {
                    return Err(unreadable("its pre_tokenizer has ByteLevel twice"));
                }
                step.check_keys(&BYTE_LEVEL_KEYS)?;
                step.flag_or("trim_offsets", true)?;
                if step.flag("add_prefix_space")? {
                    chain.push(Split::PrefixSpace);
                }
                if step.flag_or("use_regex", true)? {
                    chain.push(Split::At(Pattern::ByteLevel, SplitBehavior::Isolated, false));
                }
                chain.push(Split::ByteLetters);
            }
            "Split" => {
                step.check_keys(&["type", "pattern", "behavior", "invert"])?;
                let pattern = read_pattern(&step)?;
                chain.push(Split::At(pattern, read_behavior(&step)?, step.flag("invert")?));
            }
            "Digits" => {
                step.check_keys(&["type", "individual_digits"])?;
                let behavior = match step.flag("individual_digits")? {
                    true => SplitBehavior::Isolated,
                    false => SplitBehavior::Contiguous,
                };
                chain.push(Split::At(Pattern::Digits, behavior, false));
            }
            "Punctuation" => {
                step.check_keys(&["type", "behavior"])?;
                let behavior = match step.find("behavior") {
                    None => SplitBehavior::Isolated,
                    Some(_) => read_behavior(&step)?,
                };
                chain.push(Split::At(Pattern::Punctuation, behavior, false));
            }
            other => return Err(unreadable(&format!("its pre_tokenizer uses {}", show(other)))),
        }
    }
    Ok((chain, is_byte_level))
}

fn read_behavior(step: &Part<'_, '_>) -> Result<SplitBehavior> {
    let name = step.text("behavior")?;
    let known = BEHAVIORS.iter().find(|(known, _)| *known == name);
    known.map(|(_, behavior)| *behavior).ok_or_else(|| {
        let known = BEHAVIORS.map(|(name, _)| name).join(", ");
        let name = show(name);
        wrong(format!("the behavior of {} is {name}; expected one of {known}", step.what))
    })
}

/// The `pattern` of a step, a Regex or a String.
fn read_pattern(step: &Part<'_, '_>) -> Result<Pattern> {
    let source = step.require("pattern")?;
    let part = Part::of(source, format!("the pattern of {}", step.what))?;
    let [(kind @ ("Regex" | "String"), text)] =
        &part.members.iter().map(|(kind, text)| (&kind[..], text)).collect::<Vec<_>>()[..]
    else {
        return Err(unreadable(&format!("{} has the pattern {}", step.what, source.show())));
    };
    match &text.kind {
        Kind::String(text) if text.is_empty() => Err(part.other(kind, "a non-empty string")),
        Kind::String(text) if *kind == "Regex" => Ok(Pattern::Regex(text.clone())),
        Kind::String(text) => Ok(Pattern::Literal(escape(text))),
        _ => Err(part.other(kind, "a non-empty string")),
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

/// Reads the normalizer.
pub(super) fn read_normalizer(value: Option<&Value<'_>>) -> Result<Vec<Rewrite>> {
    let read = |(kind, step): &(&str, Part<'_, '_>)| {
        if let Some((_, form)) = FORMS.iter().find(|(known, _)| known == kind) {
            step.check_keys(&["type"])?;
            return Ok(form.clone());
        }
        if *kind != "Replace" {
            return Err(unreadable(&format!("its normalizer uses {}", show(kind))));
        }
        step.check_keys(&["type", "pattern", "content"])?;
        Ok(Rewrite::Replace(read_pattern(step)?, step.text("content")?.to_owned()))
    };
    steps(value, "normalizer", "normalizers")?.iter().map(read).collect()
}

/// Checks the decoder, which does not change ids.
pub(super) fn check_decoder(value: Option<&Value<'_>>) -> Result<()> {
    let Some(value) = value else { return Ok(()) };
    let decoder = Part::of(value, "its decoder")?;
    match decoder.text("type")? {
        "ByteLevel" | "Fuse" => decoder.check_keys(&BYTE_LEVEL_KEYS),
        kind => Err(unreadable(&format!("its decoder is {}", show(kind)))),
    }
}

/// Reads the post-processor.
pub(super) fn read_post_processor(value: Option<&Value<'_>>) -> Result<Template> {
    let mut template = Template::default();
    for (kind, step) in steps(value, "post_processor", "processors")? {
        if kind == "ByteLevel" {
            step.check_keys(&BYTE_LEVEL_KEYS)?; // it changes only offsets
            continue;
        }
        if template != Template::default() {
            // The library itself fails on such files.
            return Err(unreadable("its post_processor adds tokens twice"));
        }
        template = match kind {
            "RobertaProcessing" | "BertProcessing" => {
                step.check_keys(&TWO_KEYS)?;
                (vec![read_two(&step, "cls")?], vec![read_two(&step, "sep")?])
            }
            "TemplateProcessing" => {
                step.check_keys(&TEMPLATE_KEYS)?;
                read_template(&step)?
            }
            other => {
                return Err(unreadable(&format!("its post_processor uses {}", show(other))));
            }
        };
    }
    Ok(template)
}

/// The id of `cls` or `sep`, which is a pair of text and id.
fn read_two(step: &Part<'_, '_>, key: &str) -> Result<u32> {
    let pair = step.require(key)?;
    match list(pair, &show(key))? {
        [Value { kind: Kind::String(_), .. }, id] => read_id(id, "a template"),
        _ => Err(wrong(format!("'{key}' is {}; expected a token and its id", pair.show()))),
    }
}

fn read_template(step: &Part<'_, '_>) -> Result<Template> {
    let tokens = Part::of(step.require("special_tokens")?, "'special_tokens' of a template")?;
    let tokens: BTreeMap<&str, &Value<'_>> =
        tokens.members.iter().map(|(name, token)| (&name[..], token)).collect();
    let mut around: Vec<Vec<u32>> = vec![Vec::new()];
    let mut count = 0;
    for piece in list(step.require("single")?, "'single'")? {
        let members = Part::of(piece, "a piece of a template")?.members;
        let unknown =
            || unreadable(&format!("its template for one text has the piece {}", piece.show()));
        let [(kind, inner)] = &members[..] else { return Err(unknown()) };
        let inner = Part::of(inner, format!("the piece {} of a template", show(kind)))?;
        let name = inner.text("id")?;
        match &kind[..] {
            "Sequence" if name == "A" => around.push(Vec::new()),
            "SpecialToken" => {
                let ids = special_ids(name, &tokens)?;
                count += ids.len();
                if count > MAX_TEMPLATE {
                    let what = format!("its template has more than {MAX_TEMPLATE} tokens");
                    return Err(unreadable(&what));
                }
                around.last_mut().into_iter().for_each(|last| last.extend(&ids));
            }
            _ => return Err(unknown()),
        }
    }
    match &mut around[..] {
        [before, after] => Ok((std::mem::take(before), std::mem::take(after))),
        _ => {
            let texts = around.len() - 1;
            Err(unreadable(&format!("its template has the text {texts} times")))
        }
    }
}

fn special_ids(name: &str, tokens: &BTreeMap<&str, &Value<'_>>) -> Result<Vec<u32>> {
    let shown = show(name);
    let token = tokens.get(name).ok_or_else(|| {
        let rest = "but its 'special_tokens' do not";
        wrong(format!("a template has the special token {shown}, {rest}"))
    })?;
    let token = Part::of(token, format!("special token {shown} of a template"))?;
    let ids = list(token.require("ids")?, "'ids' of a template")?;
    ids.iter().map(|id| read_id(id, "a template")).collect::<Result<Vec<u32>>>()
}
