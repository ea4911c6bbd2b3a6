//! Scanners: which patterns they are for, and that they give what the backtracking engine gives.

use proptest::prelude::*;

use crate::pretoken::characters::unicode;
use crate::pretoken::*;

/// The field's patterns, by family, as their owners write them.
pub(super) const FIELD: [(&str, &str); 27] = [
    ("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    (
        "gpt2, new",
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    ),
    (
        "cl100k",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        "cl100k, old; llama3",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "qwen2",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "qwen3.5",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "o200k",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "kimi",
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "tekken",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "nanochat",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        "ck",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    ("deepseek v3, 1", r"\p{N}{1,3}"),
    ("deepseek v3, 2", "[一-龥\u{3040}-ゟ゠-ヿ]+"),
    (
        "deepseek v3, 3",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ),
    ("deepseek coder, 1", "[\r\n]"),
    ("deepseek coder, 2", r"\s?\p{L}+"),
    ("deepseek coder, 3", r"\s?\p{P}+"),
    ("deepseek coder, 4", "[一-龥ࠀ-一가-\u{D7FF}]+"),
    ("digits, one by one", r"\p{N}"),
    ("falcon, three digits", "[0-9][0-9][0-9]"),
    (
        "falcon, punctuation of Unicode 8",
        "[!-/:-@\\[-`{-~¡§«¶-·»¿;·՚-՟։-֊־׀׃׆׳-״؉-؊،-؍؛؞-؟٪-٭۔܀-܍߷-߹࠰-࠾࡞।-॥॰૰෴๏๚-๛༄-༒༔༺-༽྅࿐-࿔࿙-࿚၊-၏჻፠-፨᐀᙭-᙮᚛-᚜᛫-᛭᜵-᜶។-៖៘-៚᠀-᠊᥄-᥅᨞-᨟᪠-᪦᪨-᪭᭚-᭠᯼-᯿᰻-᰿᱾-᱿᳀-᳇᳓‐-‧‰-⁃⁅-⁑⁓-⁞⁽-⁾₍-₎⌈-⌋〈-〉❨-❵⟅-⟆⟦-⟯⦃-⦘⧘-⧛⧼-⧽⳹-⳼⳾-⳿⵰⸀-⸮⸰-⹂、-〃〈-】〔-〟〰〽゠・꓾-꓿꘍-꘏꙳꙾꛲-꛷꡴-꡷꣎-꣏꣸-꣺꣼꤮-꤯꥟꧁-꧍꧞-꧟꩜-꩟꫞-꫟꫰-꫱꯫﴾-﴿︐-︙︰-﹒﹔-﹡﹣﹨﹪-﹫！-＃％-＊，-／：-；？-＠［-］＿｛｝｟-･𐄀-𐄂𐎟𐏐𐕯𐡗𐤟𐤿𐩐-𐩘𐩿𐫰-𐫶𐬹-𐬿𐮙-𐮜𑁇-𑁍𑂻-𑂼𑂾-𑃁𑅀-𑅃𑅴-𑅵𑇅-𑇉𑇍𑇛𑇝-𑇟𑈸-𑈽𑊩𑓆𑗁-𑗗𑙁-𑙃𑜼-𑜾𒑰-𒑴𖩮-𖩯𖫵𖬷-𖬻𖭄𛲟𝪇-𝪋]",
    ),
    ("spaces", " +"),
    ("a word with a capital", r"\p{Lu}\p{Ll}+"),
    ("a character", "\u{200B}"),
    (
        "clip",
        r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    ),
    ("bloom", r" ?[^(\s|[.,!?…。，、।۔،])]+"),
    (
        "case by script",
        r"\p{Cyrillic}+|\p{Greek}+|\p{Thai}{1,4}|[\p{Hiragana}\p{Katakana}]+|\s+|[^\s]",
    ),
];

/// What users make of them.
const VARIATIONS: [&str; 23] = [
    r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]",
    r" ?\p{L}+|\p{N}{1,4}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"\p{L}+|\p{N}{2,3}|[^\s\p{L}\p{N}]+|\s",
    r"[^\r\n\p{L}\p{N}]?\p{L}+'?|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n/;]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"_?[a-z]+|[A-Z][a-z]+|[A-Z]|\p{N}+|\s+|.",
    r"[\t ]?\p{L}{1,8}|\p{N}|\s+(?!\S)|\s|[^\s\p{L}\p{N}]",
    r"#?\w+(?:'s|ism)?|\W",
    r"(?:'s|'t)|(\p{L}+)|(\p{N}{1,3})|\s+(?!\S)|\s+|[^\s\p{L}\p{N}]+",
    r"\s*\n+|\s+(?!\S)|\s+|\S+",
    r"\s+$|\s*[\r\n]|\s|\S+",
    r"\s++$|\s|\S+",
    r"\s*[\r\n]+|\S+",
    r"\s+(?!\S)|\S+",
    r"\S+|\s+",
    r"[ab]?[bc]{1,2}[cd]*",
    r"[ab]?[bc]{1,3}",
    r"[ab][bc]+[a]*",
    r"(?:ab|a|abc)|[^a]+",
    r"(?:a|b){2}|c{1,3}d?|.",
    r"[ab]?[bc]*[cd]+|[ab]?[bc]+[cd]*|[^a-d]+",
    r"[a-c]?[a-c]*[b-d]+x?|[a-c]?[a-c]+[b-d]*x?|y",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]+[\p{Ll}\p{M}]*|[^\p{L}]",
    r"(?i:k|'s)",
];

/// Patterns that look like one of the shapes and are none.
const NEAR_MISSES: [&str; 20] = [
    r"[a-c]?[a-c]*[b-d]+x?|[a-c]?[a-c]+[b-d]*x?", // the parser moves the prefix out
    r" ?\p{L}+?|.",
    r"\p{L}+(?!\p{N})|.",
    r"a+b|.",
    r"\p{L}+\p{N}|\p{L}|.",
    r"\s*[\r\na]+|.",
    r"\s*[\r\n]+|\p{L}+|[ \t]+(?![^ \t])|.",
    r"[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|.",
    r"[\p{Lu}\p{M}]+[\p{Ll}\p{M}]*x?|[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+x?",
    r"[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+x?|[\p{Lu}\p{M}]+[\p{Ll}\p{M}]*y?",
    r"-?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|[\p{Lu}\p{M}]+[\p{Ll}\p{M}]*",
    r"(?:ab)+|.",
    r"\p{L}+'s|.",
    r"\s+(?=\S)|\S+",
    r"\b\p{L}+|.",
    r" {0,2}\p{L}+|.",
    r"\p{L}{2,}|.",
    r"\s++\S|\s|\S",
    r"\p{L}+[\r\n]+|.",
    r"\p{L}*\p{N}|\p{L}|.",
];

pub(super) fn scanner_of(pattern: &str) -> Scanner {
    let alternatives = normalize::alternatives(pattern).unwrap();
    Scanner::new(&Spec::new(&alternatives).unwrap()).unwrap()
}

#[test]
fn patterns_of_the_field_and_variations_of_them_run_on_scanners() {
    for pattern in FIELD.iter().map(|(_, pattern)| pattern).chain(&VARIATIONS) {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        assert_eq!(pretokenizer.engine(), Engine::Scanner, "{pattern}");
    }
}

#[test]
fn patterns_of_no_known_shape_do_not_run_on_scanners() {
    for pattern in NEAR_MISSES {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        assert_ne!(pretokenizer.engine(), Engine::Scanner, "{pattern}");
    }
}

#[test]
fn the_check_at_load_tells_every_pattern_of_the_field_from_every_other() {
    let backtrackers = FIELD.map(|(_, pattern)| Backtracker::new(pattern).unwrap());
    let canonical = FIELD.map(|(_, pattern)| canonical_pattern(pattern).unwrap());
    for ((name, pattern), text) in FIELD.iter().zip(&canonical) {
        let scanner = scanner_of(pattern);
        for (((other, _), other_text), backtracker) in
            FIELD.iter().zip(&canonical).zip(&backtrackers)
        {
            assert_eq!(agree(&scanner, backtracker), text == other_text, "{name} and {other}");
        }
    }
}

#[test]
fn traps_of_the_field() {
    let cut = |name: &str, text: &str| {
        let pattern = FIELD.iter().find(|(known, _)| *known == name).unwrap().1;
        let list = Pretokenizer::new(Some(pattern)).unwrap().pieces(text.as_bytes());
        list.into_iter()
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
            .collect::<Vec<_>>()
    };
    // The long s is a contraction where case does not matter.
    assert_eq!(cut("cl100k", "it'ſ"), ["it", "'ſ"]);
    assert_eq!(cut("o200k", "it'ſ IT'LL"), ["it'ſ", " IT'LL"]);
    assert_eq!(cut("gpt2", "it'ſ it'S"), ["it", "'", "ſ", " it", "'", "S"]);
    // White space at the end of a text comes before line ends, or does not.
    assert_eq!(cut("cl100k", "a\n "), ["a", "\n "]);
    assert_eq!(cut("cl100k, old; llama3", "a\n "), ["a", "\n", " "]);
    assert_eq!(cut("gpt2", "a  \n\tb"), ["a", "  \n", "\t", "b"]);
    // Digits are counted by character.
    assert_eq!(cut("cl100k", "12345٣٤٥٦"), ["123", "45٣", "٤٥٦"]);
    // Spaces that are no ASCII, and what is no space.
    assert_eq!(cut("gpt2", "a\u{a0}\u{2028}\u{85}b"), ["a", "\u{a0}\u{2028}", "\u{85}", "b"]);
    assert_eq!(cut("gpt2", "a\u{180e}\u{200b}b"), ["a", "\u{180e}\u{200b}", "b"]);
    // A mark joins letters, or is punctuation, or stands before capitals alone.
    assert_eq!(cut("cl100k", "e\u{301}a"), ["e", "\u{301}a"]);
    assert_eq!(cut("qwen3.5", "e\u{301}a"), ["e\u{301}a"]);
    assert_eq!(cut("o200k", "\u{301}AB c"), ["\u{301}", "AB", " c"]);
    // Titlecase letters are capitals, letters without case are both.
    assert_eq!(
        cut("o200k", "ǅemo camelCase HTTPServer 中A中"),
        ["ǅemo", " camel", "Case", " HTTPServer", " 中A中"]
    );
    assert_eq!(cut("kimi", "a中文b"), ["a", "中文", "b"]);
}

#[test]
fn long_runs_take_linear_time() {
    let units = [
        " ",
        "a",
        "A",
        "é",
        "\u{301}",
        "中",
        "\n",
        " \n",
        "\n ",
        "1",
        "'",
        ".",
        "/\n",
        "\u{a0}",
        "\u{301}A",
        "b",
        "\n/.\u{301}",
        "'s中A",
    ];
    for pattern in FIELD.iter().map(|(_, pattern)| pattern).chain(&VARIATIONS) {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        for unit in units {
            for end in ["", "x", " x"] {
                let text = unit.repeat(200_000 / unit.len()) + end;
                let ends = pretokenizer.ends(text.as_bytes()).unwrap();
                assert_eq!(ends.last().unwrap().0, text.len());
            }
        }
    }
}

/// Characters in several contexts.
fn contexts(characters: &[char]) -> String {
    let text = |c| format!("{c} a{c}b  {c}{c}.{c}'s 1{c}2 A{c}\n{c}");
    characters.iter().map(text).collect()
}

#[test]
fn every_kind_of_character_is_cut_as_the_backtracking_engine_cuts_it() {
    // The first of each run of characters of one kind; the classes of the others are tested where they are made.
    let starts: Vec<char> = unicode::runs().filter_map(|run| char::from_u32(run.first)).collect();
    let text = contexts(&starts);
    for (name, pattern) in FIELD {
        let backtracker = Backtracker::new(pattern).unwrap();
        assert!(agree_on(&text, &scanner_of(pattern), &backtracker), "{name}");
    }
}

#[test]
fn every_assigned_character_is_cut_as_the_automaton_cuts_it() {
    let is_assigned =
        |run: &unicode::CellRun| !["Cn", "Co"].contains(&unicode::CELL_NAMES[run.cell]);
    let all: Vec<char> = unicode::runs()
        .filter(is_assigned)
        .flat_map(|run| run.first..run.end)
        .filter_map(char::from_u32)
        .collect();
    let texts: Vec<String> = all.chunks(1 << 12).map(contexts).collect();
    for (name, pattern) in FIELD.iter().filter(|(_, pattern)| pattern.contains(r"\s+(?!\S)")) {
        let scanner = scanner_of(pattern);
        let automaton = Automaton::new(&normalize::alternatives(pattern).unwrap()).unwrap();
        for text in &texts {
            let finder = Finder::Automaton(&automaton);
            assert!(agree_with(text, &scanner, finder), "{name}, from {:?}", text.chars().next());
        }
    }
}

#[test]
fn patterns_are_compiled_once_while_they_are_remembered() {
    let pattern = r"\p{L}+|\p{N}{1,7}|[^\p{L}\p{N}]+";
    let compile = || Pretokenizer::new(Some(pattern)).unwrap().kind;
    // Tests run side by side in one process: others may push it out, but not every time.
    assert!((0..20).any(|_| Arc::ptr_eq(&compile(), &compile())));
    let first = compile();
    for n in 8..8 + MAX_KEPT_PATTERNS {
        Pretokenizer::new(Some(&pattern.replace('7', &n.to_string()))).unwrap();
    }
    assert!(!Arc::ptr_eq(&first, &compile()));
}

/// Text that is rich in what the patterns tell apart, and bytes that are no text.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let text = |pattern: &'static str| pattern.prop_map(String::into_bytes);
    let part = prop_oneof![
        4 => text("[ \t\n\r]{1,4}"),
        4 => text("[a-dA-D]{1,12}"),
        2 => text("[0-9]{1,8}"),
        2 => text("['][sStTdDmMlLvVrReEſ]{1,2}"),
        2 => text("[.,!/'<>|(_-]{1,10}"),
        2 => text("[éßǅʰ中日〇\u{0301}\u{0308}ªⅫ²٣\u{a0}\u{2028}\u{3000}\u{85}\u{200b}\u{180e}K]{1,4}"),
        1 => text("[а-яА-Яα-ωぁ-んァ-ン一-丟ก-๛]{1,9}"),
        1 => text("\\PC{0,3}"),
        1 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
        1 => prop::collection::vec(0x80..=0xFFu8, 1..4),
    ];
    prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(crate::testing::cases(150))]

    #[test]
    fn scanners_give_what_backtracking_gives(bytes in bytes()) {
        thread_local! {
            static PAIRS: Vec<(&'static str, Pretokenizer, Pretokenizer)> = FIELD
                .iter()
                .map(|(_, pattern)| pattern)
                .chain(&VARIATIONS)
                .chain(&NEAR_MISSES)
                .map(|p| (*p, Pretokenizer::new(Some(p)).unwrap(), Pretokenizer::backtracking(p).unwrap()))
                .collect();
        }
        PAIRS.with(|pairs| {
            for (pattern, chosen, backtracking) in pairs {
                assert_eq!(chosen.ends(&bytes).unwrap(), backtracking.ends(&bytes).unwrap(), "{}", pattern);
            }
        });
    }
}
