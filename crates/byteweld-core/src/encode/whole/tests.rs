//! The packed keys of whole tokens.

use super::{SHORT, pack};

#[test]
fn a_key_is_the_bytes_and_their_length() {
    let bytes: Vec<u8> = (1..=16).collect();
    assert_eq!(pack(&[]), None);
    assert_eq!(pack(&bytes), None);
    for length in 1..=SHORT {
        let mut expected = [0; 16];
        expected[..length].copy_from_slice(&bytes[..length]);
        expected[15] = length as u8;
        assert_eq!(pack(&bytes[..length]), Some(u128::from_le_bytes(expected)));
    }
}
