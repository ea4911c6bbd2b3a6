//! Rank files: lines of base64, a space and a rank. The pattern and the special tokens come from the
//! facts, by SHA-256, from a sidecar, or from the user.

use std::collections::BTreeMap;

use byteweld_core::rewrite::{AddedToken, Normalizer};
use byteweld_core::table::VocabTable;
use byteweld_core::table::hugging_face::Alphabet;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::Result;
use crate::facts::Facts;
use crate::opened::{Opened, Parts};
use crate::pipeline::Splitting;

/// The version of sidecars.
const SIDECAR_VERSION: u32 = 1;

/// What the user says about a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// How a rank file's text is split, if the user has chosen that.
    #[serde(default)]
    pattern: Option<PatternChoice>,
    /// The file beside the rank file that byteweld writes, as text.
    #[serde(default)]
    sidecar: Option<String>,
}

/// The name of a pattern, a regular expression, or none.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PatternChoice {
    Name(String),
    Regex(String),
    None,
}

/// A sidecar, as `formats/_sidecar.py` writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    byteweld: u32,
    pattern: Option<String>,
    special_tokens: BTreeMap<String, u32>,
    #[serde(rename = "roles")]
    _roles: BTreeMap<String, u32>,
    alphabet: String,
    sha256: String,
}

/// Opens a rank file; `None` if nobody says how its text is split.
pub(crate) fn open(file: &[u8], options: Options, facts: &Facts) -> Result<Option<Opened>> {
    let Some(table) = VocabTable::from_ranks(file) else { return Err(find_problem(file)) };
    let digest = hex(&Sha256::digest(file));
    let (splitting, specials) = if let Some(text) = options.sidecar {
        read_sidecar(&text, &digest, facts)?
    } else if let Some(choice) = options.pattern {
        (chosen(choice, facts)?, BTreeMap::new())
    } else if let Some(settings) = facts.rank_files.get(&digest) {
        let name = settings.pattern.clone();
        (chosen(PatternChoice::Name(name), facts)?, settings.special_tokens.clone())
    } else {
        return Ok(None);
    };
    let recovered = table.with_recovered_merges();
    let is_ranked_by_id = recovered.is_none();
    // The first text, in order, of a shared id.
    let mut texts: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (text, &id) in &specials {
        texts.entry(id).or_insert_with(|| text.as_bytes().to_vec());
    }
    let texts: Vec<(u32, Vec<u8>)> = texts.into_iter().collect();
    let table = recovered
        .unwrap_or(table)
        .with_tokens(&texts)
        .ok_or("a special token has the id of another token, or an id far above the others")?;
    let added = specials.into_iter().map(|(text, id)| AddedToken::special(text, id)).collect();
    Opened::new(Parts {
        table,
        added,
        splitting,
        normalizer: Normalizer::default(),
        is_ranked_by_id,
        ignore_merges: false,
        alphabet: Alphabet::Bytes,
        unk: None,
    })
    .map(Some)
}

fn chosen(choice: PatternChoice, facts: &Facts) -> Result<Splitting> {
    match choice {
        PatternChoice::None => Ok(Splitting::Whole),
        PatternChoice::Regex(pattern) if pattern.is_empty() => {
            Err("the pattern is empty; write a regular expression, or choose a name".to_owned())
        }
        PatternChoice::Regex(pattern) => Ok(Splitting::Pattern(pattern)),
        PatternChoice::Name(name) => match facts.patterns.get(&name) {
            Some(pattern) => Ok(Splitting::Pattern(pattern.clone())),
            None => Err(format!("unknown pattern {name:?}")),
        },
    }
}

fn read_sidecar(
    text: &str,
    digest: &str,
    facts: &Facts,
) -> Result<(Splitting, BTreeMap<String, u32>)> {
    let sidecar: Sidecar =
        serde_json::from_str(text).map_err(|error| format!("its sidecar: {error}"))?;
    if sidecar.byteweld != SIDECAR_VERSION {
        return Err(format!(
            "its sidecar has version {}; only {SIDECAR_VERSION} can be read",
            sidecar.byteweld
        ));
    }
    if sidecar.sha256 != digest {
        return Err("its sidecar belongs to a file with another SHA-256".to_owned());
    }
    if sidecar.alphabet != "bytes" {
        return Err(format!("a rank file cannot have the alphabet {:?}", sidecar.alphabet));
    }
    if sidecar.special_tokens.contains_key("") {
        return Err("its sidecar has an empty special token".to_owned());
    }
    let splitting = match sidecar.pattern {
        None => Splitting::Whole,
        Some(pattern) => match facts.regexes.get(&pattern) {
            Some(known) => Splitting::Pattern(known.same_as.clone()),
            None => Splitting::Pattern(pattern),
        },
    };
    Ok((splitting, sidecar.special_tokens))
}

/// Says what is wrong with a rank file.
fn find_problem(file: &[u8]) -> String {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let lines = file.strip_suffix(b"\n").unwrap_or(file).split(|&byte| byte == b'\n');
    for (number, line) in (1..).zip(lines) {
        let space = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (token, rank) = line.split_at(space);
        let is_rank = rank.len() > 1 && rank[1..].iter().all(u8::is_ascii_digit);
        if token.is_empty() || !token.iter().all(is_base64) || !is_rank {
            let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
            return format!(
                "line {number} is {shown:?}; expected a rank file (base64, a space and a rank in \
                 each line) or a tokenizer.json"
            );
        }
    }
    "its ranks do not ascend, have wide gaps, or a token is empty or not canonical base64"
        .to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
