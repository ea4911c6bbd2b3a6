//! Compiles a pattern into a program for the backtracking machine.
//!
//! fancy-regex parses the pattern and finds the parts that need backtracking. We do not run it, because it counts only
//! some of its steps, and per match; but a program finds exactly what fancy-regex finds. It leaves the other parts to
//! regex-syntax, which factors alternatives; that can change which one is preferred (see `factored` in
//! `patterns/normalize.rs`), so we do the same with the same parts.
//!
//! A look-behind runs backward from its position.

use std::collections::BTreeMap;

use fancy_regex::internal::{AnalyzeContext, Info, analyze};
use fancy_regex::{Assertion, BacktrackingControlVerb, Expr, LookAround};
use regex_automata::util::look::Look;
use regex_syntax::hir::{self, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look as HirLook};

use super::program::{Class, Op, Program};
use crate::pretoken::characters::class_of;

/// Longest accepted pattern. Those in use have at most a few thousand bytes, and compiling takes up to a tenth of a
/// millisecond per byte.
const MAX_PATTERN_BYTES: usize = 1 << 14;

/// Largest accepted pattern with its repeats written out.
const MAX_EXPANDED: usize = 1 << 20;

impl Program {
    /// Compiles a pattern. The error says what is wrong with it.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "has {} bytes; at most {MAX_PATTERN_BYTES} are supported",
                pattern.len()
            ));
        }
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
            is_backward: false,
            in_open_look: false,
            is_referenced: &is_referenced,
        };
        compiler.visit(&info, false)?;
        compiler.ops.push(Op::Match);
        let Compiler { ops, classes, slots, .. } = compiler;
        Ok(Self { ops, classes, slots })
    }
}

/// An error and its causes on one line.
fn does_not_compile(error: &dyn std::error::Error) -> String {
    let mut message = "does not compile".to_owned();
    let mut next = Some(error);
    while let Some(error) = next {
        message = format!("{message}: {}", error.to_string().replace('\n', " "));
        next = error.source();
    }
    message
}

/// Rejects an expression that is too large with its repeats written out. The parser limits its depth.
fn check_size(expr: &Expr) -> Outcome {
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
    /// Indices of classes by their ranges.
    known: BTreeMap<Vec<ClassUnicodeRange>, usize>,
    slots: usize,
    /// Inside a look-behind, which matches toward the start of the text.
    is_backward: bool,
    /// Inside a look-around that backtracking can reenter.
    in_open_look: bool,
    is_referenced: &'a dyn Fn(usize) -> bool,
}

#[derive(Clone, Copy)]
struct Bounds {
    min: usize,
    max: usize,
    greedy: bool,
}

type Outcome = Result<(), String>;

impl Compiler<'_> {
    /// Compiles a part. If `hard`, what follows may force it to match differently.
    fn visit(&mut self, info: &Info<'_>, hard: bool) -> Outcome {
        if !hard && !info.hard {
            return self.plain(std::slice::from_ref(info));
        }
        match info.expr {
            Expr::Empty | Expr::DefineGroup { .. } => Ok(()),
            Expr::Concat(_) => self.concat(info, hard),
            Expr::Alt(_) => self.alternatives(info.children.len(), |compiler, at| {
                compiler.visit(&info.children[at], hard)
            }),
            Expr::Group(_) => self.group(info, hard),
            Expr::Repeat { lo, hi, greedy, .. } => {
                let child = &info.children[0];
                // As in fancy-regex, an optional part does not become hard by itself, other repeats do.
                let hard = hard || (info.hard && (*lo, *hi) != (0, 1));
                let bounds = Bounds { min: *lo, max: *hi, greedy: *greedy };
                if !child.hard && child.const_size && child.min_size == 1 {
                    let hir = parse(std::slice::from_ref(child))?;
                    if self.run(bounds, &hir) {
                        return Ok(());
                    }
                }
                self.repeat(bounds, child.min_size == 0, |compiler| compiler.visit(child, hard))
            }
            Expr::LookAround(_, kind) => self.look_around(&info.children[0], *kind),
            Expr::AtomicGroup(_) if self.is_backward => {
                unsupported("an atomic group or possessive repeat in a look-behind")
            }
            Expr::AtomicGroup(_) => {
                self.atomic(|compiler| compiler.visit(&info.children[0], false))
            }
            Expr::Assertion(assertion) => self.push(assertion_op(*assertion)),
            Expr::Backref { .. } if self.is_backward => {
                unsupported("a reference to a group, in a look-behind")
            }
            Expr::Backref { group, casei } => {
                self.push(Op::Backreference { slot: 2 * group, folds_case: *casei })
            }
            Expr::GeneralNewline { unicode } => self.line_break(*unicode),
            Expr::LiteralBytes { bytes } => {
                let text: String = bytes.iter().copied().map(char::from).collect();
                self.literal(text.as_bytes())
            }
            Expr::BacktrackingControlVerb(BacktrackingControlVerb::Fail) => self.push(Op::Fail),
            Expr::Any { .. } | Expr::Literal { .. } | Expr::Delegate { .. } => {
                self.plain(std::slice::from_ref(info))
            }
            Expr::Conditional { .. } | Expr::BackrefExistsCondition { .. } => {
                unsupported("a condition")
            }
            Expr::SubroutineCall(_) | Expr::BackrefWithRelativeRecursionLevel { .. } => {
                unsupported("a call of a group")
            }
            Expr::Absent(_) => unsupported("an absent operator"),
            Expr::BacktrackingControlVerb(_) => unsupported("a control verb"),
            Expr::KeepOut | Expr::ContinueFromPreviousMatchEnd | Expr::AstNode(..) => {
                unsupported("\\K or \\G")
            }
        }
    }

    fn push(&mut self, op: Op) -> Outcome {
        self.ops.push(op);
        Ok(())
    }

    /// Pushes an instruction that is replaced when its target is known; returns its index.
    fn push_placeholder(&mut self) -> usize {
        self.ops.push(Op::Fail);
        self.ops.len() - 1
    }

    /// A sequence. Like fancy-regex, it treats as plain its first parts of fixed length, and its last parts.
    fn concat(&mut self, info: &Info<'_>, hard: bool) -> Outcome {
        let children = &info.children[..];
        let start = children.iter().take_while(|c| c.const_size && !c.hard).count();
        let is_plain = |c: &&Info<'_>| !c.hard && (c.const_size || !hard);
        let end = children.len() - children[start..].iter().rev().take_while(is_plain).count();
        let (first, middle, last) = (&children[..start], &children[start..end], &children[end..]);
        if self.is_backward {
            self.plain(last)?;
            middle.iter().rev().try_for_each(|child| self.visit(child, true))?;
            return self.plain(first);
        }
        self.plain(first)?;
        middle.iter().try_for_each(|child| self.visit(child, true))?;
        self.plain(last)
    }

    fn group(&mut self, info: &Info<'_>, hard: bool) -> Outcome {
        let (group, inner) = (info.start_group(), &info.children[0]);
        if !(self.is_referenced)(group) {
            return self.visit(inner, hard);
        }
        if self.is_backward {
            return unsupported("a group that is referred to, in a look-behind");
        }
        self.ops.push(Op::SaveStart(2 * group));
        self.visit(inner, hard)?;
        self.push(Op::Save(2 * group + 1))
    }

    /// Parts that need no backtracking, as regex-syntax parses them. fancy-regex never backtracks into one. This only
    /// makes a difference in a look-around that backtracking can reenter: elsewhere, such a part has a fixed length,
    /// or nothing follows it.
    fn plain(&mut self, infos: &[Info<'_>]) -> Outcome {
        if infos.is_empty() {
            return Ok(());
        }
        let hir = parse(infos)?;
        if self.in_open_look { self.atomic(|compiler| compiler.hir(&hir)) } else { self.hir(&hir) }
    }

    fn hir(&mut self, hir: &Hir) -> Outcome {
        match hir.kind() {
            HirKind::Empty => Ok(()),
            HirKind::Literal(hir::Literal(bytes)) => self.literal(bytes),
            HirKind::Class(_) => {
                let Some(class) = class_of(hir) else { return unsupported("a class of bytes") };
                let class = self.class(class);
                self.push(if self.is_backward { Op::ClassBack(class) } else { Op::Class(class) })
            }
            HirKind::Look(look) => self.push(Op::Look(machine_look(*look))),
            HirKind::Capture(capture) => self.hir(&capture.sub),
            HirKind::Concat(parts) if self.is_backward => {
                parts.iter().rev().try_for_each(|part| self.hir(part))
            }
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.hir(part)),
            HirKind::Alternation(parts) => {
                self.alternatives(parts.len(), |compiler, at| compiler.hir(&parts[at]))
            }
            HirKind::Repetition(repeat) => {
                let max = repeat.max.map_or(usize::MAX, |max| max as usize);
                let bounds = Bounds { min: repeat.min as usize, max, greedy: repeat.greedy };
                let body = |compiler: &mut Self| compiler.hir(&repeat.sub);
                if self.run(bounds, &repeat.sub) {
                    Ok(())
                } else if max == usize::MAX && repeat.sub.properties().minimum_len() == Some(0) {
                    self.repeat_empty(bounds, body)
                } else {
                    self.repeat(bounds, false, body)
                }
            }
        }
    }

    fn literal(&mut self, bytes: &[u8]) -> Outcome {
        let bytes = bytes.into();
        self.push(if self.is_backward { Op::LiteralBack(bytes) } else { Op::Literal(bytes) })
    }

    fn class(&mut self, class: ClassUnicode) -> usize {
        if let Some(&known) = self.known.get(class.ranges()) {
            return known;
        }
        self.classes.push(Class::new(&class));
        self.known.insert(class.ranges().to_vec(), self.classes.len() - 1);
        self.classes.len() - 1
    }

    /// A greedy repeat of one class, as most repeats are. Returns false if this is not one.
    fn run(&mut self, Bounds { min, max, greedy }: Bounds, body: &Hir) -> bool {
        let Some(class) = class_of(body).filter(|_| greedy && max > 1) else { return false };
        let class = self.class(class);
        self.ops.push(if self.is_backward {
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
            if at + 1 == count {
                each(self, at)?;
                break;
            }
            let split = self.push_placeholder();
            each(self, at)?;
            jumps.push(self.push_placeholder());
            self.ops[split] = Op::Split(split + 1, self.ops.len());
        }
        let end = self.ops.len();
        for jump in jumps {
            self.ops[jump] = Op::Jump(end);
        }
        Ok(())
    }

    fn optional(&mut self, greedy: bool, body: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let start = self.push_placeholder();
        body(self)?;
        self.ops[start] = split(greedy, start + 1, self.ops.len());
        Ok(())
    }

    fn repeat(
        &mut self,
        Bounds { min, max, greedy }: Bounds,
        can_be_empty: bool,
        body: impl FnOnce(&mut Self) -> Outcome,
    ) -> Outcome {
        let start = self.ops.len();
        match (min, max) {
            (_, 0) => Ok(()),
            (1, 1) => body(self),
            (0, 1) => self.optional(greedy, body),
            (0, usize::MAX) if !can_be_empty => self.optional(greedy, |compiler| {
                body(compiler)?;
                compiler.push(Op::Jump(start))
            }),
            (1, usize::MAX) if !can_be_empty => {
                body(self)?;
                let exit = self.ops.len() + 1;
                self.push(split(greedy, start, exit))
            }
            _ => {
                let slot = self.slots;
                self.slots += 2;
                self.ops.push(Op::Zero(slot));
                let head = self.push_placeholder();
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
        }
    }

    /// An unbounded repeat in a plain part, with a body that can be empty.
    fn repeat_empty(
        &mut self,
        Bounds { min, greedy, .. }: Bounds,
        body: impl Fn(&mut Self) -> Outcome,
    ) -> Outcome {
        if min > 1 {
            let bounds = Bounds { min: min - 1, max: min - 1, greedy: true };
            self.repeat(bounds, false, &body)?;
        }
        let one_or_more = |compiler: &mut Self| {
            let slot = compiler.slots;
            compiler.slots += 2;
            compiler.ops.extend([Op::Zero(slot), Op::Zero(slot + 1)]);
            let head = compiler.ops.len();
            compiler.ops.push(Op::Once(slot));
            body(compiler)?;
            compiler.ops.push(Op::Once(slot + 1));
            let exit = compiler.ops.len() + 1;
            compiler.push(split(greedy, head, exit))
        };
        if min == 0 { self.optional(greedy, one_or_more) } else { one_or_more(self) }
    }

    fn atomic(&mut self, body: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let (slot, start) = (self.slots, self.ops.len());
        self.slots += 1;
        self.ops.push(Op::Mark(slot));
        body(self)?;
        if let [Op::Mark(_), Op::Run { class, min, max, .. }] = self.ops[start..] {
            self.ops.truncate(start);
            return self.push(Op::Run { class, min, max, gives_back: false });
        }
        self.push(Op::Cut(slot))
    }

    fn look_around(&mut self, inner: &Info<'_>, kind: LookAround) -> Outcome {
        let is_behind = matches!(kind, LookAround::LookBehind | LookAround::LookBehindNeg);
        let is_negative = matches!(kind, LookAround::LookAheadNeg | LookAround::LookBehindNeg);
        let (position, mark) = (self.slots, self.slots + 1);
        self.slots += 2;
        if is_negative {
            self.ops.push(Op::Mark(mark));
            return self.optional(true, |compiler| {
                compiler.look(inner, is_behind)?;
                compiler.push(Op::Reject(mark))
            });
        }
        // As in fancy-regex, a group inside may match differently if what follows refers to it.
        if (inner.start_group()..inner.end_group()).any(self.is_referenced) {
            let was_in_open_look = std::mem::replace(&mut self.in_open_look, true);
            self.ops.push(Op::Save(position));
            self.look(inner, is_behind)?;
            self.in_open_look = was_in_open_look;
        } else {
            self.ops.extend([Op::Mark(mark), Op::Note(position)]);
            self.look(inner, is_behind)?;
            self.ops.push(Op::Cut(mark));
        }
        self.push(Op::Return(position))
    }

    fn look(&mut self, inner: &Info<'_>, is_behind: bool) -> Outcome {
        // A look-behind only has to find whether there is a match, so its alternatives can be tried in any order, and
        // backward. Where their order matters, it runs forward, from a start that must be known.
        let start = self.ops.len();
        let outcome = self.visit_toward(is_behind, inner);
        if outcome.is_ok() || !is_behind || !inner.const_size {
            return outcome;
        }
        self.ops.truncate(start);
        self.ops.push(Op::StepBack(inner.min_size));
        self.visit_toward(false, inner)
    }

    fn visit_toward(&mut self, is_backward: bool, inner: &Info<'_>) -> Outcome {
        let was_backward = std::mem::replace(&mut self.is_backward, is_backward);
        let outcome = self.visit(inner, false);
        self.is_backward = was_backward;
        outcome
    }

    fn line_break(&mut self, unicode: bool) -> Outcome {
        if self.is_backward {
            return unsupported("\\R in a look-behind");
        }
        let one = if unicode { "[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]" } else { "[\n\x0B\x0C\r]" };
        let hir = regex_syntax::parse(&format!("\r\n|{one}")).map_err(|e| does_not_compile(&e))?;
        self.atomic(|compiler| compiler.hir(&hir))
    }
}

/// Parses parts that need no backtracking with regex-syntax.
fn parse(infos: &[Info<'_>]) -> Result<Hir, String> {
    let mut pattern = String::new();
    for info in infos {
        info.expr.to_str(&mut pattern, 1);
    }
    regex_syntax::parse(&pattern).map_err(|e| does_not_compile(&e))
}

fn split(greedy: bool, body: usize, exit: usize) -> Op {
    if greedy { Op::Split(body, exit) } else { Op::Split(exit, body) }
}

fn unsupported(what: &str) -> Outcome {
    Err(format!("holds {what}, which is not supported"))
}

fn assertion_op(assertion: Assertion) -> Op {
    Op::Look(match assertion {
        Assertion::StartText => Look::Start,
        Assertion::EndText => Look::End,
        Assertion::EndTextIgnoreTrailingNewlines { crlf } => return Op::EndBeforeBreaks { crlf },
        Assertion::StartLine { crlf } | Assertion::StartLineOniguruma { crlf } => {
            if crlf {
                Look::StartCRLF
            } else {
                Look::StartLF
            }
        }
        Assertion::EndLine { crlf: false } => Look::EndLF,
        Assertion::EndLine { crlf: true } => Look::EndCRLF,
        Assertion::LeftWordBoundary => Look::WordStartUnicode,
        Assertion::LeftWordHalfBoundary => Look::WordStartHalfUnicode,
        Assertion::RightWordBoundary => Look::WordEndUnicode,
        Assertion::RightWordHalfBoundary => Look::WordEndHalfUnicode,
        Assertion::WordBoundary => Look::WordUnicode,
        Assertion::NotWordBoundary => Look::WordUnicodeNegate,
    })
}

/// The same assertion in regex-automata, which evaluates it.
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
