//! A pattern as a program for the backtracking machine (`machine.rs`).
//!
//! fancy-regex parses the pattern and tells which parts need backtracking; the machine is our own, because
//! fancy-regex's counts only some of its steps, and per match. The program gives what fancy-regex gives. It hands
//! parts that need no backtracking to regex-syntax, which factors alternatives (`XY|XZ` becomes `X(?:Y|Z)`): that
//! can change which one is preferred (see `normalise.rs`), so we do it in the same places.
//!
//! Look-behind runs backwards, from the place where it stands.

use std::collections::BTreeMap;

use fancy_regex::internal::{AnalyzeContext, Info, analyze};
use fancy_regex::{Assertion, Expr, LookAround};
use regex_automata::util::look::Look;
use regex_syntax::hir::{self, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look as HirLook};

use super::normalise::class_of;

/// A longer pattern is refused: those of the field have at most a few thousand bytes, and compiling one takes up to
/// a tenth of a millisecond per byte.
const MAX_PATTERN_BYTES: usize = 1 << 14;

/// A pattern that would be larger if its repeats were written out is refused.
const MAX_EXPANDED: usize = 1 << 20;

/// One instruction. A jump's target is the index of an instruction.
pub(super) enum Op {
    /// Takes this text.
    Literal(Box<[u8]>),
    /// Takes a character of a class.
    Class(usize),
    /// Takes as many characters of a class as there are, and gives them back one by one if `gives_back`.
    Run {
        class: usize,
        min: usize,
        max: usize,
        gives_back: bool,
    },
    /// The same three, towards the start of the text.
    LiteralBack(Box<[u8]>),
    ClassBack(usize),
    RunBack {
        class: usize,
        min: usize,
        max: usize,
    },
    /// Goes on at the first; if that fails, at the second.
    Split(usize, usize),
    Jump(usize),
    /// Writes the position into a slot.
    Save(usize),
    /// The same where nothing will ever have to be undone: it is read, if at all, before it is written again.
    Note(usize),
    /// Starts a group: writes the position, if the group has not started or has ended (its end is the next slot).
    SaveStart(usize),
    /// Writes 0 into a slot.
    Zero(usize),
    /// The start of a repeat: `slot` counts.
    Repeat {
        slot: usize,
        min: usize,
        max: usize,
        greedy: bool,
        exit: usize,
    },
    /// The same for a body that can be empty: leaves when `slot + 1` says that the last one was.
    RepeatEmpty {
        slot: usize,
        min: usize,
        greedy: bool,
        exit: usize,
    },
    /// Fails if it was here before at this position. In a plain part, this stands at both ends of a repeat whose body
    /// can be empty: an automaton is never twice in one state at one position.
    Once(usize),
    /// Writes into a slot which alternatives are open; as [`Op::Note`].
    Mark(usize),
    /// Forgets those that were opened since.
    Cut(usize),
    /// Goes back to the position in a slot.
    Return(usize),
    /// Undoes all since the mark, and fails.
    Reject(usize),
    /// Goes back by this many characters.
    GoBack(usize),
    Look(Look),
    /// The end, or nothing but line breaks to the end.
    EndBeforeBreaks {
        crlf: bool,
    },
    /// Takes what a group took, whose start is in a slot and whose end in the next.
    SameAs {
        slot: usize,
        folds_case: bool,
    },
    Fail,
    Match,
}

/// A set of characters: a bit for each of the first 2^16, ranges for the others.
pub(super) struct Class {
    low: Box<[u64; 1024]>,
    high: Vec<(u32, u32)>,
}

impl Class {
    fn new(class: &ClassUnicode) -> Self {
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

pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) classes: Vec<Class>,
    pub(super) slots: usize,
}

impl Program {
    /// Compiles a pattern. The error says what is wrong with it.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "has {} bytes; at most {MAX_PATTERN_BYTES} are supported",
                pattern.len()
            ));
        }
        let does_not_compile =
            |e: &dyn std::error::Error| format!("does not compile: {}", chain(e));
        let tree = Expr::parse_tree(pattern).map_err(|e| does_not_compile(&e))?;
        check_size(&tree.expr)?;
        let context = AnalyzeContext {
            explicit_capture_group_0: false,
            find_not_empty: false,
            disallow_empty_match_at_eof_after_newline: false,
            allow_input_assertion_overrides: false,
        };
        let info = analyze(&tree, context).map_err(|e| does_not_compile(&e))?;
        let is_referenced = |group: usize| tree.backrefs.contains(group);
        let mut compiler = Compiler {
            ops: Vec::new(),
            classes: Vec::new(),
            known: BTreeMap::new(),
            slots: 2 * info.end_group(),
            in_open_look: false,
            is_referenced: &is_referenced,
        };
        compiler.visit(&info, false, false)?;
        compiler.ops.push(Op::Match);
        let Compiler { ops, classes, slots, .. } = compiler;
        Ok(Self { ops, classes, slots })
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string().replace('\n', " ");
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {}", error.to_string().replace('\n', " "));
        cause = error.source();
    }
    message
}

/// Refuses an expression that is too large when its repeats are written out. (The parser limits how deep it is.)
fn check_size(expr: &Expr) -> Result<(), String> {
    fn expanded(expr: &Expr) -> usize {
        let inside = expr.children_iter().map(expanded).fold(1, usize::saturating_add);
        match expr {
            Expr::Repeat { lo, hi, .. } => {
                let times = if *hi == usize::MAX { (*lo).max(1) } else { (*hi).max(1) };
                inside.saturating_mul(times)
            }
            Expr::Literal { val, .. } => val.len(),
            _ => inside,
        }
    }
    if expanded(expr) > MAX_EXPANDED {
        return Err(format!(
            "is too large: with its repeats written out it has more than {MAX_EXPANDED} parts"
        ));
    }
    Ok(())
}

struct Compiler<'a> {
    ops: Vec<Op>,
    classes: Vec<Class>,
    /// The classes by their ranges.
    known: BTreeMap<Vec<ClassUnicodeRange>, usize>,
    slots: usize,
    /// Inside a look-around that can be gone back into.
    in_open_look: bool,
    is_referenced: &'a dyn Fn(usize) -> bool,
}

type Outcome = Result<(), String>;

impl Compiler<'_> {
    /// Compiles a part. `hard`: what follows may want it to match differently. `back`: towards the start of the text.
    fn visit(&mut self, info: &Info<'_>, hard: bool, back: bool) -> Outcome {
        if !hard && !info.hard {
            return self.plain(std::slice::from_ref(info), back);
        }
        match info.expr {
            Expr::Empty | Expr::DefineGroup { .. } => {}
            Expr::Concat(_) => self.concat(info, hard, back)?,
            Expr::Alt(_) => {
                self.alternatives(info.children.len(), |compiler, at| {
                    compiler.visit(&info.children[at], hard, back)
                })?;
            }
            Expr::Group(_) => {
                let (group, inner) = (info.start_group(), &info.children[0]);
                if !(self.is_referenced)(group) {
                    return self.visit(inner, hard, back);
                }
                if back {
                    return Err(unsupported("a group that is referred to, in a look-behind"));
                }
                self.ops.push(Op::SaveStart(2 * group));
                self.visit(inner, hard, back)?;
                self.ops.push(Op::Save(2 * group + 1));
            }
            Expr::Repeat { lo, hi, greedy, .. } => {
                let child = &info.children[0];
                // As in fancy-regex: an optional part is no harder than its place, other repeats are.
                let hard = hard || (info.hard && (*lo, *hi) != (0, 1));
                let bounds = (*lo, *hi, *greedy);
                if !child.hard && child.const_size && child.min_size == 1 {
                    let hir = parse(std::slice::from_ref(child))?;
                    if self.run(bounds, &hir, back) {
                        return Ok(());
                    }
                }
                self.repeat(bounds, child.min_size == 0, |compiler| {
                    compiler.visit(child, hard, back)
                })?;
            }
            Expr::LookAround(_, kind) => self.look_around(&info.children[0], *kind)?,
            Expr::AtomicGroup(_) if back => {
                return Err(unsupported("an atomic group or possessive repeat in a look-behind"));
            }
            Expr::AtomicGroup(_) => {
                self.atomic(|compiler| compiler.visit(&info.children[0], false, back))?;
            }
            Expr::Assertion(assertion) => self.assertion(*assertion),
            Expr::Backref { .. } if back => {
                return Err(unsupported("a reference to a group, in a look-behind"));
            }
            Expr::Backref { group, casei } => {
                self.ops.push(Op::SameAs { slot: 2 * group, folds_case: *casei });
            }
            Expr::GeneralNewline { unicode } => self.line_break(*unicode, back)?,
            Expr::LiteralBytes { bytes } => {
                let text: String = bytes.iter().copied().map(char::from).collect();
                self.literal(text.as_bytes(), back);
            }
            Expr::BacktrackingControlVerb(fancy_regex::BacktrackingControlVerb::Fail) => {
                self.ops.push(Op::Fail);
            }
            Expr::Any { .. } | Expr::Literal { .. } | Expr::Delegate { .. } => {
                self.plain(std::slice::from_ref(info), back)?;
            }
            Expr::Conditional { .. } | Expr::BackrefExistsCondition { .. } => {
                return Err(unsupported("a condition"));
            }
            Expr::SubroutineCall(_) | Expr::BackrefWithRelativeRecursionLevel { .. } => {
                return Err(unsupported("a call of a group"));
            }
            Expr::Absent(_) => return Err(unsupported("an absent operator")),
            Expr::BacktrackingControlVerb(_) => return Err(unsupported("a control verb")),
            Expr::KeepOut | Expr::ContinueFromPreviousMatchEnd | Expr::AstNode(..) => {
                return Err(unsupported("\\K or \\G"));
            }
        }
        Ok(())
    }

    /// A sequence. The start that has a fixed length and the end are handed over where fancy-regex does so.
    fn concat(&mut self, info: &Info<'_>, hard: bool, back: bool) -> Outcome {
        let children = &info.children[..];
        let start = children.iter().take_while(|c| c.const_size && !c.hard).count();
        let is_plain = |c: &&Info<'_>| !c.hard && (c.const_size || !hard);
        let end = children.len() - children[start..].iter().rev().take_while(is_plain).count();
        if back {
            self.plain(&children[end..], back)?;
            for child in children[start..end].iter().rev() {
                self.visit(child, true, back)?;
            }
            return self.plain(&children[..start], back);
        }
        self.plain(&children[..start], back)?;
        for child in &children[start..end] {
            self.visit(child, true, back)?;
        }
        self.plain(&children[end..], back)
    }

    /// Parts that need no backtracking, as regex-syntax understands them. fancy-regex never goes back into one. That
    /// makes a difference only in a look-ahead that can be gone back into: elsewhere, such a part has a fixed length,
    /// or nothing follows it.
    fn plain(&mut self, infos: &[Info<'_>], back: bool) -> Outcome {
        if infos.is_empty() {
            return Ok(());
        }
        let hir = parse(infos)?;
        if self.in_open_look {
            return self.atomic(|compiler| compiler.hir(&hir, back));
        }
        self.hir(&hir, back)
    }

    fn hir(&mut self, hir: &Hir, back: bool) -> Outcome {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(hir::Literal(bytes)) => self.literal(bytes, back),
            HirKind::Class(_) => {
                let class = class_of(hir).ok_or_else(|| unsupported("a class of bytes"))?;
                let class = self.class(class);
                self.ops.push(if back { Op::ClassBack(class) } else { Op::Class(class) });
            }
            HirKind::Look(look) => self.ops.push(Op::Look(machine_look(*look))),
            HirKind::Capture(capture) => self.hir(&capture.sub, back)?,
            HirKind::Concat(parts) if back => {
                for part in parts.iter().rev() {
                    self.hir(part, back)?;
                }
            }
            HirKind::Concat(parts) => {
                for part in parts {
                    self.hir(part, back)?;
                }
            }
            HirKind::Alternation(parts) => {
                self.alternatives(parts.len(), |compiler, at| compiler.hir(&parts[at], back))?;
            }
            HirKind::Repetition(repeat) => {
                let max = repeat.max.map_or(usize::MAX, |max| max as usize);
                let bounds = (repeat.min as usize, max, repeat.greedy);
                let body = |compiler: &mut Self| compiler.hir(&repeat.sub, back);
                if self.run(bounds, &repeat.sub, back) {
                } else if max == usize::MAX && repeat.sub.properties().minimum_len() == Some(0) {
                    self.repeat_empty(bounds, body)?;
                } else {
                    self.repeat(bounds, false, body)?;
                }
            }
        }
        Ok(())
    }

    fn literal(&mut self, bytes: &[u8], back: bool) {
        let bytes = bytes.into();
        self.ops.push(if back { Op::LiteralBack(bytes) } else { Op::Literal(bytes) });
    }

    fn class(&mut self, class: ClassUnicode) -> usize {
        if let Some(&known) = self.known.get(class.ranges()) {
            return known;
        }
        self.classes.push(Class::new(&class));
        self.known.insert(class.ranges().to_vec(), self.classes.len() - 1);
        self.classes.len() - 1
    }

    /// A repeat of one class, which is what most repeats are; false if it is none, or is not greedy.
    fn run(&mut self, (min, max, greedy): (usize, usize, bool), one: &Hir, back: bool) -> bool {
        let Some(class) = class_of(one).filter(|_| greedy && max > 1) else { return false };
        let class = self.class(class);
        self.ops.push(if back {
            Op::RunBack { class, min, max }
        } else {
            Op::Run { class, min, max, gives_back: true }
        });
        true
    }

    fn alternatives(
        &mut self,
        count: usize,
        mut each: impl FnMut(&mut Self, usize) -> Outcome,
    ) -> Outcome {
        let mut jumps = Vec::new();
        for at in 0..count {
            let split = self.ops.len();
            if at + 1 < count {
                self.ops.push(Op::Fail); // replaced below
            }
            each(self, at)?;
            if at + 1 < count {
                jumps.push(self.ops.len());
                self.ops.push(Op::Fail);
                self.ops[split] = Op::Split(split + 1, self.ops.len());
            }
        }
        let end = self.ops.len();
        for jump in jumps {
            self.ops[jump] = Op::Jump(end);
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        (min, max, greedy): (usize, usize, bool),
        can_be_empty: bool,
        body: impl FnOnce(&mut Self) -> Outcome,
    ) -> Outcome {
        if max == 0 {
            return Ok(());
        }
        let start = self.ops.len();
        if max == 1 {
            if min == 1 {
                return body(self);
            }
            self.ops.push(Op::Fail); // replaced below
            body(self)?;
            let end = self.ops.len();
            self.ops[start] = split(greedy, start + 1, end);
            return Ok(());
        }
        let slot = self.slots;
        if max == usize::MAX && !can_be_empty && min <= 1 {
            if min == 1 {
                body(self)?;
                let end = self.ops.len() + 1;
                self.ops.push(split(greedy, start, end));
                return Ok(());
            }
            self.ops.push(Op::Fail); // replaced below
            body(self)?;
            self.ops.push(Op::Jump(start));
            let end = self.ops.len();
            self.ops[start] = split(greedy, start + 1, end);
            return Ok(());
        }
        self.slots += 2;
        self.ops.push(Op::Zero(slot));
        let head = self.ops.len();
        self.ops.push(Op::Fail); // replaced below
        body(self)?;
        self.ops.push(Op::Jump(head));
        let exit = self.ops.len();
        self.ops[head] = if max == usize::MAX && can_be_empty {
            Op::RepeatEmpty { slot, min, greedy, exit }
        } else {
            Op::Repeat { slot, min, max, greedy, exit }
        };
        Ok(())
    }

    /// A repeat without end in a plain part whose body can be empty.
    fn repeat_empty(
        &mut self,
        (min, _, greedy): (usize, usize, bool),
        body: impl Fn(&mut Self) -> Outcome,
    ) -> Outcome {
        if min > 1 {
            self.repeat((min - 1, min - 1, true), false, &body)?;
        }
        let start = self.ops.len();
        if min == 0 {
            self.ops.push(Op::Fail); // replaced below
        }
        let slot = self.slots;
        self.slots += 2;
        self.ops.extend([Op::Zero(slot), Op::Zero(slot + 1)]);
        let head = self.ops.len();
        self.ops.push(Op::Once(slot));
        body(self)?;
        self.ops.push(Op::Once(slot + 1));
        let exit = self.ops.len() + 1;
        self.ops.push(split(greedy, head, exit));
        if min == 0 {
            self.ops[start] = split(greedy, start + 1, exit);
        }
        Ok(())
    }

    fn atomic(&mut self, body: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let (slot, start) = (self.slots, self.ops.len());
        self.slots += 1;
        self.ops.push(Op::Mark(slot));
        body(self)?;
        if let [Op::Mark(_), Op::Run { class, min, max, .. }] = self.ops[start..] {
            self.ops.truncate(start);
            self.ops.push(Op::Run { class, min, max, gives_back: false });
        } else {
            self.ops.push(Op::Cut(slot));
        }
        Ok(())
    }

    fn look_around(&mut self, inner: &Info<'_>, kind: LookAround) -> Outcome {
        let is_behind = matches!(kind, LookAround::LookBehind | LookAround::LookBehindNeg);
        let is_negative = matches!(kind, LookAround::LookAheadNeg | LookAround::LookBehindNeg);
        let (position, mark) = (self.slots, self.slots + 1);
        self.slots += 2;
        if is_negative {
            self.ops.push(Op::Mark(mark));
            let split = self.ops.len();
            self.ops.push(Op::Fail); // replaced below
            self.look(inner, is_behind)?;
            self.ops.push(Op::Reject(mark));
            let end = self.ops.len();
            self.ops[split] = Op::Split(split + 1, end);
            return Ok(());
        }
        // As in fancy-regex, a group inside may match differently if what follows refers to it.
        if (inner.start_group()..inner.end_group()).any(self.is_referenced) {
            let was_in_open_look = std::mem::replace(&mut self.in_open_look, true);
            self.ops.push(Op::Save(position));
            self.look(inner, is_behind)?;
            self.ops.push(Op::Return(position));
            self.in_open_look = was_in_open_look;
        } else {
            self.ops.extend([Op::Mark(mark), Op::Note(position)]);
            self.look(inner, is_behind)?;
            self.ops.extend([Op::Cut(mark), Op::Return(position)]);
        }
        Ok(())
    }

    fn look(&mut self, inner: &Info<'_>, is_behind: bool) -> Outcome {
        if !is_behind {
            return self.visit(inner, false, false);
        }
        // Backwards, what order alternatives have does not matter: there is a match or not. Where it does matter,
        // the start must be known.
        let start = self.ops.len();
        let Err(problem) = self.visit(inner, false, true) else { return Ok(()) };
        if !inner.const_size {
            return Err(problem);
        }
        self.ops.truncate(start);
        self.ops.push(Op::GoBack(inner.min_size));
        self.visit(inner, false, false)
    }

    fn line_break(&mut self, unicode: bool, back: bool) -> Outcome {
        if back {
            return Err(unsupported("\\R in a look-behind"));
        }
        let one = if unicode { "[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]" } else { "[\n\x0B\x0C\r]" };
        let hir = regex_syntax::parse(&format!("\r\n|{one}"));
        let hir = hir.map_err(|e| format!("does not compile: {}", chain(&e)))?;
        self.atomic(|compiler| compiler.hir(&hir, false))
    }

    fn assertion(&mut self, assertion: Assertion) {
        self.ops.push(match assertion {
            Assertion::StartText => Op::Look(Look::Start),
            Assertion::EndText => Op::Look(Look::End),
            Assertion::EndTextIgnoreTrailingNewlines { crlf } => Op::EndBeforeBreaks { crlf },
            Assertion::StartLine { crlf: false }
            | Assertion::StartLineOniguruma { crlf: false } => Op::Look(Look::StartLF),
            Assertion::StartLine { crlf: true } | Assertion::StartLineOniguruma { crlf: true } => {
                Op::Look(Look::StartCRLF)
            }
            Assertion::EndLine { crlf: false } => Op::Look(Look::EndLF),
            Assertion::EndLine { crlf: true } => Op::Look(Look::EndCRLF),
            Assertion::LeftWordBoundary => Op::Look(Look::WordStartUnicode),
            Assertion::LeftWordHalfBoundary => Op::Look(Look::WordStartHalfUnicode),
            Assertion::RightWordBoundary => Op::Look(Look::WordEndUnicode),
            Assertion::RightWordHalfBoundary => Op::Look(Look::WordEndHalfUnicode),
            Assertion::WordBoundary => Op::Look(Look::WordUnicode),
            Assertion::NotWordBoundary => Op::Look(Look::WordUnicodeNegate),
        });
    }
}

/// What regex-syntax makes of parts that need no backtracking.
fn parse(infos: &[Info<'_>]) -> Result<Hir, String> {
    let mut pattern = String::new();
    for info in infos {
        info.expr.to_str(&mut pattern, 1);
    }
    regex_syntax::parse(&pattern).map_err(|e| format!("does not compile: {}", chain(&e)))
}

fn split(greedy: bool, body: usize, exit: usize) -> Op {
    if greedy { Op::Split(body, exit) } else { Op::Split(exit, body) }
}

fn unsupported(what: &str) -> String {
    format!("holds {what}, which is not supported")
}

fn machine_look(look: HirLook) -> Look {
    match look {
        HirLook::Start => Look::Start,
        HirLook::End => Look::End,
        HirLook::StartLF => Look::StartLF,
        HirLook::EndLF => Look::EndLF,
        HirLook::StartCRLF => Look::StartCRLF,
        HirLook::EndCRLF => Look::EndCRLF,
        HirLook::WordAscii => Look::WordAscii,
        HirLook::WordAsciiNegate => Look::WordAsciiNegate,
        HirLook::WordUnicode => Look::WordUnicode,
        HirLook::WordUnicodeNegate => Look::WordUnicodeNegate,
        HirLook::WordStartAscii => Look::WordStartAscii,
        HirLook::WordEndAscii => Look::WordEndAscii,
        HirLook::WordStartUnicode => Look::WordStartUnicode,
        HirLook::WordEndUnicode => Look::WordEndUnicode,
        HirLook::WordStartHalfAscii => Look::WordStartHalfAscii,
        HirLook::WordEndHalfAscii => Look::WordEndHalfAscii,
        HirLook::WordStartHalfUnicode => Look::WordStartHalfUnicode,
        HirLook::WordEndHalfUnicode => Look::WordEndHalfUnicode,
    }
}
