//! The Unicode table agrees with the regex engine.

use super::*;
use crate::pretoken::characters::class_of;

#[test]
fn blocks_are_numbered_by_a_byte() {
    assert!(CellTable::get().blocks.len() <= 256);
    assert!(CELL_NAMES.len() <= 64);
}

#[test]
fn the_table_and_the_regex_engine_agree_on_every_code_point() {
    // The regex engine does not know surrogates.
    let names = CELL_NAMES.iter().filter(|name| **name != "Cs");
    let mut properties: Vec<&str> = names.map(|name| &name[..2]).collect();
    properties.extend(["White_Space", "Han", "L", "M", "N", "P", "S"]);
    for property in properties {
        let hir = regex_syntax::parse(&format!(r"\p{{{property}}}")).unwrap();
        let class = class_of(&hir).unwrap();
        let is_in = |cell: usize| {
            let name = CELL_NAMES[cell];
            name.starts_with(property) || name.split(' ').any(|word| word == property)
        };
        let mut ranges = class.ranges().iter().peekable();
        for c in '\0'..=char::MAX {
            while ranges.peek().is_some_and(|range| range.end() < c) {
                ranges.next();
            }
            let expected = ranges.peek().is_some_and(|range| range.start() <= c);
            assert_eq!(is_in(CellTable::get().cell(c as u32)), expected, "{c:?} {property}");
        }
    }
}
