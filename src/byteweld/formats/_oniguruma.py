"""Checks whether Oniguruma, the regex engine of `tokenizers`, reads a pattern as byteweld does.

This is an allowlist: any construct not known to have the same meaning in both is a problem.
"""

from __future__ import annotations

import re
from typing import Final

# General categories, and scripts that agree on every character between Oniguruma and `regex`.
_PROPERTIES: Final = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp "
    "C Cc Cf Cn Co Han Hiragana Katakana Hangul Latin Greek Cyrillic Arabic Hebrew Thai "
    "Devanagari Bengali Tamil".split()
)
_MAX_REPEAT: Final = 1000
_MAX_DEPTH: Final = 50

_PUNCTUATION: Final = r"[!-/:;=?@\[-`{-~ ]"  # allowed after a backslash; not < and >
_CHARACTER: Final = (
    rf"(?:\\[rntf]|\\x[0-7][0-9A-Fa-f]|\\u(?![dD][89a-fA-F])[0-9A-Fa-f]{{4}}|\\{_PUNCTUATION})"
)
_SET: Final = r"(?:\\[sSdD]|\\[pP]\{[A-Za-z]+\})"
_IN_CLASS: Final = rf"(?:{_SET}|{_CHARACTER}|[^\\\[\]&~\-]|&(?!&)|~(?!~))"
_MEMBER: Final = rf"(?:{_CHARACTER}|[^\\\[\]&~\-])"
_CLASS: Final = (
    rf"\[(?!\^?\])(?:(?:\^(?:{_MEMBER}-{_MEMBER}|{_IN_CLASS})+)"
    rf"|(?:(?!\^)(?:{_MEMBER}-{_MEMBER}|{_IN_CLASS})+"
    rf"(?:&&\[\^?(?:{_MEMBER}-{_MEMBER}|{_IN_CLASS})+\])?))\]"
)
# Case folding agrees, except for i and for pairs that one character folds to (ss, ff, fi, fl, st).
_FOLDED_BRANCH: Final = r"(?:\[[a-hj-zA-HJ-Z]+\]|(?:(?!(?i:ss|ff|fi|fl|st))[a-hj-zA-HJ-Z0-9' ])+)"
_FOLDED: Final = rf"\(\?i:{_FOLDED_BRANCH}(?:\|{_FOLDED_BRANCH})*\)"

_NEXT: Final = re.compile(
    rf"(?P<atom>{_CLASS}|{_SET}|{_CHARACTER}|[^\\\[\](){{}}|*+?^$])"
    rf"|(?P<folded>{_FOLDED})"
    r"|(?P<open>\((?:\?(?::|>|<?[=!])|(?!\?)))"
    r"|(?P<close>\))"
    r"|(?P<or>\|)"
    r"|(?P<repeat>[*+?][?+]?|\{(?P<least>[0-9]{1,4})(?P<range>,(?P<most>[0-9]{1,4})?)?\}\??)"
)
_NAMED_PROPERTY: Final = re.compile(r"\\[pP]\{([A-Za-z]+)\}")
_ODD: Final = re.compile(r"\(\?<?.?|\[.{0,20}|\\.(?:\{[^}]*\}|[0-9A-Fa-f]{2,4})?|.", re.DOTALL)


class _Group:
    """An open group of the pattern, with the fewest characters that it can match so far."""

    __slots__ = ("best", "is_behind", "is_look", "least")

    def __init__(self, opening: str) -> None:
        self.is_look = opening[-1] in "=!"
        self.is_behind = "<" in opening
        self.least = 0  # fewest characters of the current branch
        self.best: int | None = None  # fewest of the branches before it

    def end_branch(self) -> int:
        self.best = self.least if self.best is None else min(self.best, self.least)
        self.least = 0
        return self.best


def find_dialect_problem(pattern: str) -> str | None:
    """Return the first construct that Oniguruma may read differently, or None.

    >>> from byteweld.patterns import GPT2
    >>> find_dialect_problem(GPT2)
    >>> find_dialect_problem(r"\\s+$")
    "'$', which is the end of a line in Oniguruma"
    """
    groups = [_Group("(")]
    atom: int | None = None  # fewest characters of what a repeat would repeat
    position = 0
    while position < len(pattern):
        match = _NEXT.match(pattern, position)
        if match is None:
            return _name_problem(pattern, position)
        kind, text, group = match.lastgroup, match[0], groups[-1]
        if match["repeat"] is not None:
            problem = _find_repeat_problem(match, pattern, atom, group)
            if problem is not None:
                return problem
            least = int(match["least"]) if match["least"] else int(text[0] == "+")
            group.least += (atom or 0) * (least - 1)
            atom = None
        elif kind == "open":
            if group.is_behind or len(groups) > _MAX_DEPTH:
                outer = "a lookbehind" if group.is_behind else f"{_MAX_DEPTH} others"
                return f"a group inside {outer}"
            groups.append(_Group(text))
            atom = None
        elif kind == "close":
            if len(groups) == 1:
                return "')' without '('"
            groups.pop()
            atom = None if group.is_look else group.end_branch()
            groups[-1].least += atom or 0
        elif kind == "or":
            if group.is_behind:
                return "'|' inside a lookbehind"
            group.end_branch()
            atom = None
        else:
            odd = [name for name in _NAMED_PROPERTY.findall(text) if name not in _PROPERTIES]
            if odd:
                return f"the property {odd[0]!r}"
            atom = 1
            if kind == "folded":
                branches = text[4:-1].split("|")
                atom = min(1 if branch[0] == "[" else len(branch) for branch in branches)
            group.least += atom
        position = match.end()
    if len(groups) > 1:
        return "'(' without ')'"
    return None if groups[0].end_branch() > 0 else "a match of the empty string"


def _find_repeat_problem(
    match: re.Match[str], pattern: str, atom: int | None, group: _Group
) -> str | None:
    text = match[0]
    if atom is None:
        return f"the repeat {text!r} with nothing to repeat"
    if group.is_behind:
        return f"the repeat {text!r} inside a lookbehind"
    if atom == 0:
        return f"the repeat {text!r} of a group that can match the empty string"
    if match["least"] is None:
        return None
    least, most = int(match["least"]), int(match["most"] or match["least"])
    if pattern.startswith("+", match.end()):
        return f"the possessive repeat {text + '+'!r}"
    if match["range"] is None and text.endswith("?"):
        return f"the repeat {text!r}"
    if most < least or most > _MAX_REPEAT or most == 0:
        return f"the repeat {text!r}, which is empty or above {_MAX_REPEAT}"
    return None


def _name_problem(pattern: str, position: int) -> str:
    """Name the unknown construct at a position."""
    sign = pattern[position]
    if sign == "$":
        return "'$', which is the end of a line in Oniguruma"
    if sign == "^":
        return "'^', which is the start of a line in Oniguruma"
    match = _ODD.match(pattern, position)
    return f"the construct {match[0] if match else sign!r}"


# The kinds that `matches_everywhere` distinguishes; each character is of exactly one.
_KINDS: Final = frozenset(("space", "Lu", "Ll", "Lt", "Lm", "Lo", "N", "other"))
_SETS: Final = {
    r"\s": frozenset({"space"}),
    r"\p{L}": frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"}),
    r"\p{N}": frozenset({"N"}),
} | {rf"\p{{{kind}}}": frozenset({kind}) for kind in ("Lu", "Ll", "Lt", "Lm", "Lo")}
_OPTIONAL: Final = rf"(?:{_CLASS}|{_SET}|{_CHARACTER}|{_FOLDED}|[^\\\[\](){{}}|*+?^$.])[?*](?![?+])"
_BRANCH: Final = re.compile(
    rf"(?:{_OPTIONAL})*(?P<core>{_CLASS}|{_SET})(?:\+|\{{1(?:,[0-9]*)?\}})?(?![?+])(?:{_OPTIONAL})*"
)


_MEMBERS: Final = re.compile(rf"{_SET}|{_MEMBER}-{_MEMBER}|{_CHARACTER}|.", re.DOTALL)


def matches_everywhere(pattern: str) -> bool:
    """Whether a pattern certainly matches at every character, so that matches have no gaps.

    A branch in which all but one set are optional matches at every character of that set. False
    only means that this check cannot tell.

    >>> from byteweld.patterns import GPT2
    >>> matches_everywhere(GPT2), matches_everywhere("[a-z]+")
    (True, False)
    """
    covered: set[str] = set()
    for branch in _branches(pattern):
        match = _BRANCH.fullmatch(branch)
        if match is not None:
            covered |= _surely_in(match["core"])
    return covered == _KINDS


def _branches(pattern: str) -> list[str]:
    """Split a pattern at each '|' outside groups and classes."""
    branches, start, depth = [], 0, 0
    position = 0
    while position < len(pattern):
        match = _NEXT.match(pattern, position)
        if match is None:
            return []
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if match.lastgroup == "or" and depth == 0:
            branches.append(pattern[start:position])
            start = match.end()
        position = match.end()
    return [*branches, pattern[start:]]


def _surely_in(core: str) -> frozenset[str]:
    """Return the kinds whose characters are all in a set or class."""
    if not core.startswith("["):
        return _SETS.get(core, frozenset())
    if "&&" in core:
        return frozenset()
    negated = core.startswith("[^")
    members = _MEMBERS.findall(core[1 + negated : -1])
    if negated and not all(member in _SETS for member in members):
        return frozenset()
    inside = frozenset[str]().union(*(_SETS.get(member, ()) for member in members))
    return _KINDS - inside if negated else inside
