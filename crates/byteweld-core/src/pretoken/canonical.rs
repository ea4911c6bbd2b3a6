//! A spec as text, the same for all spellings of a pattern that have the same spec.
//!
//! Sequences of literals are spelt out character by character and sorted, where no one is the start of another:
//! then at most one of them can be there, and their order says nothing.

use std::fmt::Write;

use regex_syntax::hir::ClassUnicode;

use super::spec::{Atom, Literals, Prefix, Spec, Step};

/// More than so many sequences are not spelt out.
const MAX_SPELT: usize = 4096;

pub(super) fn text(spec: &Spec) -> String {
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
    if let Some(spelt) = spell_out(spec, list) {
        return format!("{spelt:?}");
    }
    let sequences = list
        .iter()
        .map(|ids| ids.iter().map(|&id| ranges(&spec.classes[id])).collect::<Vec<_>>().concat());
    sequences.collect::<Vec<_>>().join(",")
}

/// The sorted texts of all sequences; `None` if there are too many, or their order matters.
fn spell_out(spec: &Spec, list: &Literals) -> Option<Vec<String>> {
    let mut spelt = Vec::new();
    for ids in list {
        let mut texts = vec![String::new()];
        for &id in ids {
            let characters = characters(&spec.classes[id])?;
            if texts.len() * characters.len() > MAX_SPELT {
                return None;
            }
            texts = texts
                .iter()
                .flat_map(|start| characters.iter().map(move |c| format!("{start}{c}")))
                .collect();
        }
        spelt.append(&mut texts);
        if spelt.len() > MAX_SPELT {
            return None;
        }
    }
    spelt.sort();
    spelt.dedup();
    // In sorted order, a text stands right before those that it starts, or before one of them.
    let is_free = spelt.windows(2).all(|pair| !pair[1].starts_with(&pair[0]));
    is_free.then_some(spelt)
}

fn characters(class: &ClassUnicode) -> Option<Vec<char>> {
    let count: usize = class.ranges().iter().map(|range| range.len()).sum();
    let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    (count <= MAX_SPELT).then(|| all.collect())
}
