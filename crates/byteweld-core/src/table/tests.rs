//! The fast readers and checks, on valid and malformed files.

use super::hugging_face::{TokenizerJson, Tokens};
use super::{VocabTable, crc32c};

const RANKS: &[u8] = b"YQ== 0\nYg== 1\nYWI= 2\nYWJh 5\n";

fn tokens(table: &VocabTable) -> Vec<(u32, &[u8])> {
    table.tokens().collect()
}

#[test]
fn a_rank_file_is_read_by_line_with_holes() {
    let expected: Vec<(u32, &[u8])> = vec![(0, b"a"), (1, b"b"), (2, b"ab"), (5, b"aba")];
    let table = VocabTable::from_ranks(RANKS).unwrap();
    assert_eq!(tokens(&table), expected);
    assert_eq!(
        (table.len(), table.get(3), table.get(6), table.get(u32::MAX)),
        (4, None, None, None)
    );
    let without_newline = VocabTable::from_ranks(&RANKS[..RANKS.len() - 1]).unwrap();
    assert_eq!(without_newline, table);
}

#[test]
fn an_unusual_rank_file_is_not_read() {
    let unusual: [&[u8]; 14] = [
        b"",
        b"\n",
        b"YQ==",
        b"YQ== 0 \n",
        b"YQ==  0\n",
        b"YQ== 00\n",
        b"YQ== -1\n",
        b"YQ== 0\r\n",
        b"YR== 0\n",
        b"YQ= 0\n",
        b"= 0\n",
        b"YQ== 4294967295\n",
        b"YQ== 1\nYg== 1\n",
        b"YQ== 0\n\nYg== 1\n",
    ];
    for file in unusual {
        assert_eq!(VocabTable::from_ranks(file), None, "{}", String::from_utf8_lossy(file));
    }
    assert_eq!(VocabTable::from_ranks(b"YQ== 4294967294\n"), None); // too sparse
}

#[test]
fn merges_are_recovered_from_ranks() {
    let table = VocabTable::from_ranks(RANKS).unwrap().with_recovered_merges().unwrap();
    assert_eq!(table.merges(), [(0, 1, 2), (2, 0, 5)]);
    assert!(table.has_sound_merges(&[]) && table.makes_every_token(&[]) && !table.has_repeats());
    assert_eq!(table.made_among(&[0, 5, 7]), [5]);
    let more = table.with_tokens(&[(4, b"<s>".to_vec())]).unwrap();
    assert_eq!((more.len(), more.get(4), more.get(5)), (5, Some(&b"<s>"[..]), Some(&b"aba"[..])));
    assert!(more.has_sound_merges(&[4]) && more.makes_every_token(&[4]));
    assert!(!more.has_sound_merges(&[2]) && !more.makes_every_token(&[]));
    assert!(table.with_tokens(&[(2, b"<s>".to_vec())]).is_none());
    assert!(table.with_tokens(&[(3, b"ab".to_vec())]).unwrap().has_repeats());
}

#[test]
fn a_pair_may_merge_once_and_a_token_may_be_made_twice() {
    let table = |merges: &str| {
        let vocab = r#"{"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5}"#;
        let level = r#"{"type": "ByteLevel", "add_prefix_space": false}"#;
        let model = format!(r#"{{"vocab": {vocab}, "merges": {merges}}}"#);
        let file = format!(r#"{{"pre_tokenizer": {level}, "model": {model}}}"#);
        match TokenizerJson::read(file.as_bytes()).unwrap().tokens {
            Tokens::Table(table) => table,
            Tokens::Sparse(..) => panic!("sparse"),
        }
    };
    let twice_made = table(r#"[["a", "b"], ["b", "c"], ["a", "bc"], ["ab", "c"]]"#);
    assert!(twice_made.has_sound_merges(&[]) && !twice_made.makes_every_token(&[]));
    let pair_twice = table(r#"[["a", "b"], ["b", "c"], ["a", "b"], ["a", "bc"]]"#);
    assert!(!pair_twice.has_sound_merges(&[]) && !pair_twice.makes_every_token(&[]));
}

#[test]
fn a_table_is_compiled_and_read() {
    let table = VocabTable::from_ranks(RANKS).unwrap().with_recovered_merges().unwrap();
    let data = table.compile();
    let compiled = VocabTable::from_compiled(&data).unwrap();
    assert!(table.layout().is_none() && compiled.layout().is_some());
    assert_eq!(compiled.compile(), data);
    assert_eq!(VocabTable { layout: None, ..compiled }, table);
    for length in 0..data.len() {
        assert_eq!(VocabTable::from_compiled(&data[..length]), None, "{length}");
    }
    for index in 0..data.len() {
        let mut changed = data.clone();
        changed[index] ^= 0x81;
        // Whatever it contains, its methods must not panic.
        if let Some(table) = VocabTable::from_compiled(&changed) {
            let _ =
                (table.has_repeats(), table.has_sound_merges(&[]), table.makes_every_token(&[]));
            assert_eq!(table.tokens().count(), table.len());
        }
    }
}

#[test]
fn lines_are_unambiguous() {
    let table = VocabTable::from_ranks(RANKS).unwrap().with_recovered_merges().unwrap();
    let lines = b"\nt 0 1 a\nt 1 1 b\nt 2 2 ab\nt 5 3 aba\nm 0 1 2\nm 2 0 5";
    assert_eq!(table.lines(), lines);
}

#[test]
fn crc32c_has_its_known_values() {
    // RFC 3720, appendix B.4, and the check value of the CRC catalogs.
    let ascending: Vec<u8> = (0..32).collect();
    let descending: Vec<u8> = (0..32).rev().collect();
    for (data, expected) in [
        (&b""[..], 0),
        (b"123456789", 0xE306_9283),
        (&[0; 32], 0x8A91_36AA),
        (&[0xFF; 32], 0x62A8_AB43),
        (&ascending, 0x46DD_794E),
        (&descending, 0x113F_DB5C),
    ] {
        assert_eq!(crc32c(data), expected);
    }
}

#[test]
fn crc32c_of_any_length_is_that_of_single_bits() {
    let data: Vec<u8> = (0_u32..100).map(|n| (n * n * 37 + 11).to_le_bytes()[0]).collect();
    for length in 0..data.len() {
        let mut crc = u32::MAX;
        for byte in &data[..length] {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ (0x82F6_3B78 * (crc & 1));
            }
        }
        assert_eq!(crc32c(&data[..length]), !crc, "{length} bytes");
    }
}
