//! The backtracking machine: runs a program (`program.rs`) on a text and counts every step.
//!
//! A step is an instruction, a character of a run, or sixteen compared bytes. All work is counted, so a limit on steps
//! is a limit on time (`budget.rs`).

use regex_automata::util::look::LookMatcher;

use super::program::{Class, Op, Program};
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

/// What an instruction leads to.
enum Step {
    /// The next instruction, at a position.
    Next(usize),
    /// Another instruction, at the same position.
    Jump(usize),
    Fail,
    Match,
}

impl Step {
    #[inline(always)]
    fn next_if(matches: bool, position: usize) -> Self {
        if matches { Self::Next(position) } else { Self::Fail }
    }
}

/// Counts the steps of a search.
struct Meter<'b> {
    left: usize,
    budget: &'b mut Budget,
}

impl Meter<'_> {
    #[inline(always)]
    fn charge(&mut self, mut steps: usize) -> Result<(), GaveUp> {
        while steps > self.left {
            steps -= self.left;
            self.left = self.budget.lend_more()?.ok_or(GaveUp::TooManySteps)?;
        }
        self.left -= steps;
        Ok(())
    }
}

/// Searches texts.
pub(super) struct Machine<'p> {
    program: &'p Program,
    slots: Vec<usize>,
    stack: Vec<Frame>,
    looks: LookMatcher,
}

impl<'p> Machine<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let slots = vec![UNSET; program.slots];
        Self { program, slots, stack: Vec::new(), looks: LookMatcher::new() }
    }

    /// The next match at or after `position`.
    pub(super) fn find(
        &mut self,
        text: &str,
        position: usize,
        budget: &mut Budget,
    ) -> Result<Option<(usize, usize)>, GaveUp> {
        let mut steps = budget.lend();
        let mut start = position;
        let found = loop {
            match self.match_at(text, start, &mut steps, budget)? {
                Some(end) => break Some((start, end)),
                None => match char_at(text.as_bytes(), start) {
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
        text: &str,
        start: usize,
        steps: &mut usize,
        budget: &mut Budget,
    ) -> Result<Option<usize>, GaveUp> {
        let program = self.program;
        let (mut at, mut position) = (0, start);
        // What takes it is inlined, so that the number of steps stays in a register.
        let mut meter = Meter { left: *steps, budget };
        let found = loop {
            meter.charge(1)?;
            match self.step(program, text, at, position, &mut meter)? {
                Step::Next(then) => (at, position) = (at + 1, then),
                Step::Jump(to) => at = to,
                Step::Fail => match self.backtrack(text.as_bytes(), &mut meter)? {
                    Some(alternative) => (at, position) = alternative,
                    None => break None,
                },
                Step::Match => {
                    self.stack.clear();
                    self.slots.fill(UNSET);
                    break Some(position);
                }
            }
        };
        *steps = meter.left;
        Ok(found)
    }

    /// Runs the instruction at index `at`.
    #[inline(always)]
    fn step(
        &mut self,
        Program { ops, classes, .. }: &Program,
        text: &str,
        at: usize,
        position: usize,
        meter: &mut Meter<'_>,
    ) -> Result<Step, GaveUp> {
        let bytes = text.as_bytes();
        Ok(match &ops[at] {
            Op::Class(class) => match char_at(bytes, position) {
                Some((c, length)) if classes[*class].contains(c) => Step::Next(position + length),
                _ => Step::Fail,
            },
            Op::Run { class, min, max, gives_back } => {
                let (end, least, count) = run_end(&classes[*class], bytes, position, *min, *max);
                meter.charge(count)?;
                if count >= *min && *gives_back && end > least {
                    self.push(Frame::AfterRun { op: at as u32 + 1, least, position: end })?;
                }
                Step::next_if(count >= *min, end)
            }
            Op::Literal(literal) => {
                meter.charge(literal.len() / 16)?;
                let rest = bytes.get(position..).unwrap_or_default();
                Step::next_if(rest.starts_with(literal), position + literal.len())
            }
            Op::ClassBack(class) => match char_before(bytes, position) {
                Some((c, length)) if classes[*class].contains(c) => Step::Next(position - length),
                _ => Step::Fail,
            },
            Op::RunBack { class, min, max } => {
                let class = &classes[*class];
                let (start, count) = self.run_back(class, bytes, position, (*min, *max), at + 1)?;
                meter.charge(count)?;
                Step::next_if(count >= *min, start)
            }
            Op::LiteralBack(literal) => {
                meter.charge(literal.len() / 16)?;
                let is_before = bytes[..position].ends_with(literal);
                Step::next_if(is_before, position.saturating_sub(literal.len()))
            }
            Op::Split(first, second) => {
                self.push(Frame::Continue { op: *second as u32, position })?;
                Step::Jump(*first)
            }
            Op::Jump(to) => Step::Jump(*to),
            Op::Save(slot) => {
                self.save(*slot, position)?;
                Step::Next(position)
            }
            Op::SaveStart(slot) => {
                let (start, end) = (self.slots[*slot], self.slots[*slot + 1]);
                if start == UNSET || end <= position {
                    self.save(*slot, position)?;
                }
                Step::Next(position)
            }
            Op::Note(slot) => {
                self.slots[*slot] = position;
                Step::Next(position)
            }
            Op::Mark(slot) => {
                self.slots[*slot] = self.stack.len();
                Step::Next(position)
            }
            Op::Cut(slot) => {
                self.cut(self.slots[*slot], meter)?;
                Step::Next(position)
            }
            Op::Return(slot) => Step::Next(self.slots[*slot]),
            Op::Reject(slot) => {
                self.undo(self.slots[*slot], meter)?;
                Step::Fail
            }
            Op::Zero(slot) => {
                self.save(*slot, 0)?;
                Step::Next(position)
            }
            Op::Repeat { slot, min, max, greedy, exit } => {
                let count = self.slots[*slot];
                if count == *max {
                    return Ok(Step::Jump(*exit));
                }
                self.save(*slot, count + 1)?;
                self.repeat(at, position, count >= *min, *greedy, *exit)?
            }
            Op::RepeatEmpty { slot, min, greedy, exit } => {
                let count = self.slots[*slot];
                if count > 0 && self.slots[*slot + 1] == position {
                    return Ok(Step::Jump(*exit));
                }
                self.save(*slot, count + 1)?;
                if count >= *min {
                    self.save(*slot + 1, position)?;
                }
                self.repeat(at, position, count >= *min, *greedy, *exit)?
            }
            Op::Once(slot) => {
                let here = position + 1; // 0: has not run yet
                if self.slots[*slot] == here {
                    return Ok(Step::Fail);
                }
                self.save(*slot, here)?;
                Step::Next(position)
            }
            Op::StepBack(count) => {
                meter.charge(*count)?;
                let back = |at, _| Some(at - char_before(bytes, at)?.1);
                match (0..*count).try_fold(position, back) {
                    Some(start) => Step::Next(start),
                    None => Step::Fail,
                }
            }
            Op::Look(look) => Step::next_if(self.looks.matches(*look, bytes, position), position),
            Op::EndBeforeBreaks { crlf } => {
                let is_break = |byte: &u8| *byte == b'\n' || *crlf && *byte == b'\r';
                let breaks = bytes[position..].iter().take_while(|byte| is_break(byte)).count();
                meter.charge(breaks)?;
                Step::next_if(position + breaks == bytes.len(), position)
            }
            Op::Backreference { slot, folds_case } => {
                let (from, to) = (self.slots[*slot], self.slots[*slot + 1]);
                let group = if to == UNSET { None } else { text.get(from..to) };
                let Some(group) = group.filter(|group| group.len() <= bytes.len() - position)
                else {
                    return Ok(Step::Fail);
                };
                meter.charge(group.len() / if *folds_case { 1 } else { 16 })?;
                let repeats = is_same(text, position, group, *folds_case);
                Step::next_if(repeats, position + group.len())
            }
            Op::Fail => Step::Fail,
            Op::Match => Step::Match,
        })
    }

    /// The last alternative: an instruction and a position. `None` if none is left.
    #[inline(always)]
    fn backtrack(
        &mut self,
        bytes: &[u8],
        meter: &mut Meter<'_>,
    ) -> Result<Option<(usize, usize)>, GaveUp> {
        loop {
            match self.stack.pop() {
                None => return Ok(None),
                Some(Frame::Restore { slot, value }) => {
                    meter.charge(1)?;
                    self.slots[slot as usize] = value;
                }
                Some(Frame::Continue { op, position }) => return Ok(Some((op as usize, position))),
                Some(Frame::AfterRun { op, least, position: end }) => {
                    let position = end - char_before(bytes, end).map_or(0, |(_, length)| length);
                    if position > least {
                        self.stack.push(Frame::AfterRun { op, least, position });
                    }
                    return Ok(Some((op as usize, position)));
                }
            }
        }
    }

    /// The start of a run of at most `max` characters that ends at `position`, and their number.
    /// Pushes a frame per character, because such runs are short.
    fn run_back(
        &mut self,
        class: &Class,
        bytes: &[u8],
        mut position: usize,
        (min, max): (usize, usize),
        next: usize,
    ) -> Result<(usize, usize), GaveUp> {
        let mut count = 0;
        while count < max
            && let Some((c, length)) = char_before(bytes, position)
            && class.contains(c)
        {
            if count >= min {
                self.push(Frame::Continue { op: next as u32, position })?;
            }
            count += 1;
            position -= length;
        }
        Ok((position, count))
    }

    /// The head of a repeat at index `at`: its body is next, or if it may end, the preferred of both.
    #[inline(always)]
    fn repeat(
        &mut self,
        at: usize,
        position: usize,
        may_end: bool,
        greedy: bool,
        exit: usize,
    ) -> Result<Step, GaveUp> {
        if !may_end {
            return Ok(Step::Next(position));
        }
        let (now, later) = if greedy { (at + 1, exit) } else { (exit, at + 1) };
        self.push(Frame::Continue { op: later as u32, position })?;
        Ok(Step::Jump(now))
    }

    /// Removes the alternatives pushed since the stack had the height `mark`.
    #[inline(always)]
    fn cut(&mut self, mark: usize, meter: &mut Meter<'_>) -> Result<(), GaveUp> {
        meter.charge(self.stack.len() - mark)?;
        let mut kept = mark;
        for index in mark..self.stack.len() {
            if matches!(self.stack[index], Frame::Restore { .. }) {
                self.stack[kept] = self.stack[index];
                kept += 1;
            }
        }
        self.stack.truncate(kept);
        Ok(())
    }

    /// Undoes everything since the stack had the height `mark`.
    #[inline(always)]
    fn undo(&mut self, mark: usize, meter: &mut Meter<'_>) -> Result<(), GaveUp> {
        meter.charge(self.stack.len() - mark)?;
        while self.stack.len() > mark {
            if let Some(Frame::Restore { slot, value }) = self.stack.pop() {
                self.slots[slot as usize] = value;
            }
        }
        Ok(())
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
    #[inline]
    fn save(&mut self, slot: usize, value: usize) -> Result<(), GaveUp> {
        self.push(Frame::Restore { slot: slot as u32, value: self.slots[slot] })?;
        self.slots[slot] = value;
        Ok(())
    }
}

/// The end of a run of at most `max` characters of a class, the position after `min` of them, and their number.
#[inline(always)]
fn run_end(
    class: &Class,
    bytes: &[u8],
    start: usize,
    min: usize,
    max: usize,
) -> (usize, usize, usize) {
    let (mut count, mut end, mut least) = (0, start, start);
    while count < max
        && let Some((c, length)) = char_at(bytes, end)
        && class.contains(c)
    {
        count += 1;
        end += length;
        if count == min {
            least = end;
        }
    }
    (end, least, count)
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
