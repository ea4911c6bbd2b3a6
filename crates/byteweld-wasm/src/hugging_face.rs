//! A tokenizer.json of byte-level BPE. The core reads its tokens and merges; the rest is small JSON,
//! read here. Whatever cannot be encoded exactly is refused.
//!
//! The decoder and the post-processor are not read: neither changes the ids of a text.

use std::collections::{BTreeMap, BTreeSet};

use byteweld_core::rewrite::AddedToken;
use byteweld_core::table::{JsonModel, VocabTable};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Result;
use crate::facts::Facts;
use crate::opened::{Alphabet, Opened, Parts};
use crate::pipeline::{NormalizerPart, PreTokenizer, read_normalizer, read_pre_tokenizer};

const VERSION: &str = "1.0";

/// The highest id.
const MAX_ID: u32 = u32::MAX - 1;

/// The file without its tokens and merges.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: Option<String>,
    truncation: Option<IgnoredAny>,
    padding: Option<IgnoredAny>,
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<NormalizerPart>,
    pre_tokenizer: Option<PreTokenizer>,
    #[serde(rename = "post_processor")]
    _post_processor: Option<IgnoredAny>,
    #[serde(rename = "decoder")]
    _decoder: Option<IgnoredAny>,
    model: Model,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f64>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(rename = "vocab")]
    _vocab: IgnoredAny,
    #[serde(rename = "merges")]
    _merges: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    id: u32,
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

/// Opens a tokenizer.json.
pub(crate) fn open(file: &[u8], facts: &Facts) -> Result<Option<Opened>> {
    let Some(model) = JsonModel::from_json(file) else { return Err(find_problem(file)) };
    let document: Document =
        serde_json::from_str(model.rest()).map_err(|error| format!("tokenizer.json: {error}"))?;
    check(&document)?;
    let normalizer = read_normalizer(document.normalizer, facts)?;
    let splitting = read_pre_tokenizer(document.pre_tokenizer, facts)?;
    let added = read_added(document.added_tokens, &model, !normalizer.is_empty())?;
    let ignore_merges = document.model.ignore_merges;
    let alphabet = read_alphabet(&document.model, &model, facts)?;
    let table = read_table(&model, &added, ignore_merges, facts)?;
    drop(model);
    let is_ranked_by_id = false;
    let parts =
        Parts { table, added, splitting, normalizer, is_ranked_by_id, ignore_merges, alphabet };
    Opened::new(parts).map(Some)
}

fn check(document: &Document) -> Result<()> {
    if let Some(version) = document.version.as_deref().filter(|&version| version != VERSION) {
        return Err(format!("its version is {version:?}; only {VERSION:?} can be read"));
    }
    for (name, part) in [("truncation", &document.truncation), ("padding", &document.padding)] {
        if part.is_some() {
            return Err(format!("it has a {name}, which cannot be read yet"));
        }
    }
    let Model { kind, dropout, continuing_subword_prefix, end_of_word_suffix, .. } =
        &document.model;
    if let Some(kind) = kind.as_deref().filter(|&kind| kind != "BPE") {
        return Err(other_model(kind));
    }
    if let Some(dropout) = dropout.filter(|&dropout| dropout != 0.0) {
        return Err(format!("its model has the dropout {dropout}, which cannot be read"));
    }
    for (name, affix) in [
        ("continuing_subword_prefix", continuing_subword_prefix),
        ("end_of_word_suffix", end_of_word_suffix),
    ] {
        if let Some(affix) = affix.as_deref().filter(|affix| !affix.is_empty()) {
            return Err(format!(
                "its model has the {name} {affix:?}: a byte is a different token at one end of a \
                 pre-token, which a byte-level vocabulary cannot express"
            ));
        }
    }
    Ok(())
}

fn other_model(kind: &str) -> String {
    format!("its model is {kind:?}; this page reads byte-level BPE")
}

/// The added tokens, with the ids that the library gives them: the one in the model, or the next
/// after it. It ignores the id in the file.
fn read_added(
    given: Vec<Added>,
    model: &JsonModel,
    has_normalizer: bool,
) -> Result<Vec<AddedToken>> {
    let mut next_id = u32::try_from(model.len()).map_err(|error| error.to_string())?;
    let mut texts = BTreeSet::new();
    let mut tokens = Vec::with_capacity(given.len());
    for Added { id, content: text, single_word, lstrip, rstrip, normalized, special } in given {
        if text.is_empty() || id > MAX_ID {
            return Err(format!("added token {text:?} with id {id} has no text or no valid id"));
        }
        if !texts.insert(text.clone()) {
            return Err(format!("added token {text:?} is listed twice"));
        }
        let id = model.id(&text).unwrap_or_else(|| {
            next_id += 1;
            next_id - 1
        });
        tokens.push(AddedToken { text, id, special, single_word, lstrip, rstrip, normalized });
    }
    // Without a normalizer, the flag decides only which tokens are searched first.
    if !has_normalizer && tokens.iter().all(|token| token.normalized) {
        tokens.iter_mut().for_each(|token| token.normalized = false);
    }
    Ok(tokens)
}

/// Which bytes have a token, and what becomes of the others.
fn read_alphabet(settings: &Model, model: &JsonModel, facts: &Facts) -> Result<Alphabet> {
    let has = |letter: char| model.id(letter.encode_utf8(&mut [0; 4])).is_some();
    let missing = facts.byte_letters.chars().filter(|&letter| !has(letter)).count();
    if missing == 0 {
        return Ok(Alphabet::Bytes);
    }
    let [ck, gpt2] = &facts.ck_letters;
    if ck.chars().any(has) && !gpt2.chars().any(has) {
        return Err(
            "it is written in the letters of ck-bpe-train; `byteweld convert` writes it in \
                    those of Hugging Face's library"
                .to_owned(),
        );
    }
    let Model { unk_token, fuse_unk, byte_fallback, .. } = settings;
    if *fuse_unk && unk_token.is_some() {
        return Err("its model has fuse_unk and does not cover all bytes".to_owned());
    }
    if *byte_fallback && (0..=u8::MAX).any(|byte| model.id(&format!("<0x{byte:02X}>")).is_some()) {
        return Err("its model has byte_fallback and tokens for it".to_owned());
    }
    let unk = unk_token.as_deref().map(|unk| {
        model.id(unk).ok_or_else(|| {
            format!("{missing} of 256 bytes have no token, and unk_token {unk:?} is not one either")
        })
    });
    Ok(Alphabet::Partial { unk: unk.transpose()? })
}

/// The bytes of all tokens, and the merges.
fn read_table(
    model: &JsonModel,
    added: &[AddedToken],
    ignore_merges: bool,
    facts: &Facts,
) -> Result<VocabTable> {
    let letters: BTreeMap<char, u8> = facts.byte_letters.chars().zip(0..=u8::MAX).collect();
    let texts: BTreeSet<&str> = added.iter().map(|token| &token.text[..]).collect();
    let mut given: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    // Tokens that are not in byte letters: the library never finds them. The engine would with
    // `ignore_merges`, or if they are single bytes.
    for text in model.foreign().filter(|text| !texts.contains(text)) {
        if ignore_merges || text.len() < 2 {
            return Err(format!("token {text:?} is not written in byte letters"));
        }
        if let Some(id) = model.id(text) {
            given.insert(id, text.as_bytes().to_vec());
        }
    }
    let mut new = 0;
    for token in added {
        let own = token.text.as_bytes();
        if model.id(&token.text).is_none() {
            new += usize::from(!given.contains_key(&token.id));
            if *given.entry(token.id).or_insert_with(|| own.to_vec()) != own {
                return Err(shared_id(token));
            }
            if let [byte] = own
                && let Some(letter) = facts.byte_letters.chars().nth(usize::from(*byte))
                && model.id(letter.encode_utf8(&mut [0; 4])).is_none()
            {
                let text = &token.text;
                return Err(format!(
                    "added token {text:?} is a byte for which the model has no token"
                ));
            }
            continue;
        }
        let spelled: Option<Vec<u8>> =
            token.text.chars().map(|letter| letters.get(&letter).copied()).collect();
        let is_key =
            |spelled: &Vec<u8>| model.is_made(&token.text) || spelled.len() == 1 || ignore_merges;
        if token.single_word && ignore_merges && spelled.is_some() {
            return Err(format!(
                "added token {:?} has single_word, but a pre-token inside a word could also \
                 become it",
                token.text
            ));
        }
        let bytes = spelled.filter(is_key).unwrap_or_else(|| own.to_vec());
        if token.special && bytes != own {
            return Err(format!(
                "special token {:?} is also how other bytes are written in byte letters",
                token.text
            ));
        }
        given.insert(token.id, bytes);
    }
    let table = model
        .table(given.into_iter().collect())
        .ok_or("a token is empty, or its id is far above the others")?;
    if table.len() == model.len() + new {
        return Ok(table);
    }
    // An added token that is not in the model has the id of one that is.
    let is_taken = |token: &&AddedToken| model.id(&token.text).is_none();
    Err(added.iter().find(is_taken).map_or_else(String::new, shared_id))
}

fn shared_id(token: &AddedToken) -> String {
    format!("added token {:?} shares its id {} with another token", token.text, token.id)
}

/// What is needed to say why a file cannot be read.
#[derive(Deserialize)]
struct Sketch {
    model: ModelSketch,
}

#[derive(Deserialize)]
struct ModelSketch {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "vocab")]
    _vocab: IgnoredAny,
    #[serde(rename = "merges")]
    _merges: Option<IgnoredAny>,
}

/// Says what is wrong with a file whose model the core did not read.
fn find_problem(file: &[u8]) -> String {
    match serde_json::from_slice::<Sketch>(file) {
        Err(error) => format!("expected a tokenizer.json: {error}"),
        Ok(Sketch { model: ModelSketch { kind: Some(kind), .. } }) if kind != "BPE" => {
            other_model(&kind)
        }
        Ok(_) => {
            "its tokens or merges are not what Hugging Face's library writes (a repeated token or \
                  id, a merge of unknown tokens); `byteweld inspect` says what is wrong"
                .to_owned()
        }
    }
}
