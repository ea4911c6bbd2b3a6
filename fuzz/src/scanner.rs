//! The engine's pre-tokens against the regex engine's. One execution: one text, one pattern.

use std::cell::RefCell;
use std::rc::Rc;

use byteweld_core::pretoken::{Engine, Pretokenizer};

use crate::input::Input;
use crate::oracle::Oracle;
use crate::prepared::Prepared;
use crate::{magnitude, patterns, signature, text};

/// The longest text: on some, the regex engine takes quadratic time.
const MAX_BYTES: usize = 1 << 12;

/// From this length on, a pattern that is not a scanner's may exceed its limits.
const LONG: usize = 512;

struct Case {
    pattern: String,
    pretokenizer: Pretokenizer,
    oracle: Oracle,
}

impl Case {
    fn new(number: u16) -> Self {
        let pattern = patterns::numbered(number);
        let pretokenizer = Pretokenizer::new(Some(&pattern)).unwrap();
        let oracle = Oracle::new(&pattern);
        Self { pattern, pretokenizer, oracle }
    }
}

/// Where each pre-token ends, and whether it is a match; `None` if the pattern exceeds its limits.
pub(crate) fn spans(pretokenizer: &Pretokenizer, text: &[u8]) -> Option<Vec<(usize, bool)>> {
    pretokenizer.ends(text).ok()
}

pub fn run(input: &[u8]) -> u64 {
    thread_local!(static CASES: RefCell<Prepared<Case>> = RefCell::default());
    let mut input = Input::new(input);
    let number = input.number();
    let case: Rc<Case> = CASES.with_borrow_mut(|cases| cases.get(number, Case::new));
    let Case { pattern, pretokenizer, oracle } = &*case;
    let cut = input.number();
    let text = text::text(&mut input, MAX_BYTES);
    let engine = pretokenizer.engine();
    let found = spans(pretokenizer, &text);
    if found.is_none() && engine != Engine::Scanner && text.len() >= LONG {
        return signature(&[1]);
    }
    let Some(expected) = oracle.spans(&text) else { return signature(&[2]) };
    assert_eq!(found.as_ref(), Some(&expected), "pattern {pattern:?}, text {text:?}");

    let size = |number: usize| magnitude(number).min(8); // few long texts are kept: they take long
    // A cut changes no pre-token, whatever is seen of the text. Cuts need an automaton, which takes longer to
    // make than all else, so only some of the random patterns have one.
    if usize::from(number) >= patterns::WRITTEN && !number.is_multiple_of(16) {
        return signature(&[3, size(text.len()), size(expected.len())]);
    }
    let seen = usize::from(cut) % (text.len() + 1);
    let certain = pretokenizer.certain_end(&text[..seen]);
    for cut in [pretokenizer.last_cut(&text[..seen], seen).unwrap_or(0), certain] {
        if cut > 0
            && let (Some(mut parts), Some(rest)) =
                (spans(pretokenizer, &text[..cut]), spans(pretokenizer, &text[cut..]))
        {
            parts.extend(rest.into_iter().map(|(end, is_match)| (cut + end, is_match)));
            assert_eq!(parts, expected, "pattern {pattern:?}, cut at {cut} of {text:?}");
        }
    }
    let matches = expected.iter().filter(|(_, is_match)| *is_match).count();
    let shape = [engine as usize, size(text.len()), size(expected.len())];
    let valid = usize::from(std::str::from_utf8(&text).is_ok());
    signature(&[shape[0], shape[1], shape[2], size(matches), valid, size(certain)])
}
