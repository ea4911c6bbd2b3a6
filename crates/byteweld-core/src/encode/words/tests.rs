//! The pre-token cache: keys, eviction and growth.

use super::*;

fn prepared(bytes: usize) -> Words {
    let mut words = Words::default();
    words.prepare(bytes);
    words
}

fn key_at(text: &[u8], start: usize, end: usize) -> Option<Key> {
    key(text, &(start..end), short_key(text, start, end).unwrap_or(LONG))
}

fn ids_of(words: &mut Words, key: Key) -> Option<Vec<u32>> {
    let in_front: Option<Vec<u32>> = match key {
        Key::Short(key) => {
            let places = words.places();
            places.front(places.place(key), key).map(|(ids, count)| ids[..count].to_vec())
        }
        Key::Long(_) => None,
    };
    let mut ids = vec![9];
    let recalled = words.recall(key, &mut ids).then_some(ids);
    assert!(in_front.is_none() || in_front == recalled);
    recalled
}

#[test]
fn words_of_every_length_are_told_apart_even_by_nul_bytes() {
    let mut words = prepared(0);
    let text = [0; 64];
    for length in 1..=LONGEST {
        let ids: Vec<u32> = (0..length as u32).collect();
        let key = key_at(&text, 3, 3 + length).unwrap();
        assert!(ids_of(&mut words, key).is_none());
        words.insert(key, &ids);
    }
    for length in 1..=LONGEST {
        let ids: Vec<u32> = (0..length as u32).collect();
        // The same word at the very end of a text, where nothing can be read behind it.
        let end = key_at(&text, text.len() - length, text.len()).unwrap();
        assert_eq!(ids_of(&mut words, end), Some(ids));
    }
    assert!(short_key(&text, 0, 0).is_none() && key_at(&text, 0, LONGEST + 1).is_none());
}

#[test]
fn a_part_is_not_a_word_of_the_same_bytes() {
    let mut words = prepared(0);
    let text = [7; 32];
    for length in [4, 20] {
        let key = key_at(&text, 0, length).unwrap();
        let part = match key {
            Key::Short(short) => {
                assert!(is_segment(as_segment(short)) && !is_segment(short));
                Key::Short(as_segment(short))
            }
            Key::Long(_) => super::key(&text, &(0..length), LONG_SEGMENT).unwrap(),
        };
        words.insert(key, &[1]);
        assert!(ids_of(&mut words, part).is_none());
        words.insert(part, &[2]);
        assert_eq!(ids_of(&mut words, key), Some(vec![1]));
        assert_eq!(ids_of(&mut words, part), Some(vec![2]));
    }
}

#[test]
fn ids_that_need_all_bits_are_kept() {
    let mut words = prepared(0);
    let key = key_at(b"word", 0, 4).unwrap();
    words.insert(key, &[u32::MAX, 1 << 31]);
    assert_eq!(ids_of(&mut words, key), Some(vec![u32::MAX, 1 << 31]));
}

#[test]
fn a_full_table_forgets_and_never_lies() {
    let mut words = prepared(0);
    for number in 0..900_000u32 {
        let text = format!("{number:024}");
        let (short, long) = (key_at(text.as_bytes(), 12, 24), key_at(text.as_bytes(), 0, 24));
        for key in [short.unwrap(), long.unwrap()] {
            words.insert(key, &[number; 5][..1 + number as usize % 5]);
        }
        let text = format!("{:024}", number / 2);
        let expected = vec![number / 2; 1 + number as usize / 2 % 5];
        for key in [key_at(text.as_bytes(), 12, 24), key_at(text.as_bytes(), 0, 24)] {
            if let Some(found) = ids_of(&mut words, key.unwrap()) {
                assert_eq!(found, expected);
            }
        }
    }
}
