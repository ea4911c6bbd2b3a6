//! Every SIMD tier against the scanner that goes character by character. One execution: one text at one
//! address, one pattern, all tiers.

use std::cell::RefCell;
use std::rc::Rc;

use byteweld_core::cpu::Tier;
use byteweld_core::pretoken::Pretokenizer;

use crate::guard::Guarded;
use crate::input::Input;
use crate::prepared::Prepared;
use crate::scanner::spans;
use crate::{magnitude, patterns, signature, text};

/// The longest text: several batches of blocks.
const MAX_BYTES: usize = 1 << 14;

struct Case {
    pattern: String,
    by_characters: Pretokenizer,
    by_blocks: Pretokenizer,
}

impl Case {
    fn new(number: u16) -> Self {
        let pattern = patterns::numbered_of_family(number);
        let by_characters = Pretokenizer::by_characters(&pattern)
            .unwrap_or_else(|| panic!("{pattern:?} does not run on a scanner"));
        let by_blocks = Pretokenizer::new(Some(&pattern)).unwrap();
        Self { pattern, by_characters, by_blocks }
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
        let expected = spans(&case.by_characters, placed);
        for tier in Tier::available() {
            let found = tier.force(|| spans(&case.by_blocks, placed));
            let pattern = &case.pattern;
            assert_eq!(
                found, expected,
                "{tier:?}, pattern {pattern:?}, place {place}, text {text:?}"
            );
        }
        let spans = expected.map_or(0, |spans| spans.len());
        let valid = usize::from(std::str::from_utf8(&text).is_ok());
        signature(&[magnitude(text.len()), magnitude(spans), valid, usize::from(text.is_ascii())])
    })
}
