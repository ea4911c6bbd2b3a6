//! Patterns by number: the known ones, and random ones of the same family.

use byteweld_core::pretoken::{Engine, Pretokenizer};

use crate::random::Random;

/// The patterns of the field as their owners write them, and variations; all run on scanners.
#[rustfmt::skip]
const KNOWN: [&str; 56] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    "[\r\n]",
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    "[一-龥ࠀ-一가-\u{D7FF}]+",
    r"\p{N}",
    "[0-9][0-9][0-9]",
    "[!-/:-@\\[-`{-~¡§«¶-·»¿;·՚-՟։-֊־׀׃׆׳-״؉-؊،-؍؛؞-؟٪-٭۔܀-܍߷-߹࠰-࠾࡞।-॥॰૰෴๏๚-๛༄-༒༔༺-༽྅࿐-࿔࿙-࿚၊-၏჻፠-፨᐀᙭-᙮᚛-᚜᛫-᛭᜵-᜶។-៖៘-៚᠀-᠊᥄-᥅᨞-᨟᪠-᪦᪨-᪭᭚-᭠᯼-᯿᰻-᰿᱾-᱿᳀-᳇᳓‐-‧‰-⁃⁅-⁑⁓-⁞⁽-⁾₍-₎⌈-⌋〈-〉❨-❵⟅-⟆⟦-⟯⦃-⦘⧘-⧛⧼-⧽⳹-⳼⳾-⳿⵰⸀-⸮⸰-⹂、-〃〈-】〔-〟〰〽゠・꓾-꓿꘍-꘏꙳꙾꛲-꛷꡴-꡷꣎-꣏꣸-꣺꣼꤮-꤯꥟꧁-꧍꧞-꧟꩜-꩟꫞-꫟꫰-꫱꯫﴾-﴿︐-︙︰-﹒﹔-﹡﹣﹨﹪-﹫！-＃％-＊，-／：-；？-＠［-］＿｛｝｟-･𐄀-𐄂𐎟𐏐𐕯𐡗𐤟𐤿𐩐-𐩘𐩿𐫰-𐫶𐬹-𐬿𐮙-𐮜𑁇-𑁍𑂻-𑂼𑂾-𑃁𑅀-𑅃𑅴-𑅵𑇅-𑇉𑇍𑇛𑇝-𑇟𑈸-𑈽𑊩𑓆𑗁-𑗗𑙁-𑙃𑜼-𑜾𒑰-𒑴𖩮-𖩯𖫵𖬷-𖬻𖭄𛲟𝪇-𝪋]",
    " +",
    r"\p{Lu}\p{Ll}+",
    "\u{200B}",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"\p{Cyrillic}+|\p{Greek}+|\p{Thai}{1,4}|[\p{Hiragana}\p{Katakana}]+|\s+|[^\s]",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]*[\p{Ll}\p{Lm}\p{Lo}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]+[\p{Ll}\p{Lm}\p{Lo}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'s|'t)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r" ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]*[\p{Ll}\p{Lm}\p{Lo}]+| ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]+[\p{Ll}\p{Lm}\p{Lo}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,5}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'s| ?[a-zA-Zа-яА-Я一-龥]+| ?[0-9٠-٩]+| ?[^\sa-zA-Zа-яА-Я一-龥0-9٠-٩]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s",
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

/// Patterns that run on an automaton or on the backtracking engine.
#[rustfmt::skip]
const OTHERS: [&str; 28] = [
    r"[a-c]?[a-c]*[b-d]+x?|[a-c]?[a-c]+[b-d]*x?",
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
    r"[a-z]+",
    r"[a-z]++[xyz]|.",
    r"a+(?!b)|b",
    r"(a)(b)?\1|.",
    r"\bfoo\b|.",
    r"(?:ab)++a|.",
    r"[\s\S]{1,3}+",
    // Over bytes.
    r"(?-u)[^A-Za-z0-9 \n\t\r]?[A-Za-z]+|[0-9]| ?[^A-Za-z0-9 \n\t\r]+\n*| +\n+| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|(?s:.)",
];

/// The pattern of a number.
pub(crate) fn numbered(number: u16) -> String {
    let index = usize::from(number);
    match KNOWN.iter().chain(&OTHERS).nth(index) {
        Some(pattern) => (*pattern).to_owned(),
        None => random(number, |_| true),
    }
}

/// The same, of the patterns that run on scanners.
pub(crate) fn numbered_of_family(number: u16) -> String {
    match KNOWN.get(usize::from(number)) {
        Some(pattern) => (*pattern).to_owned(),
        None => random(number, |engine| engine == Engine::Scanner),
    }
}

/// A random pattern that the engine accepts.
fn random(number: u16, is_wanted: impl Fn(Engine) -> bool) -> String {
    let mut random = Random(u64::from(number));
    loop {
        let pattern = draw(&mut random);
        if Pretokenizer::new(Some(&pattern)).is_ok_and(|made| is_wanted(made.engine())) {
            return pattern;
        }
    }
}

/// A random pattern of the family: contractions, words, numbers, others and white space, mostly in this
/// order, and sometimes something else.
fn draw(random: &mut Random) -> String {
    let mut parts = Vec::new();
    if random.one_in(2) {
        let forms = [
            "'s|'t|'re|'ve|'m|'ll|'d",
            "'(?:[sdmt]|ll|ve|re)",
            "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
            "'(?i:[sdmt]|ll|ve|re)",
            "'s",
        ];
        parts.push(random.pick(&forms).to_owned());
    }
    words(random, &mut parts);
    let number = [
        r"\p{N}",
        r"\p{N}{1,2}",
        r"\p{N}{1,3}",
        r"\p{N}{1,5}",
        r" ?\p{N}+",
        r"\p{N}++",
        r"[0-9]+",
        r"\p{Nd}{2,3}",
    ];
    parts.push(random.pick(&number).to_owned());
    let other = [
        r"[^\s\p{L}\p{N}]",
        r"[^\s\p{L}\p{N}]",
        r"[^\s\p{L}\p{M}\p{N}]",
        r"[\p{P}\p{S}]",
        r"[^\s\w]",
    ];
    let before = ["", " ?", " ?", r"\s?"];
    let after = ["", r"[\r\n]*", r"[\r\n/]*", r"[\r\n]*+", r"[\r\n/;]*"];
    let repeat = ["+", "+", "++", "{1,4}"];
    let (before, other) = (random.pick(&before), random.pick(&other));
    parts.push(format!("{before}{other}{}{}", random.pick(&repeat), random.pick(&after)));
    white_space(random, &mut parts);
    if random.one_in(4) {
        let more = [
            ".",
            r"\S+",
            r"[\s\S]",
            "(?:ab|a|abc)",
            "[ab]?[bc]{1,2}[cd]*",
            "(?:a|b){2}",
            r"\p{Cyrillic}+",
            r"\p{Thai}{1,4}",
            "a+(?!b)",
            r"\bfoo\b",
            "[a-z]++[xyz]",
            r"\p{L}+?",
            r"<\|end\|>",
            r"\p{Han}+",
            "(?i:k)",
        ];
        let at = random.below(parts.len() + 1);
        parts.insert(at, random.pick(&more).to_owned());
    }
    if random.one_in(8) {
        random.shuffle(&mut parts);
    }
    if random.one_in(6) {
        parts.remove(random.below(parts.len()));
    }
    parts.join("|")
}

fn words(random: &mut Random, parts: &mut Vec<String>) {
    let before = [
        "",
        " ?",
        r"[^\r\n\p{L}\p{N}]?",
        r"[^\r\n\p{L}\p{N}]?+",
        r"[^\r\n\p{L}\p{N}]?",
        r"\s?",
        r"[\t ]?",
        "_?",
    ];
    let before = random.pick(&before);
    let suffix = ["", "", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "(?:'s|'t)?", "'?"];
    let suffix = random.pick(&suffix);
    if random.one_in(2) {
        let marks = ["", r"\p{M}"];
        let marks = random.pick(&marks);
        let caseless = [r"\p{Lm}\p{Lo}", r"\p{Lm}\p{Lo}", r"\p{Lo}", ""];
        let caseless = random.pick(&caseless);
        let upper = format!(r"[\p{{Lu}}\p{{Lt}}{caseless}{marks}]");
        let lower = format!(r"[\p{{Ll}}{caseless}{marks}]");
        parts.push(format!("{before}{upper}*{lower}+{suffix}"));
        parts.push(format!("{before}{upper}+{lower}*{suffix}"));
    } else {
        let letters = [
            r"\p{L}",
            r"\p{L}",
            r"[\p{L}\p{M}]",
            "[a-zA-Z]",
            r"\w",
            r"[\p{Lu}\p{Ll}]",
            "[a-zA-Zа-яА-Я一-龥]",
            "[a-c]",
        ];
        let repeat = ["+", "+", "++", "{1,8}", "{1,3}", ""];
        parts.push(format!("{before}{}{}{suffix}", random.pick(&letters), random.pick(&repeat)));
    }
}

fn white_space(random: &mut Random, parts: &mut Vec<String>) {
    let steps = [
        r"\s++$",
        r"\s+(?![\s\S])",
        r"\s*[\r\n]+",
        r"\s*[\r\n]",
        r"\s*\n+",
        r"\s+(?!\S)",
        r"\s+(?!\S)",
        r"\s+",
        r"\s",
    ];
    let skip = 1 + random.below(4);
    let mut kept: Vec<String> = steps
        .iter()
        .filter(|_| random.below(4) >= skip || random.one_in(3))
        .map(|&s| s.to_owned())
        .collect();
    if random.one_in(8) {
        random.shuffle(&mut kept);
    }
    parts.append(&mut kept);
}

/// How many patterns have a name or are written out.
pub(crate) const WRITTEN: usize = KNOWN.len() + OTHERS.len();
