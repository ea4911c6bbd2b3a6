//! WARC files: which records are documents, and what is wrong with the others.

use byteweld_corpus::{Limits, OnError, Options, ReadStatus, Reader, Unit};

use crate::{documents, file, options};

/// A record as it is stored.
pub(crate) fn record(kind: &str, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let header = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://x/\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    [header.as_bytes(), content, b"\r\n\r\n"].concat()
}

fn three() -> Vec<u8> {
    [
        record("warcinfo", b"by hand"),
        record("conversion", "one é\r\n\r\n".as_bytes()),
        record("conversion", b""),
    ]
    .concat()
}

#[test]
fn the_content_of_conversion_records_is_read() {
    let metadata = record("metadata", b"about it");
    let bytes = [three(), metadata.clone(), record("conversion", b"last\n"), metadata].concat();
    for name in ["a.warc", "a.wet", "a.WARC.WET"] {
        let path = file("warc", name, &bytes);
        for unit in [Unit::File, Unit::Line] {
            let found = documents(&path, unit, OnError::Fail).unwrap();
            assert_eq!(found, ["one é\r\n\r\n", "", "last\n"]);
        }
    }
    let path = file("warc", "empty.warc", b"");
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), [""; 0]);
    let path = file("warc", "text.txt", b"WARC/1.0 is a version");
    assert_eq!(documents(&path, Unit::File, OnError::Fail).unwrap(), ["WARC/1.0 is a version"]);
}

#[test]
fn pages_are_an_error_that_says_what_to_do_or_are_skipped() {
    for kind in ["response", "resource", "continuation"] {
        let bytes = [three(), record(kind, b"<html>"), record("conversion", b"last")].concat();
        let path = file("warc-pages", "a.warc", &bytes);
        for on_error in [OnError::Fail, OnError::Replace] {
            let error = documents(&path, Unit::File, on_error).unwrap_err().to_string();
            assert!(error.contains(&format!("byte {}: ", three().len())), "{error}");
            assert!(
                kind == "continuation" || error.contains("trafilatura or datatrove"),
                "{error}"
            );
        }
        let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Skip));
        let (mut found, mut document) = (0, Vec::new());
        while reader.next_document(&mut document).unwrap() {
            found += 1;
        }
        let skips = reader.take_skips();
        assert_eq!((found, skips.len(), skips[0].offset), (3, 1, Some(three().len() as u64)));
        assert!(skips[0].reason.contains(if kind == "continuation" { "segment" } else { kind }));
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let bytes = three();
    let ends =
        [0, record("warcinfo", b"by hand").len(), bytes.len() - record("conversion", b"").len()];
    for end in (0..bytes.len()).filter(|end| !ends.contains(end)) {
        let path = file("warc-cut", "a.warc", &bytes[..end]);
        for on_error in [OnError::Fail, OnError::Replace] {
            let error = documents(&path, Unit::File, on_error).unwrap_err().to_string();
            assert!(error.contains(&format!("byte {end}: the file ends inside")), "{end}: {error}");
        }
        let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Skip));
        let mut document = Vec::new();
        while reader.next_document(&mut document).unwrap() {}
        assert_eq!(reader.skipped(), 1, "{end}");
    }
}

#[test]
fn what_is_not_warc_is_an_error_with_its_offset() {
    let one = three();
    let long = format!("WARC/1.0\r\nX: {}\r\n\r\n", "x".repeat(70_000));
    let short_unix = String::from_utf8_lossy(&one).replace("\r\n", "\n");
    let unix = short_unix.repeat(1000);
    for (bytes, expected) in [
        (b"text".to_vec(), "byte 0: a WARC record starts with 'WARC/', not with 'text'".to_owned()),
        ([&one[..], b"\r\n"].concat(), format!("byte {}: a WARC record starts with", one.len())),
        (
            long.into_bytes(),
            "byte 0: no end of the header of a WARC record in 65536 bytes".to_owned(),
        ),
        (unix.into_bytes(), "CR LF".to_owned()),
        (short_unix.into_bytes(), "byte 0: the lines of a WARC header end in LF".to_owned()),
        (
            record("conversion", b"abc").replace_once(b": 3", b": 2"),
            "followed by 'c\\r\\n\\r'".to_owned(),
        ),
        (record("conversion", b"abc").replace_once(b": 3", b": 99"), "ends inside".to_owned()),
        (
            record("conversion", b"abc").replace_once(b": 3", b": 18446744073709551615"),
            "ends inside".to_owned(),
        ),
        (
            record("warcinfo", b"abc").replace_once(b": 3", b": 18446744073709551615"),
            "ends inside".to_owned(),
        ),
    ] {
        let path = file("warc-bad", "a.warc", &bytes);
        for on_error in [OnError::Fail, OnError::Skip] {
            if on_error == OnError::Skip && expected == "ends inside" {
                continue; // that is skipped
            }
            let error = documents(&path, Unit::File, on_error).unwrap_err().to_string();
            assert!(error.contains(&expected), "{error}");
        }
    }
}

trait ReplaceOnce {
    fn replace_once(self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl ReplaceOnce for Vec<u8> {
    fn replace_once(self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).position(|window| window == from).unwrap();
        [&self[..at], to, &self[at + from.len()..]].concat()
    }
}

#[test]
fn invalid_utf8_in_records_is_kept_an_error_skipped_or_replaced() {
    let bytes = [record("conversion", b"a\xFFb\xE2\x82"), record("conversion", b"good")].concat();
    let start = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() as u64 + 4;
    let path = file("warc-utf8", "a.wet", &bytes);
    let read = |on_error| documents(&path, Unit::File, on_error).unwrap();
    assert_eq!(read(OnError::Replace), ["a\u{fffd}b\u{fffd}", "good"]);
    assert_eq!(read(OnError::Skip), ["good"]);
    let strict = Options { require_utf8: true, ..options(Unit::File, OnError::Fail) };
    let error = Reader::new(vec![path.clone()], strict).next_document(&mut Vec::new()).unwrap_err();
    assert!(
        error.to_string().contains(&format!("a.wet: byte {}: the text is not UTF-8", start + 1))
    );
    let mut reader = Reader::new(vec![path], options(Unit::File, OnError::Fail));
    let mut buffer = Vec::new();
    assert_eq!(reader.read(&mut buffer, 1 << 20).unwrap(), ReadStatus::DocumentEnd);
    assert_eq!((&buffer[..], reader.location().1), (&b"a\xFFb\xE2\x82"[..], Some(start)));
}

#[test]
fn a_long_record_streams_and_a_character_across_windows_is_whole() {
    let text = format!("a{}", "é".repeat(1 << 20));
    let path =
        file("warc-long", "a.wet", &[record("conversion", text.as_bytes()), three()].concat());
    for on_error in [OnError::Fail, OnError::Skip, OnError::Replace] {
        let limits = Limits { record_bytes: 1 << 18, ..Limits::default() };
        let options = Options { limits, ..options(Unit::File, on_error) };
        let mut reader = Reader::new(vec![path.clone()], options);
        let (mut found, mut largest, mut buffer) = (Vec::new(), 0, Vec::new());
        while reader.read(&mut buffer, 1 << 16).unwrap() == ReadStatus::More {
            largest = largest.max(buffer.len());
            found.append(&mut buffer);
        }
        found.append(&mut buffer);
        assert!(found == text.as_bytes(), "{on_error:?}");
        assert!(largest <= 1 << 20, "{on_error:?}: {largest}");
    }
}

#[test]
fn a_header_and_an_end_across_windows_are_found() {
    let second = record("conversion", b"second");
    let before = record("conversion", b"").len() + 5; // the length has six digits
    for shift in 0..second.len() + 8 {
        let first = vec![b'a'; (256 << 10) - before - shift];
        let bytes = [record("conversion", &first), second.clone(), second.clone()].concat();
        let path = file("warc-across", "a.wet", &bytes);
        let found = documents(&path, Unit::File, OnError::Fail).unwrap();
        assert_eq!(
            (found[0].len(), &found[1..]),
            (first.len(), &["second", "second"].map(str::to_owned)[..])
        );
    }
}
