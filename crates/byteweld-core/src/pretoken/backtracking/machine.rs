//! The backtracking machine: runs a program (`program.rs`) on a text and counts every step.
//!
//! A step is an instruction, a character of a run, or sixteen compared bytes. All work is counted, so a limit on steps
//! is a limit on time (`budget.rs`).

use regex_automata::util::look::LookMatcher;

use super::program::{Op, Program};
use crate::error::Error;
use crate::pretoken::budget::Budget;
use crate::pretoken::characters::{class_of_char, contains};
use crate::reserve::reserve;

/// Largest height of the stack; a frame takes 24 bytes.
const MAX_FRAMES: usize = 1 << 20;

/// The value of a slot that has not been written.
const UNSET: usize = usize::MAX;

/// What to do when an instruction fails.
#[derive(Clone, Copy)]
enum Frame {
    /// Continue at another instruction and position.
    Continue { op: u32, position: usize },
    /// The same after a run from which characters can be given back, down to the position `least`.
    AfterRun { op: u32, least: usize, position: usize },
    /// Restore a slot and fail again.
    Restore { slot: u32, value: usize },
}

/// Why a search ended without an answer.
pub(super) enum GaveUp {
    TooManySteps,
    TooManyFrames,
    Failed(Error),
}

impl From<Error> for GaveUp {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Searches one text.
pub(super) struct Machine<'p> {
    program: &'p Program,
    text: &'p str,
    slots: Vec<usize>,
    stack: Vec<Frame>,
    looks: LookMatcher,
}

impl<'p> Machine<'p> {
    pub(super) fn new(program: &'p Program, text: &'p str) -> Self {
        let slots = vec![UNSET; program.slots];
        Self { program, text, slots, stack: Vec::new(), looks: LookMatcher::new() }
    }

    /// The next match at or after `position`.
    pub(super) fn find(
        &mut self,
        position: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>, GaveUp> {
        let mut steps = budget.lend();
        let mut start = position;
        let found = loop {
            match self.match_at(start, &mut steps, budget)? {
                Some(end) => break Some((start, end)),
                None => match char_at(self.text.as_bytes(), start) {
                    Some((_, length)) => start += length,
                    None => break None,
                },
            }
        };
        budget.give_back(steps);
        Ok(found)
    }

    /// The end of the match that starts at `start`, if there is one.
    fn match_at(
        &mut self,
        start: usize,
        steps: &mut usize,
        budget: &mut Budget,
    ) -> Result<Option<usize>, GaveUp> {
        let Program { ops, classes, .. } = self.program;
        let bytes = self.text.as_bytes();
        let (mut at, mut position) = (0, start);
        let mut left = *steps;
        macro_rules! charge {
            ($steps:expr) => {
                let mut cost: usize = $steps;
                while cost > left {
                    cost -= left;
                    left = budget.lend_more()?.ok_or(GaveUp::TooManySteps)?;
                }
                left -= cost;
            };
        }
        loop {
            charge!(1);
            let matches = match &ops[at] {
                Op::Class(class) => match char_at(bytes, position) {
                    Some((c, length)) if classes[*class].contains(c) => {
                        position += length;
                        true
                    }
                    _ => false,
                },
                Op::Run { class, min, max, gives_back } => {
                    let class = &classes[*class];
                    let (mut count, mut end, mut least) = (0, position, position);
                    while count < *max
                        && let Some((c, length)) = char_at(bytes, end)
                        && class.contains(c)
                    {
                        count += 1;
                        end += length;
                        if count == *min {
                            least = end;
                        }
                    }
                    charge!(count);
                    if count >= *min && *gives_back && end > least {
                        self.push(Frame::AfterRun { op: at as u32 + 1, least, position: end })?;
                    }
                    position = end;
                    count >= *min
                }
                Op::Literal(text) => {
                    charge!(text.len() / 16);
                    let found = bytes.get(position..).is_some_and(|rest| rest.starts_with(text));
                    position += if found { text.len() } else { 0 };
                    found
                }
                Op::ClassBack(class) => match char_before(bytes, position) {
                    Some((c, length)) if classes[*class].contains(c) => {
                        position -= length;
                        true
                    }
                    _ => false,
                },
                Op::RunBack { class, min, max } => {
                    // Pushes a frame per character, because such runs are short.
                    let mut count = 0;
                    while count < *max
                        && let Some((c, length)) = char_before(bytes, position)
                        && classes[*class].contains(c)
                    {
                        if count >= *min {
                            self.push(Frame::Continue { op: at as u32 + 1, position })?;
                        }
                        count += 1;
                        position -= length;
                        charge!(1);
                    }
                    count >= *min
                }
                Op::LiteralBack(text) => {
                    charge!(text.len() / 16);
                    let found = bytes[..position].ends_with(text);
                    position -= if found { text.len() } else { 0 };
                    found
                }
                Op::Split(first, second) => {
                    self.push(Frame::Continue { op: *second as u32, position })?;
                    at = *first;
                    continue;
                }
                Op::Jump(to) => {
                    at = *to;
                    continue;
                }
                Op::Save(slot) => {
                    self.save(*slot, position)?;
                    true
                }
                Op::SaveStart(slot) => {
                    let (start, end) = (self.slots[*slot], self.slots[*slot + 1]);
                    if start == UNSET || end <= position {
                        self.save(*slot, position)?;
                    }
                    true
                }
                Op::Note(slot) => {
                    self.slots[*slot] = position;
                    true
                }
                Op::Mark(slot) => {
                    self.slots[*slot] = self.stack.len();
                    true
                }
                Op::Cut(slot) => {
                    let mark = self.slots[*slot];
                    charge!(self.stack.len() - mark);
                    let mut kept = mark;
                    for index in mark..self.stack.len() {
                        if matches!(self.stack[index], Frame::Restore { .. }) {
                            self.stack[kept] = self.stack[index];
                            kept += 1;
                        }
                    }
                    self.stack.truncate(kept);
                    true
                }
                Op::Return(slot) => {
                    position = self.slots[*slot];
                    true
                }
                Op::Reject(slot) => {
                    let mark = self.slots[*slot];
                    charge!(self.stack.len() - mark);
                    while self.stack.len() > mark {
                        if let Some(Frame::Restore { slot, value }) = self.stack.pop() {
                            self.slots[slot as usize] = value;
                        }
                    }
                    false
                }
                Op::Zero(slot) => {
                    self.save(*slot, 0)?;
                    true
                }
                Op::Repeat { slot, min, max, greedy, exit } => {
                    let count = self.slots[*slot];
                    if count == *max {
                        at = *exit;
                        continue;
                    }
                    self.save(*slot, count + 1)?;
                    if count >= *min {
                        let (now, later) = if *greedy { (at + 1, *exit) } else { (*exit, at + 1) };
                        self.push(Frame::Continue { op: later as u32, position })?;
                        at = now;
                        continue;
                    }
                    true
                }
                Op::RepeatEmpty { slot, min, greedy, exit } => {
                    let count = self.slots[*slot];
                    if count > 0 && self.slots[*slot + 1] == position {
                        at = *exit;
                        continue;
                    }
                    self.save(*slot, count + 1)?;
                    if count >= *min {
                        self.save(*slot + 1, position)?;
                        let (now, later) = if *greedy { (at + 1, *exit) } else { (*exit, at + 1) };
                        self.push(Frame::Continue { op: later as u32, position })?;
                        at = now;
                        continue;
                    }
                    true
                }
                Op::Once(slot) => {
                    let here = position + 1; // 0: has not run yet
                    let is_first = self.slots[*slot] != here;
                    if is_first {
                        self.save(*slot, here)?;
                    }
                    is_first
                }
                Op::StepBack(count) => {
                    charge!(*count);
                    let mut missing = *count;
                    while missing > 0
                        && let Some((_, length)) = char_before(bytes, position)
                    {
                        position -= length;
                        missing -= 1;
                    }
                    missing == 0
                }
                Op::Look(look) => self.looks.matches(*look, bytes, position),
                Op::EndBeforeBreaks { crlf } => {
                    let is_break = |byte: &u8| *byte == b'\n' || *crlf && *byte == b'\r';
                    let breaks = bytes[position..].iter().take_while(|byte| is_break(byte)).count();
                    charge!(breaks);
                    position + breaks == bytes.len()
                }
                Op::Backreference { slot, folds_case } => {
                    let (from, to) = (self.slots[*slot], self.slots[*slot + 1]);
                    let group = if to == UNSET { None } else { self.text.get(from..to) };
                    let group = group.filter(|group| group.len() <= bytes.len() - position);
                    charge!(
                        group.map_or(0, |group| group.len() / if *folds_case { 1 } else { 16 })
                    );
                    match group.filter(|group| is_same(self.text, position, group, *folds_case)) {
                        Some(group) => {
                            position += group.len();
                            true
                        }
                        None => false,
                    }
                }
                Op::Fail => false,
                Op::Match => {
                    self.stack.clear();
                    self.slots.fill(UNSET);
                    *steps = left;
                    return Ok(Some(position));
                }
            };
            if matches {
                at += 1;
                continue;
            }
            // It failed: continue with the last alternative.
            loop {
                match self.stack.pop() {
                    None => {
                        *steps = left;
                        return Ok(None);
                    }
                    Some(Frame::Restore { slot, value }) => {
                        charge!(1);
                        self.slots[slot as usize] = value;
                    }
                    Some(Frame::Continue { op, position: then }) => {
                        (at, position) = (op as usize, then);
                        break;
                    }
                    Some(Frame::AfterRun { op, least, position: end }) => {
                        let then = end - char_before(bytes, end).map_or(0, |(_, length)| length);
                        if then > least {
                            self.stack.push(Frame::AfterRun { op, least, position: then });
                        }
                        (at, position) = (op as usize, then);
                        break;
                    }
                }
            }
        }
    }

    #[inline]
    fn push(&mut self, frame: Frame) -> Result<(), GaveUp> {
        if self.stack.len() == self.stack.capacity() {
            if self.stack.len() >= MAX_FRAMES {
                return Err(GaveUp::TooManyFrames);
            }
            reserve(&mut self.stack, 1)?;
        }
        self.stack.push(frame);
        Ok(())
    }

    /// Writes a slot, to be restored when backtracking.
    fn save(&mut self, slot: usize, value: usize) -> Result<(), GaveUp> {
        self.push(Frame::Restore { slot: slot as u32, value: self.slots[slot] })?;
        self.slots[slot] = value;
        Ok(())
    }
}

/// Whether the text at a position repeats what a group matched.
fn is_same(text: &str, position: usize, group: &str, folds_case: bool) -> bool {
    let Some(here) = text.get(position..position + group.len()) else { return false };
    let folds_to = |a: char, b: char| {
        if a == b {
            return true;
        }
        let mut class = class_of_char(a);
        class.case_fold_simple();
        contains(&class, b)
    };
    here == group
        || folds_case
            && here.chars().count() == group.chars().count()
            && here.chars().zip(group.chars()).all(|(a, b)| folds_to(a, b))
}

/// The character at a position and its length.
#[inline(always)]
fn char_at(bytes: &[u8], position: usize) -> Option<(u32, usize)> {
    let first = *bytes.get(position)?;
    if first < 0x80 { Some((u32::from(first), 1)) } else { wide_char_at(bytes, position) }
}

/// The same for a non-ASCII character of valid UTF-8.
#[inline]
fn wide_char_at(bytes: &[u8], position: usize) -> Option<(u32, usize)> {
    let byte = |at: usize| bytes.get(position + at).map(|&byte| u32::from(byte));
    let (first, second) = (byte(0)?, byte(1)? & 0x3F);
    if first < 0xE0 {
        return Some(((first & 0x1F) << 6 | second, 2));
    }
    let third = byte(2)? & 0x3F;
    if first < 0xF0 {
        return Some(((first & 0x0F) << 12 | second << 6 | third, 3));
    }
    Some(((first & 0x07) << 18 | second << 12 | third << 6 | byte(3)? & 0x3F, 4))
}

/// The character before a position and its length.
fn char_before(bytes: &[u8], position: usize) -> Option<(u32, usize)> {
    let start = bytes[..position].iter().rposition(|byte| !(0x80..0xC0).contains(byte))?;
    char_at(bytes, start)
}
