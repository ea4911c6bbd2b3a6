//! Files that are read, and what is wrong with others. Whether ids are right is tested in Python, against
//! the real library.

use super::*;
use crate::error::Error;
use crate::rewrite::{Form, SplitBehavior};
use crate::table::VocabTable;

const FILE: &str = r#"{"added_tokens": [{"id": 7, "content": "<s>", "single_word": false, "lstrip": true,
        "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace",
        "pattern": {"String": "a.b"}, "content": ""}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\s"}, "behavior": "Removed", "invert": true},
        {"type": "Digits", "individual_digits": false},
        {"type": "ByteLevel", "add_prefix_space": true}]},
    "post_processor": {"type": "BertProcessing", "cls": ["a", 1], "sep": ["<s>", 4]},
    "model": {"merges": [["a", "Ġ"], ["aĠ", "\u0061"]],
        "type" : "BPE", "vocab": {"a": 1, "\u0120":0, "aĠ" : 3 , "aĠa": 2, "é€": 9}}, "version": "1.0"}"#;

fn read(file: &str) -> Result<TokenizerJson> {
    TokenizerJson::read(file.as_bytes())
}

fn message(file: &str) -> String {
    match read(file).and_then(|file| file.template) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    }
}

fn table(file: &str) -> VocabTable {
    match read(file).unwrap().tokens {
        Tokens::Table(table) => table,
        Tokens::Sparse(..) => panic!("it is sparse"),
    }
}

#[test]
fn a_file_is_read() {
    let file = read(FILE).unwrap();
    let found = table(FILE);
    let expected: Vec<(u32, &[u8])> = vec![
        (0, b" "),
        (1, b"a"),
        (2, b"a a"),
        (3, b"a "),
        (5, b"<s>"),
        (9, "é€".as_bytes()), // not in byte letters
    ];
    assert_eq!(found.tokens().collect::<Vec<_>>(), expected);
    assert_eq!(found.merges(), [(1, 0, 3), (3, 1, 2)]);
    assert_eq!((file.id("aĠ"), file.id("b"), file.id("<s>")), (Some(3), None, None));
    let mut token = AddedToken::special("<s>", 5); // the next id, not that of the file
    token.lstrip = true;
    assert_eq!(file.added, [token]);
    assert_eq!(
        file.splits,
        [
            Split::At(Pattern::Regex(r"\s".to_owned()), SplitBehavior::Removed, true),
            Split::At(Pattern::Digits, SplitBehavior::Contiguous, false),
            Split::PrefixSpace,
            Split::At(Pattern::ByteLevel, SplitBehavior::Isolated, false),
            Split::ByteLetters,
        ]
    );
    let literal = Pattern::Literal(r"a\.b".to_owned());
    let steps = [Rewrite::Form(Form::Nfc), Rewrite::Replace(literal, String::new())];
    assert_eq!(file.normalizer, steps);
    assert_eq!(file.template.as_ref().unwrap(), &(vec![1], vec![4]));
    assert_eq!((file.alphabet, file.unk_token.as_deref()), (Alphabet::Partial, None));
}

#[test]
fn merges_may_be_strings() {
    let strings = r##"["#version x y z", "a Ġ", "aĠ a"]"##;
    assert_eq!(table(&FILE.replace(r#"[["a", "Ġ"], ["aĠ", "\u0061"]]"#, strings)), table(FILE));
}

#[test]
fn sparse_ids_make_no_table() {
    let Tokens::Sparse(tokens, merges) = read(&FILE.replace(": 9", ": 4000000000")).unwrap().tokens
    else {
        panic!("a table");
    };
    assert_eq!(tokens.last(), Some(&(4_000_000_000, "é€".as_bytes().to_vec())));
    assert_eq!((tokens.len(), merges.len()), (6, 2));
}

#[test]
fn what_is_wrong_is_said() {
    for (part, other, words) in [
        (r#""a": 1"#, r#""a": 1.0"#, "token 'a' has the id 1.0; expected an integer"),
        (r#""a": 1"#, r#""a": 01"#, "expected ','"),
        (r#""a": 1"#, r#""a": "1""#, "the id \"1\""),
        (r#""a": 1"#, r#""a": 4294967295"#, "the id 4294967295"),
        (r#""a": 1"#, r#""a": 3"#, "'a' and 'aĠ' have the same id 3"),
        (r#""a": 1"#, r#""a": 1, "a": 7"#, "key 'a' is repeated"),
        (r#""a": 1"#, r#""a": 1,"#, "found ','"),
        (r#""a": 1"#, "\"a\n\": 1", "the rest of a string, found '\\n'"),
        (r#""a": 1"#, r#""\ud800": 1"#, "a lone surrogate"),
        (r#""a": 1"#, r#""\udc00": 1"#, "a lone surrogate"),
        (r#""a": 1"#, r#""\ud800\u0061": 1"#, "a lone surrogate"),
        (r#""a": 1"#, r#""\x": 1"#, "an escape sequence"),
        (r#""a": 1"#, r#""a": NaN"#, "a value, found 'NaN'"),
        (r#"["a", "Ġ"]"#, r#"["a", ""]"#, r#"merge 0 is ["a", ""]; expected a list of two"#),
        (r#"["a", "Ġ"]"#, r#"["a", "Ġ", "a"]"#, r#"merge 0 is ["a", "Ġ", "a"]"#),
        (r#"["a", "Ġ"]"#, r#""a Ġ""#, r#"merge 1 is ["aĠ", "\u0061"]; expected a string"#),
        (r#"["a", "Ġ"]"#, r#"["a", "b"]"#, "('a', 'b') but 'b' is not in"),
        (r#"["a", "Ġ"]"#, r#"["a" "Ġ"]"#, "expected ','"),
        (r#"["a", "Ġ"]"#, "null", "merge 0 is null"),
        (r#""type" :"#, r#""merges": [], "type":"#, "key 'merges' is repeated"),
        (r#""type" : "BPE", "vocab": {"#, r#""type": "Unigram", "vocab": [], "x": {"#, "'Unigram'"),
        (r#""vocab": {"#, r#""vocab": [], "x": {"#, "the key 'x'"),
        (r#""version""#, r#""model": null, "version""#, "model is null"),
        (r#""vocab": {"a""#, r#""voc": {"a""#, "the key 'voc'"),
        (r#""1.0"}"#, r#""1.0""#, "found the end"),
        (r#""1.0"}"#, r#""1.0"} x"#, "expected the end of the file, found 'x'"),
        (r#"{"added"#, r#"["added"#, "expected ','"),
        (r#""special": true"#, r#""special": 1"#, "special of added token '<s>' is 1"),
        (r#""cls": ["a", 1]"#, r#""cls": ["a", -1]"#, "a template has the id -1"),
    ] {
        assert!(FILE.contains(part), "{part}");
        let found = message(&FILE.replacen(part, other, 1));
        assert!(found.contains(words), "{other}: {found}");
    }
    let deep = format!(r#"{{"decoder": {}"#, "[".repeat(100_000));
    assert!(message(&deep).contains("nested too deeply"));
    for (data, expected) in
        [(&b"{\"\xc3\xa9\": \"\xff\"}"[..], 8), (b"{\"\xc3\xa9\": 1, oops}", 10)]
    {
        let Err(Error::Format { offset, .. }) = TokenizerJson::read(data) else { panic!("read") };
        assert_eq!(offset, Some(expected));
    }
    for length in (0..FILE.len()).filter(|&length| FILE.is_char_boundary(length)) {
        assert!(read(&FILE[..length]).is_err(), "{length}");
    }
}

#[test]
fn values_are_shown_shortened() {
    let mut reader = Reader::new(b"{\"it's\":\n    [null, \"\\\\n\"]}").unwrap();
    assert_eq!(reader.value(0).unwrap().show(), r#"{"it's": [null, "\\n"]}"#);
    assert_eq!(show("a\n'\u{202e}'"), r"'a\n'\u{202e}''");
    assert_eq!(show(&"x".repeat(1000)).len(), 205);
}
