//! WARC files, and a plain reader of them.

use byteweld_corpus::OnError;

use super::{Outcome, PARTS};
use crate::input::Input;

const TYPES: [&str; 8] = [
    "conversion",
    "conversion",
    "conversion",
    "warcinfo",
    "response",
    "resource",
    "continuation",
    "Conversion",
];

#[rustfmt::skip]
const FRAGMENTS: [&[u8]; 16] = [
    b"WARC/1.0\r\n", b"WARC/", b"1.1", b"WARC-Type: conversion\r\n", b"Content-Length: 3\r\n", b"content-length:0\r\n", b"\r\n", b"\r\n\r\n",
    b"abc", b" folded\r\n", b"WARC-Segment-Number: 1\r\n", b"X: y\r\n", b"\n", b":", b"Content-Length: 18446744073709551615\r\n", b"WARC-Type: warcinfo\r\n",
];

/// Records, most of them as they must be.
pub(super) fn content(input: &mut Input, max_bytes: usize) -> Vec<u8> {
    let mut content = Vec::new();
    while !input.is_empty() && content.len() < max_bytes {
        let op = input.byte();
        if op >= 160 {
            content.extend_from_slice(FRAGMENTS[usize::from(op) % 16]);
            continue;
        }
        let mut text = Vec::new();
        for _ in 0..input.below(6) {
            text.extend_from_slice(PARTS[input.below(64)]);
        }
        if op % 16 == 15 {
            text = text.repeat(1 + usize::from(input.byte()) * 40);
        }
        let kind = TYPES[usize::from(op) % 8];
        let header =
            format!("WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {}\r\n\r\n", text.len());
        content.extend_from_slice(header.as_bytes());
        content.extend(text);
        content.extend_from_slice(b"\r\n\r\n");
    }
    content
}

pub(super) fn plain(mut text: &[u8], on_error: OnError) -> Outcome {
    let mut outcome = Outcome { documents: Vec::new(), skipped: 0, is_ok: true };
    while !text.is_empty() {
        let Some((kind, content, rest)) = record(text) else {
            outcome.is_ok = false;
            return outcome;
        };
        // An error at the header comes before one at the end of the content.
        let is_page = ["response", "resource", "segment"].contains(&kind.as_str());
        if is_page && on_error != OnError::Skip {
            outcome.is_ok = false;
            return outcome;
        }
        let Some(rest) = rest else {
            outcome.is_ok = on_error == OnError::Skip;
            outcome.skipped += u64::from(outcome.is_ok);
            return outcome;
        };
        text = rest;
        match on_error {
            _ if is_page => outcome.skipped += 1,
            _ if kind != "conversion" => {}
            OnError::Skip if std::str::from_utf8(content).is_err() => outcome.skipped += 1,
            OnError::Replace => {
                outcome.documents.push(String::from_utf8_lossy(content).into_owned().into_bytes());
            }
            _ => outcome.documents.push(content.to_vec()),
        }
    }
    outcome
}

/// The type of a record, its content, and what follows it.
type Record<'t> = (String, &'t [u8], Option<&'t [u8]>);

/// The type of the first record, its content, and what follows it if it is whole.
fn record(text: &[u8]) -> Option<Record<'_>> {
    let end = text.windows(4).take((64 << 10) - 3).position(|window| window == b"\r\n\r\n")?;
    // Other bytes than ASCII stay one character each.
    let header: String = text[..end].iter().map(|&byte| char::from(byte)).collect();
    let mut lines = header.split("\r\n");
    let (major, minor) = lines.next()?.strip_prefix("WARC/")?.split_once('.')?;
    let is_number =
        |part: &str| !part.is_empty() && part.chars().all(|digit| digit.is_ascii_digit());
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    let mut fields: Vec<(String, String)> = Vec::new();
    let known = ["warc-type", "content-length", "warc-segment-number"];
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if fields.last().is_some_and(|(name, _)| known.contains(&name.as_str())) {
                return None;
            }
            continue;
        }
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || line.contains('\n') {
            return None;
        }
        let trimmed = value.trim_matches(|letter: char| letter.is_ascii_whitespace());
        fields.push((name.to_ascii_lowercase(), trimmed.to_ascii_lowercase()));
    }
    let all = |wanted: &str| -> Vec<&String> {
        fields.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value).collect()
    };
    let (kinds, lengths) = (all("warc-type"), all("content-length"));
    let ([kind], [length]) = (&kinds[..], &lengths[..]) else { return None };
    if !is_number(length) {
        return None;
    }
    let length = length.parse::<u64>().ok()?;
    let is_segment = !all("warc-segment-number").is_empty() && kind.as_str() == "conversion";
    let kind =
        if is_segment || kind.as_str() == "continuation" { "segment" } else { kind.as_str() };
    let rest = &text[end + 4..];
    let length = usize::try_from(length).ok().filter(|&length| length <= rest.len());
    let (content, after) = rest.split_at(length.unwrap_or(rest.len()));
    let after = length.and_then(|_| after.strip_prefix(b"\r\n\r\n"));
    Some((kind.to_owned(), content, after))
}
