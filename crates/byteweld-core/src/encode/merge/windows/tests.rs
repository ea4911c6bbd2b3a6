//! Runs of one character.

use super::is_run;

#[test]
fn a_run_is_one_character_repeated() {
    for run in ["aaaa", "ééé", "日日日", "😀😀😀", "abab", "abcdabcdab"] {
        assert!(is_run(run.as_bytes()), "{run}");
    }
    for other in ["abcdeabcde", "aaab", "baaaaa", "日本日"] {
        assert!(!is_run(other.as_bytes()), "{other}");
    }
}
