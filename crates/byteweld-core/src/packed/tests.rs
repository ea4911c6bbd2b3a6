//! What packing keeps.

use super::*;

#[test]
fn a_number_is_the_bytes_and_their_length() {
    let text: Vec<u8> = (1..=40).collect();
    for length in 0..=40 {
        let expected = (length <= MAX_PACKED_BYTES).then(|| {
            let mut bytes = [0; 16];
            bytes[..length].copy_from_slice(&text[..length]);
            bytes[MAX_PACKED_BYTES] = length as u8;
            u128::from_le_bytes(bytes)
        });
        assert_eq!(pack(&text[..length]), expected);
        assert_eq!(pack_chunk(text.first_chunk().unwrap(), length), expected);
    }
}
