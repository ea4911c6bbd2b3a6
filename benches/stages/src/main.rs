//! Times the stages of encoding on one core, in one process: splitting into pre-tokens, the same with
//! keys and prefetching, everything with a warm cache, and everything with an empty one.
//!
//! `stages RANK_FILE PATTERN TEXT_FILE [TIER]`: the text is encoded as documents of about 4 KB.

use std::process::ExitCode;
use std::time::Instant;

use byteweld_core::cpu::Tier;
use byteweld_core::encode::{Allowed, Encoder, Ranking, Vocabulary, recover_merges};

const DOCUMENT_BYTES: usize = 4096;
const ROUNDS: usize = 15;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("stages: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [ranks, pattern, text, tier @ ..] = arguments else {
        return Err("usage: stages RANK_FILE PATTERN TEXT_FILE [TIER]".to_owned());
    };
    if let [name] = tier {
        let known = Tier::available().into_iter().find(|tier| tier.name() == name);
        known.ok_or_else(|| format!("this processor does not have {name}"))?.limit();
    }
    let encoder = load(&read(ranks)?, pattern)?;
    let text = read(text)?;
    let documents = documents(&text);
    println!(
        "tier {}, {} bytes, {} documents",
        Tier::current().name(),
        text.len(),
        documents.len()
    );
    let encode = |encoder: &Encoder| {
        let mut ids = Vec::new();
        documents.iter().try_fold(0, |total, document| {
            ids.clear();
            encoder.encode(document, &Allowed::None, &mut ids)?;
            Ok(total + ids.len())
        })
    };
    let stage = |with_keys: bool| {
        let each = |total, document: &&[u8]| Ok(total + encoder.run_stage(document, with_keys)?);
        documents.iter().try_fold(0, each)
    };
    let measure = |name: &str, work: &mut dyn FnMut() -> byteweld_core::Result<usize>| {
        let mut best = f64::INFINITY;
        let mut result = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            result = work().map_err(|error| error.to_string())?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let nanoseconds = best * 1e9 / text.len() as f64;
        println!("{name:28} {nanoseconds:6.3} ns/B {:7.0} MB/s  {result}", 1e3 / nanoseconds);
        Ok::<_, String>(())
    };
    measure("everything, empty cache", &mut || {
        encoder.clear_cache();
        encode(&encoder)
    })?;
    measure("pre-tokens", &mut || stage(false))?;
    measure("pre-tokens, keys, prefetch", &mut || stage(true))?;
    measure("everything, warm cache", &mut || encode(&encoder))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{path}: {error}"))
}

fn load(ranks: &[u8], pattern: &str) -> Result<Encoder, String> {
    let lines = ranks.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let tokens: Option<Vec<(u32, Vec<u8>)>> = lines
        .map(|line| {
            let space = line.iter().position(|&byte| byte == b' ')?;
            let rank = std::str::from_utf8(&line[space + 1..]).ok()?.trim().parse().ok()?;
            Some((rank, decode_base64(&line[..space])?))
        })
        .collect();
    let tokens = tokens.ok_or("not a rank file: expected base64, a space and a rank")?;
    let merges = recover_merges(tokens.clone()).map_err(|error| error.to_string())?;
    let ranking = if merges.is_some() { Ranking::MergesAfterLookup } else { Ranking::Ids };
    let mut vocabulary = Vocabulary::new(tokens, merges.unwrap_or_default(), ranking);
    vocabulary.pattern = Some(pattern.to_owned());
    Encoder::new(vocabulary).map_err(|error| error.to_string())
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.iter().filter(|&&byte| byte != b'=') {
        let digit = DIGITS.iter().position(|digit| digit == byte)? as u32;
        (bits, count) = (bits << 6 | digit, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// A text in documents of about the same size, which end with a character.
fn documents(text: &[u8]) -> Vec<&[u8]> {
    let mut documents = Vec::new();
    let mut rest = text;
    while rest.len() > DOCUMENT_BYTES {
        let is_start = |at: &usize| rest.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        let end = (DOCUMENT_BYTES..).find(is_start).unwrap_or(rest.len()).min(rest.len());
        let (document, others) = rest.split_at(end);
        documents.push(document);
        rest = others;
    }
    documents.push(rest);
    documents
}
