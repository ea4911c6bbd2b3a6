//! Cut points between characters.

use super::*;

fn cuts_of(tokens: &[&[u8]], text: &str) -> Vec<usize> {
    let tokens: Vec<(u32, Vec<u8>)> =
        tokens.iter().zip(0..).map(|(token, id)| (id, token.to_vec())).collect();
    all_cuts(&CutPoints::new(&TokenTable::new(&tokens).unwrap()), text.as_bytes())
}

/// All cut points, however many are visited at a time, and whatever is around the text.
fn all_cuts(cut_points: &CutPoints, text: &[u8]) -> Vec<usize> {
    let mut all = Vec::new();
    for (space, padding) in [(1, ""), (2, "x"), (100, "日本語日本語")] {
        let padded = [padding.as_bytes(), text, padding.as_bytes()].concat();
        let (mut next, end) = (padding.len(), padding.len() + text.len());
        let mut cuts = Vec::new();
        while next < end {
            let mut visited = 0;
            next = cut_points.visit(&padded, next..end, |offset, is_cut| {
                cuts.extend(is_cut.then_some(offset - padding.len()));
                visited += 1;
                visited < space
            });
        }
        all.push(cuts);
    }
    assert!(all.iter().all(|cuts| *cuts == all[0]), "{all:?}");
    all.swap_remove(0)
}

#[test]
fn an_offset_is_a_cut_point_unless_a_token_spans_it() {
    assert_eq!(cuts_of(&[b"a"], "日本語"), [3, 6]);
    assert_eq!(cuts_of(&["日本".as_bytes()], "日本語"), [6]);
    assert_eq!(cuts_of(&["日本語".as_bytes()], "日本語"), []);
    assert_eq!(cuts_of(&["x日本".as_bytes()], "日本語"), [6]);
}

#[test]
fn tokens_of_parts_of_characters_span_it_too() {
    let text = "日本語"; // E6 97 A5, E6 9C AC, E8 AA 9E
    assert_eq!(cuts_of(&[b"\xA5\xE6"], text), [6]);
    assert_eq!(cuts_of(&[b"\x97\xA5\xE6\x9C"], text), [6]);
    assert_eq!(cuts_of(&[b"\xA5\xE6\x9C\xAC\xE8"], text), []);
    assert_eq!(cuts_of(&[b"\xE6\x97\xA5\xE6"], text), [6]);
    assert_eq!(cuts_of(&[b"\xA4\xE6"], text), [3, 6]);
}

#[test]
fn cut_points_are_between_characters_of_three_bytes() {
    assert_eq!(cuts_of(&[b"a"], "日a本é語😀字"), []);
    assert_eq!(cuts_of(&[b"a"], "ab"), []);
    let torn = b"\xE6\x97\xE6\x9C\xAC\xE8";
    assert_eq!(all_cuts(&CutPoints::new(&TokenTable::new::<Vec<u8>>(&[]).unwrap()), torn), []);
}
