//! Cut points between characters.

use super::*;

fn cuts_of(tokens: &[&[u8]], text: &str) -> Vec<usize> {
    let tokens: Vec<(u32, Vec<u8>)> =
        tokens.iter().zip(0..).map(|(token, id)| (id, token.to_vec())).collect();
    Cuts::new(&TokenTable::new(&tokens).unwrap()).within(text.as_bytes()).collect()
}

#[test]
fn a_place_is_cut_unless_a_token_lies_across() {
    assert_eq!(cuts_of(&[b"a"], "日本語"), [3, 6]);
    assert_eq!(cuts_of(&["日本".as_bytes()], "日本語"), [6]);
    assert_eq!(cuts_of(&["日本語".as_bytes()], "日本語"), []);
    assert_eq!(cuts_of(&["x日本".as_bytes()], "日本語"), [6]);
}

#[test]
fn tokens_of_parts_of_characters_lie_across_too() {
    let text = "日本語"; // E6 97 A5, E6 9C AC, E8 AA 9E
    assert_eq!(cuts_of(&[b"\xA5\xE6"], text), [6]);
    assert_eq!(cuts_of(&[b"\x97\xA5\xE6\x9C"], text), [6]);
    assert_eq!(cuts_of(&[b"\xA5\xE6\x9C\xAC\xE8"], text), []);
    assert_eq!(cuts_of(&[b"\xE6\x97\xA5\xE6"], text), [6]);
    assert_eq!(cuts_of(&[b"\xA4\xE6"], text), [3, 6]);
}

#[test]
fn only_characters_of_three_bytes_are_cut() {
    assert_eq!(cuts_of(&[b"a"], "日a本é語😀字"), []);
    assert_eq!(cuts_of(&[b"a"], "ab"), []);
    let torn = b"\xE6\x97\xE6\x9C\xAC\xE8";
    assert_eq!(Cuts::new(&TokenTable::new::<Vec<u8>>(&[]).unwrap()).within(torn).count(), 0);
}
