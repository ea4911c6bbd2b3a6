//! Every SIMD tier against the scanner that goes character by character. One execution: one text in one
//! place in memory, one pattern, all tiers.

use std::cell::RefCell;
use std::rc::Rc;

use byteweld_core::pretoken::Pretokenizer;

use crate::guard::Guarded;
use crate::input::Input;
use crate::prepared::Prepared;
use crate::scanner::tiles;
use crate::{magnitude, patterns, signature, text};

/// The longest text: a chunk has 2 KiB.
const MAX_BYTES: usize = 1 << 14;

struct Case {
    pattern: String,
    tiers: Vec<(String, Pretokenizer)>,
}

impl Case {
    fn new(number: u16) -> Self {
        let pattern = patterns::numbered_of_family(number);
        let tiers = Pretokenizer::in_tiers(&pattern);
        assert!(tiers.len() >= 2, "{pattern:?} does not run on a scanner");
        Self { pattern, tiers }
    }
}

pub fn run(input: &[u8]) -> u64 {
    thread_local! {
        static CASES: RefCell<Prepared<Case>> = RefCell::default();
        static ROOM: RefCell<Guarded> = RefCell::new(Guarded::new(MAX_BYTES + 4096));
    }
    let mut input = Input::new(input);
    let number = input.number();
    let case: Rc<Case> = CASES.with_borrow_mut(|cases| cases.get(number, Case::new));
    let place = input.byte();
    let text = text::text(&mut input, MAX_BYTES);
    // Before the guard page behind, which tries every alignment as lengths differ; or after the one in
    // front, or at any alignment.
    let offset = match place {
        0..128 => None,
        128..160 => Some(0),
        160.. => Some(usize::from(place) - 160),
    };
    ROOM.with_borrow_mut(|room| {
        let placed = room.put(&text, offset);
        let (_, plain) = &case.tiers[0];
        let expected = tiles(plain, placed);
        for (tier, pretokenizer) in &case.tiers[1..] {
            let found = tiles(pretokenizer, placed);
            let pattern = &case.pattern;
            assert_eq!(
                found, expected,
                "{tier}, pattern {pattern:?}, place {place}, text {text:?}"
            );
        }
        let tiles = expected.map_or(0, |tiles| tiles.len());
        let valid = usize::from(std::str::from_utf8(&text).is_ok());
        signature(&[magnitude(text.len()), magnitude(tiles), valid, usize::from(text.is_ascii())])
    })
}
