//! Headers of WARC records.

use super::{Header, Kind, parse};

fn header(fields: &str) -> Result<Header, String> {
    parse(format!("WARC/1.0\r\n{fields}\r\n\r\n").as_bytes())
}

#[test]
fn the_type_decides_what_is_done_and_unknown_types_are_ignored() {
    for (name, kind) in [
        ("conversion", Kind::Text),
        ("warcinfo", Kind::Ignored),
        ("metadata", Kind::Ignored),
        ("request", Kind::Ignored),
        ("revisit", Kind::Ignored),
        ("something", Kind::Ignored),
        ("response", Kind::Page),
        ("resource", Kind::Page),
        ("continuation", Kind::Segment),
    ] {
        let found = header(&format!("WARC-Type: {name}\r\nContent-Length: 12"));
        assert_eq!(found, Ok(Header { kind, content_bytes: 12 }), "{name}");
    }
    let segment = header("Content-Length: 0\r\nwarc-type:conversion\r\nWARC-Segment-Number: 1");
    assert_eq!(segment, Ok(Header { kind: Kind::Segment, content_bytes: 0 }));
}

#[test]
fn other_fields_may_hold_anything_and_continue_in_the_next_line() {
    let fields = "WARC-Target-URI: http://é/?a: b\r\nX: one\r\n\t two\r\nX:\r\nWARC-Type:  conversion \r\nCONTENT-LENGTH:18446744073709551615";
    assert_eq!(header(fields), Ok(Header { kind: Kind::Text, content_bytes: u64::MAX }));
}

#[test]
fn invalid_headers_are_named() {
    for (fields, expected) in [
        ("WARC-Type: conversion", "no field Content-Length"),
        ("Content-Length: 1", "no field WARC-Type"),
        ("WARC-Type: conversion\r\nContent-Length: -1", "is '-1'"),
        ("WARC-Type: conversion\r\nContent-Length: +1", "is '+1'"),
        ("WARC-Type: conversion\r\nContent-Length: ", "is ''"),
        ("WARC-Type: conversion\r\nContent-Length: 18446744073709551616", "is '184"),
        ("WARC-Type: conversion\r\nContent-Length: 1\r\ncontent-length: 1", "two fields Content-"),
        ("WARC-Type: conversion\r\nWARC-Type: conversion\r\nContent-Length: 1", "two fields WARC-"),
        ("WARC-Type: conversion\r\n x\r\nContent-Length: 1", "continues"),
        ("WARC-Type conversion", "'WARC-Type conversion'"),
        (": conversion", "': conversion'"),
        ("WARC-Type: conversion\nContent-Length: 1", "CR LF"),
        ("", "''"),
    ] {
        let error = header(fields).unwrap_err();
        assert!(error.contains(expected), "{fields:?}: {error}");
    }
    for version in ["WARC/", "WARC/1", "WARC/1.", "WARC/.0", "WARC/a.0", "WARC/1.0 ", "warc/1.0"] {
        let text = format!("{version}\r\nWARC-Type: conversion\r\nContent-Length: 1\r\n\r\n");
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.contains("expected WARC/1.0"), "{version}: {error}");
    }
}
