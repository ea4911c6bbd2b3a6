//! The exported functions, as JavaScript calls them. Whether ids are right is tested in a browser, with
//! real vocabularies (tests/page); here, that no input panics and every answer is well-formed.

use serde_json::{Value, json};

use super::*;

const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// GPT-2's letter for each byte.
fn letters() -> Vec<char> {
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| {
            if matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF) {
                return char::from(byte);
            }
            next += 1;
            char::from_u32(next - 1).unwrap()
        })
        .collect()
}

fn facts() -> Value {
    json!({
        "limits": {"file_bytes": 1 << 20, "text_bytes": 1 << 16, "shown": 5, "tree_bytes": 20,
                   "token_bytes": 30},
        "patterns": {"gpt2": GPT2},
        "regexes": {GPT2: {"same_as": GPT2, "matches_everywhere": true}},
        "byte_level": GPT2,
        "digits": r"\p{N}",
        "punctuation": r"\p{P}",
        "rank_files": {},
    })
}

/// Gives inputs, calls a function, and returns its answer.
fn call(inputs: &[&[u8]], function: impl FnOnce() -> bool) -> Result<Vec<u8>> {
    for (number, bytes) in inputs.iter().enumerate() {
        assert!(!input(number, bytes.len()).is_null());
        STATE.with_borrow_mut(|state| state.inputs[number].copy_from_slice(bytes));
    }
    let is_done = function();
    assert_eq!(output_length(), STATE.with_borrow(|state| state.output.len()));
    let answer = STATE.with_borrow(|state| state.output.clone());
    if is_done { Ok(answer) } else { Err(String::from_utf8(answer).unwrap()) }
}

fn start() {
    call(&[facts().to_string().as_bytes()], || configure()).unwrap();
}

fn open_with(file: &[u8], options: &Value) -> Result<Value> {
    let answer = call(&[file, options.to_string().as_bytes()], || open())?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// Ids, lengths, and the indices of special tokens.
fn encoded(text: &str, specials: bool) -> Result<[Vec<u32>; 3]> {
    let answer = call(&[text.as_bytes()], || encode(specials))?;
    let (words, rest) = answer.as_chunks::<4>();
    assert!(rest.is_empty());
    let numbers: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let count = numbers[0] as usize;
    let (ids, rest) = numbers[1..].split_at(count);
    let (lengths, special) = rest.split_at(count);
    assert_eq!(lengths.iter().sum::<u32>() as usize, text.len());
    Ok([ids.to_vec(), lengths.to_vec(), special.to_vec()])
}

fn base64(token: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |number: u32, place: u32| char::from(DIGITS[(number >> place & 63) as usize]);
    let mut text = String::new();
    for group in token.chunks(3) {
        let bytes = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let number = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        text.extend((0..=group.len() as u32).map(|place| digit(number, 18 - 6 * place)));
        text.extend(std::iter::repeat_n('=', 3 - group.len()));
    }
    text
}

/// A rank file with all bytes and a few words.
fn ranks() -> String {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let words = ["he", "th", "the", " t", " the"].map(|word| word.as_bytes().to_vec());
    let tokens = bytes.chain(words).zip(0..);
    tokens.map(|(token, rank)| format!("{} {rank}\n", base64(&token))).collect()
}

fn tokenizer_json() -> Value {
    let mut vocab: serde_json::Map<String, Value> = letters()
        .into_iter()
        .zip(0..)
        .map(|(letter, id): (char, u32)| (letter.into(), id.into()))
        .collect();
    vocab.insert("th".into(), 256.into());
    vocab.insert("the".into(), 257.into());
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{"id": 258, "content": "<end>", "single_word": false, "lstrip": false,
                          "rstrip": false, "normalized": false, "special": true}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                          "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "ignore_merges": false, "vocab": vocab, "merges": [["t", "h"], ["th", "e"]]},
    })
}

#[test]
fn a_rank_file_needs_a_pattern_unless_it_is_known() {
    start();
    let file = ranks();
    assert_eq!(open_with(file.as_bytes(), &json!({})).unwrap()["needs_pattern"], true);
    assert!(encoded("x", true).unwrap_err().contains("no vocabulary is open"));
    let chosen = json!({"pattern": {"name": "gpt2"}});
    assert_eq!(open_with(file.as_bytes(), &chosen).unwrap()["pattern"], "gpt2");
    assert_eq!(encoded(" the them", true).unwrap()[0], [260, 260, 109]);
    let none = json!({"pattern": "none"});
    assert_eq!(open_with(file.as_bytes(), &none).unwrap()["pattern"], "none");
    let digest = "0".repeat(64);
    let sidecar = json!({"byteweld": 1, "pattern": null, "special_tokens": {}, "roles": {},
                         "alphabet": "bytes", "sha256": digest});
    let given = json!({"sidecar": sidecar.to_string()});
    assert!(open_with(file.as_bytes(), &given).unwrap_err().contains("another SHA-256"));
    for (options, words) in [
        (json!({"pattern": {"name": "gpt9"}}), "unknown pattern"),
        (json!({"pattern": {"regex": "(["}}), "("),
        (json!({"pattern": {"regex": ""}}), "empty"),
        (json!({"pattern": 7}), "options"),
        (json!({"patern": null}), "options"),
    ] {
        assert!(open_with(file.as_bytes(), &options).unwrap_err().contains(words), "{options}");
    }
}

#[test]
fn a_tokenizer_json_is_opened_and_its_special_tokens_are_told() {
    start();
    let file = tokenizer_json().to_string();
    let opened = open_with(file.as_bytes(), &json!({})).unwrap();
    assert_eq!(opened, json!({"needs_pattern": false, "tokens": 259, "pattern": "gpt2"}));
    let [ids, lengths, special] = encoded("the<end>", true).unwrap();
    assert_eq!((ids, lengths, special), (vec![257, 258], vec![3, 5], vec![1]));
    assert_eq!(encoded("the<end>", false).unwrap()[2], [] as [u32; 0]);
    let details: Value = serde_json::from_slice(&call(&[], || token(257)).unwrap()).unwrap();
    assert_eq!(details["makes"], json!([[1, 256, 101, 257, null]]));
    assert_eq!(details["tree"]["roots"], json!([4]));
    assert!(call(&[], || token(9999)).unwrap_err().contains("9999"));
    assert!(encoded(&"x".repeat((1 << 16) + 1), true).unwrap_err().contains("65536"));
    assert!(input(7, 1).is_null());
}

#[test]
fn what_cannot_be_encoded_exactly_is_refused_by_name() {
    start();
    for (pointer, value, words) in [
        ("/model/type", json!("Unigram"), "Unigram"),
        ("/model/dropout", json!(0.1), "dropout"),
        ("/model/end_of_word_suffix", json!("</w>"), "end_of_word_suffix"),
        ("/version", json!("2.0"), "version"),
        ("/truncation", json!({}), "truncation"),
        ("/padding", json!({"strategy": "x"}), "padding"),
        ("/normalizer", json!({"type": "StripAccents"}), "StripAccents"),
        ("/normalizer", json!({"type": "NFC", "more": 1}), "more"),
        ("/pre_tokenizer", json!(null), "ASCII"),
        ("/pre_tokenizer", json!({"type": "Metaspace"}), "Metaspace"),
        (
            "/pre_tokenizer",
            json!({"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": "a$"}, "behavior": "Isolated", "invert": false},
                {"type": "ByteLevel", "add_prefix_space": false}]}),
            "a$",
        ),
        ("/added_tokens/0/content", json!(""), "non-empty"),
        ("/added_tokens/0/id", json!(-1), "-1"),
        ("/added_tokens/0/special", json!("yes"), "yes"),
        ("/model/vocab/a", json!(98), "same id 98"),
        ("/model/merges/0", json!(["t", "zz"]), "'zz' is not in"),
    ] {
        let mut file = tokenizer_json();
        *file.pointer_mut(pointer).unwrap() = value;
        let error = open_with(file.to_string().as_bytes(), &json!({})).unwrap_err();
        assert!(error.contains(words), "{pointer}: {error}");
    }
    // Without a token for each byte.
    for (settings, words) in [
        (json!({"unk_token": "<unk>"}), "1 of 256 bytes"),
        (json!({"unk_token": "b", "fuse_unk": true}), "fuse_unk"),
        (json!({"byte_fallback": true}), "byte_fallback"),
    ] {
        let mut file = without_a();
        file["model"]["vocab"]["<0x61>"] = 300.into();
        for (key, value) in settings.as_object().unwrap() {
            file["model"][key] = value.clone();
        }
        let error = open_with(file.to_string().as_bytes(), &json!({})).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_letters_of_ck_are_read() {
    start();
    let mut text = tokenizer_json().to_string();
    for (byte, letter) in (0..=255u8).zip(letters()) {
        let theirs = match byte {
            0x7F..=0xA0 => char::from_u32(0x100 + u32::from(byte)).unwrap(),
            0xAD => '\u{AD}',
            _ => continue,
        };
        text = text.replacen(letter, &theirs.to_string(), 1);
    }
    open_with(text.as_bytes(), &json!({})).unwrap();
    assert_eq!(encoded("the\u{7F}", true).unwrap()[0], [257, 127]);
}

#[test]
fn a_model_of_ascii_text_is_opened() {
    start();
    let characters = "\t\n\r".chars().chain(' '..='~');
    let vocab: serde_json::Map<String, Value> =
        characters.zip(0..).map(|(c, id): (char, u32)| (c.into(), id.into())).collect();
    let mut file = tokenizer_json();
    file["pre_tokenizer"] = json!(null);
    file["normalizer"] = json!(null);
    file["added_tokens"] = json!([]);
    file["model"]["vocab"] = vocab.into();
    file["model"]["merges"] = json!([]);
    file["model"]["unk_token"] = "?".into();
    open_with(file.to_string().as_bytes(), &json!({})).unwrap();
    assert_eq!(encoded("a日", true).unwrap()[0], [68, 34]);
}

/// A tokenizer.json without a token for the byte `a`.
fn without_a() -> Value {
    let mut file = tokenizer_json();
    file["model"]["vocab"].as_object_mut().unwrap().remove("a");
    file["added_tokens"] = json!([]); // its id would be that of another token
    file
}

#[test]
fn a_byte_without_a_token_is_dropped_or_unk() {
    start();
    let mut file = without_a();
    open_with(file.to_string().as_bytes(), &json!({})).unwrap();
    let answer = call(&[b"bab"], || encode(true)).unwrap();
    assert_eq!(answer[..12], [2u32, 98, 98].map(u32::to_le_bytes).concat()[..]);
    file["model"]["unk_token"] = "th".into();
    open_with(file.to_string().as_bytes(), &json!({})).unwrap();
    assert_eq!(encoded("bab", true).unwrap()[0], [98, 256, 98]);
}

#[test]
fn truncated_and_changed_files_never_panic() {
    start();
    let options = json!({"pattern": {"name": "gpt2"}});
    for file in [ranks().into_bytes(), tokenizer_json().to_string().into_bytes()] {
        for end in 0..file.len() {
            if open_with(&file[..end], &options).is_ok() {
                encoded("the <end> naïve", true).unwrap();
            }
        }
        let mut seed = 1u64;
        for _ in 0..2000 {
            let mut changed = file.clone();
            for _ in 0..=seed % 3 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (seed >> 33) as usize % changed.len();
                changed[at] = b"0129az{}[]\",:= \n\\\xff"[(seed >> 13) as usize % 18];
            }
            if open_with(&changed, &options).is_ok() {
                encoded("the <end> naïve", true).unwrap();
            }
        }
    }
}

#[test]
fn huge_claims_and_deep_nesting_are_refused() {
    start();
    let deep = format!("{{\"model\": {}", "[".repeat(500_000));
    let far = ranks() + "YWI= 4294967294\n";
    let wide =
        format!("{{\"normalizer\": {}1", "{\"type\":\"Sequence\",\"normalizers\":[".repeat(9000));
    let many = tokenizer_json().to_string().replace(
        r#"{"type":"NFC"}"#,
        &format!(
            r#"{{"type":"Sequence","normalizers":[{}]}}"#,
            [r#"{"type":"NFC"}"#; 65].join(",")
        ),
    );
    for file in [deep, far, wide, many, "{".repeat(100_000), String::new(), "x".repeat(1 << 21)] {
        let options = json!({"pattern": {"name": "gpt2"}});
        assert!(open_with(file.as_bytes(), &options).is_err());
    }
}
