//! A spec as a string that is the same for all spellings of a pattern.
//!
//! Literals are spelled out and sorted if none is a prefix of another: then at most one can match at an offset, and
//! their order does not matter.

use std::fmt::Write;

use regex_syntax::hir::ClassUnicode;

use super::spec::{Atom, Literals, Prefix, Spec, Step};

/// A list of literals that stands for more strings than this is not spelled out.
const MAX_STRINGS: usize = 4096;

/// The string of a spec.
pub(crate) fn text(spec: &Spec) -> String {
    let class = |id: &usize| ranges(&spec.classes[*id]);
    let atoms = spec.atoms.iter().map(|atom| match atom {
        Atom::Literals(list) => format!("literals({})", literals(spec, list)),
        Atom::Run(run) => {
            let prefix = match &run.prefix {
                Prefix::None => String::new(),
                Prefix::Optional(id) => format!("{}?", class(id)),
                Prefix::Required(id) => class(id),
            };
            let max = run.max.map(|max| max.to_string()).unwrap_or_default();
            let tail = run.tail.as_ref().map(class).unwrap_or_default();
            let suffix = literals(spec, &run.suffix);
            format!("run({prefix};{}{{1,{max}}};{tail};{suffix})", class(&run.body))
        }
        Atom::Cased(cased) => format!(
            "cased({};{};{};{})",
            cased.prefix.as_ref().map(class).unwrap_or_default(),
            class(&cased.upper),
            class(&cased.lower),
            literals(spec, &cased.suffix)
        ),
        Atom::Space(space) => {
            let steps = space.steps.iter().map(|step| match step {
                Step::AtEnd => "at-end".to_owned(),
                Step::ToLast(id) => format!("to-last{}", class(id)),
                Step::AllButOne => "all-but-one".to_owned(),
                Step::All => "all".to_owned(),
                Step::One => "one".to_owned(),
            });
            format!("space({};{})", class(&space.class), steps.collect::<Vec<_>>().join(","))
        }
    });
    atoms.collect::<Vec<_>>().join("|")
}

fn ranges(class: &ClassUnicode) -> String {
    let mut text = "[".to_owned();
    for range in class.ranges() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{:X}-{:X} ", range.start() as u32, range.end() as u32);
    }
    text.push(']');
    text
}

fn literals(spec: &Spec, list: &Literals) -> String {
    if let Some(strings) = spell_out(spec, list) {
        return format!("{strings:?}");
    }
    let sequences =
        list.iter().map(|ids| ids.iter().map(|&id| ranges(&spec.classes[id])).collect::<String>());
    sequences.collect::<Vec<_>>().join(",")
}

/// All strings of the sequences, sorted; `None` if there are too many or their order matters.
fn spell_out(spec: &Spec, list: &Literals) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for ids in list {
        let mut strings = vec![String::new()];
        for &id in ids {
            let characters = characters(&spec.classes[id])?;
            if strings.len() * characters.len() > MAX_STRINGS {
                return None;
            }
            strings = strings
                .iter()
                .flat_map(|start| characters.iter().map(move |c| format!("{start}{c}")))
                .collect();
        }
        all.append(&mut strings);
        if all.len() > MAX_STRINGS {
            return None;
        }
    }
    all.sort();
    all.dedup();
    // In sorted order, a string that is a prefix of another is also a prefix of the next.
    let is_prefix_free = all.windows(2).all(|pair| !pair[1].starts_with(&pair[0]));
    is_prefix_free.then_some(all)
}

fn characters(class: &ClassUnicode) -> Option<Vec<char>> {
    let count: usize = class.ranges().iter().map(|range| range.len()).sum();
    let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    (count <= MAX_STRINGS).then(|| all.collect())
}
