//! Decoding into buffers of every size.

use proptest::prelude::*;

use super::*;
use crate::testing::cases;

fn tokens(of: &[&[u8]]) -> TokenTable {
    let tokens: Vec<_> = (0..).zip(of).map(|(id, token)| (2 * id, token.to_vec())).collect();
    TokenTable::new(&tokens).unwrap()
}

fn decode(tokens: &TokenTable, ids: &[u32]) -> Result<Vec<u8>> {
    let mut out = b"before".to_vec();
    tokens.decode_into(ids, &mut out)?;
    assert!(out.starts_with(b"before"));
    Ok(out.split_off(6))
}

fn decode_over(tokens: &TokenTable, ids: &[u32], mut buffer: Vec<u8>) -> Result<Vec<u8>> {
    let length = tokens.decode_over(ids, &mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

/// What `decode_to` writes into a buffer of `length` bytes, if it succeeds.
fn decode_to(tokens: &TokenTable, ids: &[u32], length: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xAA; length];
    tokens.decode_to(ids, &mut out, &mut Watch::default()).unwrap().then_some(out)
}

#[test]
fn ids_between_tokens_are_unknown_and_one_token_may_be_empty() {
    let tokens = tokens(&[b"a", b"", b"bc"]);
    assert_eq!(tokens.end(), 5);
    assert_eq!(decode(&tokens, &[0, 2, 4, 0]).unwrap(), b"abca");
    for unknown in [1, 3, 5, u32::MAX] {
        assert!(tokens.get(unknown).is_none());
        assert!(
            matches!(decode(&tokens, &[0, unknown]), Err(Error::UnknownId(id)) if id == unknown)
        );
        assert!(!tokens.decode_to(&[unknown], &mut [], &mut Watch::default()).unwrap());
        assert!(decode_over(&tokens, &[0, unknown], Vec::new()).is_err());
    }
}

#[test]
fn a_buffer_of_the_wrong_size_is_rejected() {
    let tokens = tokens(&[b"abc", &[b'x'; 40]]);
    for ids in [&[0u32, 0][..], &[0, 2], &[2, 0], &[2]] {
        let expected = decode(&tokens, ids).unwrap();
        for length in 0..expected.len() + 40 {
            let written = decode_to(&tokens, ids, length);
            assert_eq!(written, (length == expected.len()).then(|| expected.clone()));
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn fixed_size_copies_decode_as_exact_ones(
        of in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..20),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
    ) {
        let tokens = tokens(&of.iter().map(|token| &token[..]).collect::<Vec<_>>());
        let picks: Vec<usize> = picks.iter().map(|pick| pick.index(of.len())).collect();
        let ids: Vec<u32> = picks.iter().map(|&pick| 2 * pick as u32).collect();
        let expected: Vec<u8> = picks.iter().flat_map(|&pick| of[pick].clone()).collect();
        prop_assert_eq!(tokens.decoded_length(&ids, &mut Watch::default()).unwrap(), expected.len());
        prop_assert_eq!(&decode(&tokens, &ids).unwrap(), &expected);
        for buffer in [0, 1, 20, 5000] {
            prop_assert_eq!(&decode_over(&tokens, &ids, vec![0xAA; buffer]).unwrap(), &expected);
        }
        prop_assert_eq!(decode_to(&tokens, &ids, expected.len()), Some(expected));
    }
}
