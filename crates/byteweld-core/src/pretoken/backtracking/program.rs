//! The instructions of the backtracking machine: `compile.rs` writes a program, `machine.rs` runs it.
//!
//! The machine has a position in the text, slots for numbers, and a stack of what to do when an instruction fails.

use regex_automata::util::look::Look;
use regex_syntax::hir::ClassUnicode;

pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) classes: Vec<Class>,
    /// Number of slots. Group `n` starts at the position in slot `2 * n` and ends at that in slot `2 * n + 1`.
    pub(super) slots: usize,
}

/// One instruction. Jump targets are indices of instructions, classes are indices into [`Program::classes`].
pub(super) enum Op {
    /// Matches a string.
    Literal(Box<[u8]>),
    /// Matches one character of a class.
    Class(usize),
    /// Matches as many characters of a class as possible; if `gives_back`, gives them back one by one.
    Run {
        class: usize,
        min: usize,
        max: usize,
        gives_back: bool,
    },
    /// These three match toward the start of the text.
    LiteralBack(Box<[u8]>),
    ClassBack(usize),
    RunBack {
        class: usize,
        min: usize,
        max: usize,
    },
    /// Continues at the first target; if that fails, at the second.
    Split(usize, usize),
    Jump(usize),
    /// Writes the position to a slot.
    Save(usize),
    /// Writes the position to a slot that is never restored, because it is always written again before it is read.
    Note(usize),
    /// Starts a group: writes the position, unless the group has started and not ended.
    SaveStart(usize),
    /// Writes 0 to a slot.
    Zero(usize),
    /// The head of a repeat; `slot` counts.
    Repeat {
        slot: usize,
        min: usize,
        max: usize,
        greedy: bool,
        exit: usize,
    },
    /// The head of a repeat whose body can be empty: exits if the last iteration, which started at the position in
    /// `slot + 1`, was empty.
    RepeatEmpty {
        slot: usize,
        min: usize,
        greedy: bool,
        exit: usize,
    },
    /// Fails if it last ran at this position. It is at both ends of a repeat whose body can be empty, in parts that
    /// fancy-regex leaves to an automaton: an automaton never enters one state twice at one position.
    Once(usize),
    /// Writes the height of the stack to a slot, like [`Op::Note`].
    Mark(usize),
    /// Removes the alternatives pushed since the mark.
    Cut(usize),
    /// Returns to the position in a slot.
    Return(usize),
    /// Undoes everything since the mark and fails.
    Reject(usize),
    /// Moves back by this many characters.
    StepBack(usize),
    Look(Look),
    /// Matches at the end of the text, and before line breaks at the end.
    EndBeforeBreaks {
        crlf: bool,
    },
    /// Matches what a group matched. `slot` is where the group starts.
    Backreference {
        slot: usize,
        folds_case: bool,
    },
    Fail,
    Match,
}

/// A set of characters: one bit for each of the first 2^16 code points, ranges for the others.
pub(super) struct Class {
    low: Box<[u64; 1024]>,
    high: Vec<(u32, u32)>,
}

impl Class {
    pub(super) fn new(class: &ClassUnicode) -> Self {
        let (mut low, mut high) = (Box::new([0; 1024]), Vec::new());
        for range in class.ranges() {
            let (start, end) = (range.start() as u32, range.end() as u32);
            for c in start..=end.min(0xFFFF) {
                low[c as usize >> 6] |= 1 << (c & 63);
            }
            if end > 0xFFFF {
                high.push((start.max(0x1_0000), end));
            }
        }
        Self { low, high }
    }

    #[inline]
    pub(super) fn contains(&self, c: u32) -> bool {
        match self.low.get(c as usize >> 6) {
            Some(word) => word >> (c & 63) & 1 != 0,
            None => {
                let next = self.high.partition_point(|&(start, _)| start <= c);
                next > 0 && c <= self.high[next - 1].1
            }
        }
    }
}
