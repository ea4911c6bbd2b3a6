//! Replacement of invalid UTF-8 across chunks.

use super::append_replaced;

#[test]
fn splitting_the_input_anywhere_gives_the_same_replacement() {
    let bytes = b"a\xe2\x82\xac\xff\xf0\x9f\x98\x80\xed\xa0\x80\xe2\x82";
    let whole = String::from_utf8_lossy(bytes).into_owned();
    for cut in 0..=bytes.len() {
        let mut out = Vec::new();
        let left = append_replaced(&bytes[..cut], false, &mut out);
        let left = append_replaced(&bytes[cut - left..], true, &mut out);
        assert_eq!((left, String::from_utf8(out).unwrap()), (0, whole.clone()), "cut at {cut}");
    }
}
