//! The table against a `BTreeMap`, and counting against a plain loop over pre-tokens.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use std::sync::{Arc, Mutex};

use super::batch::Batch;
use super::counter::add_up;
use super::table::{CountTable, table_bytes};
use super::{CountOptions, Counter, Counts, MemoryLimit, Pruned, SortedIndex, Spill};
use crate::documents::{DocumentSource, ReadStatus};
use crate::error::Error;
use crate::packed::MAX_PACKED_BYTES;
use crate::pretoken::Pretokenizer;
use crate::specials::Specials;
use crate::testing::Random;

/// The pattern over bytes.
const CK_RUNTIME: &str = r"(?-u)[^A-Za-z0-9 \n\t\r]?[A-Za-z]+|[0-9]| ?[^A-Za-z0-9 \n\t\r]+\n*| +\n+| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|(?s:.)";
const GPT2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Up to 40 bytes with few values, so that many are equal, prefixes of each other, or differ only
/// in zeros.
fn random_pretoken(random: &mut Random) -> Vec<u8> {
    let length = random.below(41);
    (0..length).map(|_| random.pick(&[0, 0, 0, 1, 0xFF])).collect()
}

fn map_of(counts: &Counts) -> BTreeMap<Vec<u8>, u64> {
    let map: BTreeMap<_, _> = counts.iter().map(|(bytes, count)| (bytes.to_vec(), count)).collect();
    assert_eq!(map.len(), counts.len(), "a pre-token is listed twice");
    map
}

fn total(counts: &Counts) -> u128 {
    counts.iter().map(|(_, count)| u128::from(count)).sum()
}

fn counts_of(items: &[(&[u8], u64)]) -> Counts {
    let mut counts = Counts::new();
    for (pretoken, count) in items {
        counts.add(pretoken, *count).unwrap();
    }
    counts
}

// ---------------------------------------------------------------------- the table

#[test]
fn pretokens_that_differ_only_in_zeros_are_different() {
    let mut counts = Counts::new();
    let mut all: Vec<Vec<u8>> = Vec::new();
    for length in 0..=40 {
        all.push(vec![0; length]);
        for at in 0..length {
            let mut one = vec![0; length];
            one[at] = 1;
            all.push(one.clone());
            one[at] = 0xFF; // the last byte of a short key is a length, that of a long one 0xFF
            all.push(one);
        }
    }
    for (count, pretoken) in (1..).zip(&all) {
        counts.add(pretoken, count).unwrap();
    }
    assert_eq!(counts.len(), all.len());
    for (count, pretoken) in (1..).zip(&all) {
        assert_eq!(counts.get(pretoken), count, "{pretoken:?}");
    }
    let seen: Vec<Vec<u8>> = counts.iter().map(|(bytes, _)| bytes.to_vec()).collect();
    assert_eq!(seen, all, "not in order of first occurrence");
}

#[test]
fn counts_equal_a_map() {
    let mut random = Random(1);
    let mut counts = Counts::new();
    let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for _ in 0..50_000 {
        let (pretoken, count) = (random_pretoken(&mut random), random.below(3) as u64);
        counts.add(&pretoken, count).unwrap();
        if count > 0 {
            *expected.entry(pretoken).or_default() += count;
        }
    }
    assert_eq!(map_of(&counts), expected);
    assert_eq!(total(&counts), expected.values().map(|&count| u128::from(count)).sum());
    assert!(expected.iter().all(|(pretoken, &count)| counts.get(pretoken) == count));
    let sorted: Vec<_> = expected.iter().map(|(p, &count)| (p.as_slice(), count)).collect();
    assert_eq!(counts.sorted().unwrap(), sorted);
}

#[test]
fn a_table_keeps_all_entries_as_it_grows() {
    let mut counts = Counts::new();
    let pretoken = |n: u32| {
        let mut bytes = n.to_le_bytes().to_vec();
        if n.is_multiple_of(5) {
            bytes.extend([7; 20]);
        }
        bytes
    };
    for n in 0..200_000 {
        counts.add(&pretoken(n), 1).unwrap();
        counts.add(&pretoken(n / 2), 1).unwrap();
    }
    assert_eq!(counts.len(), 200_000);
    for n in 0..200_000 {
        assert_eq!(counts.get(&pretoken(n)), if n < 100_000 { 3 } else { 1 });
    }
    assert_eq!(counts.get(&pretoken(200_000)), 0);
    for (n, (bytes, _)) in (0..).zip(counts.iter()) {
        assert_eq!(bytes, pretoken(n));
    }
}

#[test]
fn a_count_of_zero_adds_no_entry() {
    let mut counts = counts_of(&[(b"a", 0), (&[1; 30], 0), (b"b", 1), (b"b", 0)]);
    assert_eq!(counts.sorted().unwrap(), [(b"b".as_slice(), 1)]);
    counts.merge(&Counts::new()).unwrap();
    assert_eq!((counts.len(), counts.get(b"a"), counts.get(&[1; 30])), (1, 0, 0));
    assert!(Counts::new().is_empty());
}

#[test]
fn a_count_reaches_the_maximum_but_does_not_overflow() {
    for pretoken in [b"a".as_slice(), b"", &[0; 15], &[0; 16], &[9; 100]] {
        let mut counts = counts_of(&[(pretoken, u64::MAX - 1), (b"b", 1)]);
        counts.add(pretoken, 1).unwrap();
        assert_eq!(counts.get(pretoken), u64::MAX);
        let one = counts_of(&[(b"b", 1), (pretoken, 1)]);
        let name = format!("{:?}", String::from_utf8_lossy(pretoken));
        for result in [counts.add(pretoken, 1), counts.add(pretoken, u64::MAX), counts.merge(&one)]
        {
            match result {
                Err(Error::Overflow(message)) => assert!(message.contains(&name), "{message}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(counts.get(pretoken), u64::MAX);
        assert!(matches!(add_up(&[counts, one], 2), Err(Error::Overflow(_))));
    }
}

#[test]
fn tables_add_up_in_any_number_of_parts() {
    let mut random = Random(2);
    let mut all: Vec<Counts> = (0..5).map(|_| Counts::new()).collect();
    let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for _ in 0..20_000 {
        let (pretoken, which) = (random_pretoken(&mut random), random.below(5));
        let count = 1 + random.below(1 << 30) as u64 * (1 << 20);
        all[which].add(&pretoken, count).unwrap();
        *expected.entry(pretoken).or_default() += count;
    }
    for threads in [1, 2, 3, 4, 100] {
        let mut sum = add_up(&all, threads).unwrap();
        assert_eq!(map_of(&sum), expected, "{threads} threads");
        assert!(expected.iter().all(|(pretoken, &count)| sum.get(pretoken) == count));
        // A sum in several parts behaves like any other counts.
        sum.add(b"another", 5).unwrap();
        sum.merge(&all[0]).unwrap();
        let mut again = Counts::new();
        again.merge(&sum).unwrap();
        assert_eq!(map_of(&again), map_of(&sum));
        assert_eq!(again.get(b"another"), 5);
        assert_eq!(total(&again), total(&sum));
        assert_eq!(
            total(&sum),
            expected.values().map(|&c| u128::from(c)).sum::<u128>() + 5 + total(&all[0])
        );
    }
}

// ---------------------------------------------------------------------- counting

/// Counts pre-tokens one by one, after splitting at the boundary.
fn count_plainly(
    documents: &[Vec<u8>],
    pretokenizer: &Pretokenizer,
    boundary: Option<&str>,
) -> BTreeMap<Vec<u8>, u64> {
    let mut map: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for document in documents {
        let text = std::str::from_utf8(document).unwrap();
        let pieces: Vec<&str> = match boundary {
            Some(boundary) => text.split(boundary).collect(),
            None => vec![text],
        };
        for pretoken in pieces.iter().flat_map(|piece| pretokenizer.pieces(piece.as_bytes())) {
            *map.entry(pretoken.to_vec()).or_default() += 1;
        }
    }
    map
}

/// About `bytes` bytes of words of all lengths, some with zeros and some not ASCII.
fn prose(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut text = String::new();
    while text.len() < bytes {
        match random.below(20) {
            0 => text.push('\n'),
            1 => text.push_str(", \0\0"),
            2 => text.push_str(&"é".repeat(random.below(12))),
            3 => text.push_str(&" ".repeat(random.below(40))),
            4 => text.push_str("<|end|>"),
            _ => {
                text.push(' ');
                let length = 1 + random.below(18).min(random.below(18));
                text.extend((0..length).map(|_| char::from(b'a' + random.below(3) as u8)));
            }
        }
    }
    text.into_bytes()
}

/// Returns documents in pieces of uneven sizes.
struct UnevenSource<'d> {
    documents: &'d [Vec<u8>],
    next: usize,
    offset: usize,
    random: Random,
}

impl<'d> UnevenSource<'d> {
    fn new(documents: &'d [Vec<u8>]) -> Self {
        Self { documents, next: 0, offset: 0, random: Random(3) }
    }
}

impl DocumentSource for UnevenSource<'_> {
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        max_bytes: usize,
    ) -> Result<ReadStatus, Box<dyn std::error::Error + Send + Sync>> {
        let Some(document) = self.documents.get(self.next) else {
            return Ok(ReadStatus::CorpusEnd);
        };
        let rest = &document[self.offset..];
        let taken = (1 + self.random.below(max_bytes)).min(rest.len());
        buffer.extend_from_slice(&rest[..taken]);
        self.offset += taken;
        if taken < rest.len() {
            return Ok(ReadStatus::More);
        }
        (self.next, self.offset) = (self.next + 1, 0);
        Ok(ReadStatus::DocumentEnd)
    }

    fn location(&self) -> (Option<String>, Option<u64>) {
        (None, None)
    }
}

fn threads(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn proceed() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn documents_and_sources_give_the_same_counts_on_any_number_of_threads() {
    let mut documents = vec![prose(2_500_000, 4), Vec::new(), b"x".to_vec(), prose(1 << 18, 5)];
    documents.extend((0..300).map(|n| prose(n * 7, n as u64)));
    for pattern in [Some(GPT2), Some(CK_RUNTIME), None] {
        for boundary in [None, Some("<|end|>")] {
            let pretokenizer = Pretokenizer::new(pattern).unwrap();
            let boundaries = Specials::new(boundary.as_slice()).unwrap();
            let options = CountOptions {
                pretokenizer: &pretokenizer,
                boundaries: &boundaries,
                alphabet: None,
            };
            let expected = count_plainly(&documents, &pretokenizer, boundary);
            for number in 1..=4 {
                let mut counter = Counter::new(threads(number));
                counter.count_documents(&documents, &options).unwrap();
                assert_eq!(map_of(&counter.finish().unwrap()), expected, "{number} threads");
                let mut counter = Counter::new(threads(number));
                counter
                    .count_source(&mut UnevenSource::new(&documents), &options, &mut proceed)
                    .unwrap();
                assert_eq!(map_of(&counter.finish().unwrap()), expected, "{number} threads");
            }
        }
    }
}

#[test]
fn one_thread_lists_pretokens_in_order_of_first_occurrence() {
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    let boundaries = Specials::new::<&str>(&[]).unwrap();
    let options =
        CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
    let documents: Vec<Vec<u8>> = (0..30).map(|n| prose(n * 500, n as u64)).collect();
    let mut expected: Vec<Vec<u8>> = Vec::new();
    for document in &documents {
        for pretoken in pretokenizer.pieces(document) {
            if !expected.iter().any(|seen| seen == pretoken) {
                expected.push(pretoken.to_vec());
            }
        }
    }
    assert!(expected.iter().any(|pretoken| pretoken.len() > MAX_PACKED_BYTES));
    let mut counter = Counter::new(threads(1));
    counter.count_documents(&documents, &options).unwrap();
    let counts = counter.finish().unwrap();
    let seen: Vec<Vec<u8>> = counts.iter().map(|(bytes, _)| bytes.to_vec()).collect();
    assert_eq!(seen, expected);
    // Adding counts to empty ones keeps their order.
    let mut sum = Counts::new();
    sum.merge(&counts).unwrap();
    assert!(sum.iter().eq(counts.iter()));
}

#[test]
fn a_counter_can_be_called_repeatedly() {
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    let boundaries = Specials::new::<&str>(&[]).unwrap();
    let options =
        CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
    let documents: Vec<Vec<u8>> = (0..40).map(|n| prose(n * 5_000, n as u64)).collect();
    let expected = count_plainly(&documents, &pretokenizer, None);
    for number in 1..=4 {
        let mut counter = Counter::new(threads(number));
        for some in documents.chunks(7) {
            counter.count_documents(some, &options).unwrap();
        }
        assert_eq!(map_of(&counter.finish().unwrap()), expected);
    }
    assert!(Counter::new(threads(3)).finish().unwrap().is_empty());
}

#[test]
fn a_text_of_any_length_is_counted_to_its_last_byte() {
    // Fewer than 16 bytes follow the start of the last pre-tokens.
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    let boundaries = Specials::new::<&str>(&[]).unwrap();
    let options =
        CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
    for length in 0..400 {
        let mut document = prose(500, length as u64);
        while document.len() > length || std::str::from_utf8(&document).is_err() {
            document.pop();
        }
        let documents = [document];
        let mut counter = Counter::new(threads(1));
        counter.count_documents(&documents, &options).unwrap();
        let expected = count_plainly(&documents, &pretokenizer, None);
        assert_eq!(map_of(&counter.finish().unwrap()), expected);
    }
}

#[test]
fn a_byte_outside_the_alphabet_is_reported_with_its_offset() {
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    let boundaries = Specials::new::<&str>(&[]).unwrap();
    let mut alphabet = [true; 256];
    alphabet[0xC3] = false;
    let options = CountOptions {
        pretokenizer: &pretokenizer,
        boundaries: &boundaries,
        alphabet: Some(&alphabet),
    };
    let mut document = b"ab ".repeat(1_000_000);
    document[2_999_990] = 0xC3;
    for number in [1, 2] {
        let documents = [b"fine".to_vec(), document.clone()];
        match Counter::new(threads(number)).count_documents(&documents, &options) {
            Err(Error::ForbiddenByte { byte: 0xC3, offset: Some(2_999_990), path: None }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn progress_can_stop_the_counting() {
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    let boundaries = Specials::new::<&str>(&[]).unwrap();
    let options =
        CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
    let documents = [prose(9_000_000, 1)];
    for number in 1..=3 {
        let mut calls = 0;
        let mut stop = || {
            calls += 1;
            if calls == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut counter = Counter::new(threads(number));
        let counted = counter.count_source(&mut UnevenSource::new(&documents), &options, &mut stop);
        // With other threads, the caller's thread may not get a second block.
        assert!(matches!(counted, Err(Error::Interrupted)) || (number > 1 && calls < 2));
        assert!(calls <= 2);
    }
}

// ---------------------------------------------------------------------- within a limit

/// Keeps runs in memory and checks their order.
#[derive(Default)]
struct Runs(Mutex<Vec<Run>>);

type Run = Vec<(Vec<u8>, u64)>;

impl Spill for Runs {
    fn parts(&self) -> usize {
        5
    }

    fn part(&self, pretoken: &[u8]) -> usize {
        pretoken.iter().map(|&byte| usize::from(byte)).sum::<usize>() % 5
    }

    fn write(
        &self,
        run: &mut dyn Iterator<Item = (&[u8], u64)>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let run: Run = run.map(|(bytes, count)| (bytes.to_vec(), count)).collect();
        assert!(
            run.is_sorted_by(|(a, _), (b, _)| (self.part(a), a) < (self.part(b), b)),
            "a run is not in order"
        );
        self.0.lock().unwrap().push(run);
        Ok(())
    }
}

impl Runs {
    fn sum(&self) -> BTreeMap<Vec<u8>, u64> {
        let mut sum = BTreeMap::new();
        for (bytes, count) in self.0.lock().unwrap().iter().flatten() {
            *sum.entry(bytes.clone()).or_default() += count;
        }
        sum
    }
}

fn limit(table_bytes: usize) -> (Arc<Runs>, MemoryLimit) {
    let runs = Arc::new(Runs::default());
    let spill: Arc<dyn Spill> = Arc::<Runs>::clone(&runs);
    (runs, MemoryLimit { table_bytes, text_bytes: usize::MAX, spill })
}

#[test]
fn a_text_that_cannot_be_cut_has_a_limit_wherever_it_ends() {
    let pretokenizer = Pretokenizer::new(None).unwrap();
    let boundaries = Specials::new::<&str>(&[]).unwrap();
    let options =
        CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
    for (bytes, fits) in
        [((3 << 20) - 1, true), (3 << 20, true), (13 << 18, false), (9 << 20, false)]
    {
        let (_, mut limit) = limit(usize::MAX);
        limit.text_bytes = 3 << 20;
        let mut counter = Counter::with_limit(limit, threads(1));
        let documents = [vec![0; bytes]];
        let counted =
            counter.count_source(&mut UnevenSource::new(&documents), &options, &mut proceed);
        assert_eq!(counted.is_ok(), fits, "{bytes} bytes: {counted:?}");
    }
}

#[test]
fn a_table_stays_within_its_limit_and_its_runs_add_up() {
    for table_bytes in [6_000, 10_000, 33_333, 200_000, 5_000_000] {
        let mut random = Random(table_bytes as u64);
        let (runs, limit) = limit(table_bytes);
        let hasher = foldhash::fast::RandomState::default();
        let mut table = CountTable::default();
        let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for _ in 0..400 {
            let mut ends = vec![0];
            let mut text = Vec::new();
            for _ in 0..100 {
                let pretoken = match random.below(4) {
                    0 => random_pretoken(&mut random),
                    _ => (0..random.below(9)).map(|_| random.below(250) as u8).collect(),
                };
                text.extend_from_slice(&pretoken);
                ends.push(text.len());
                *expected.entry(pretoken).or_default() += 1;
            }
            let mut batch = Batch::with_limit(Some(&limit), &mut table, &hasher);
            for ends in ends.windows(2) {
                batch.add(&text, ends[0], ends[1]).unwrap();
            }
            batch.flush().unwrap();
            assert!(table.memory() <= table_bytes, "{} of {table_bytes}", table.memory());
        }
        if table_bytes < 1_000_000 {
            assert!(!runs.0.lock().unwrap().is_empty(), "nothing was spilled");
        }
        table.spill(&*runs).unwrap();
        assert_eq!(runs.sum(), expected);
    }
}

#[test]
fn a_full_table_uses_most_of_its_limit() {
    let (runs, limit) = limit(1 << 20);
    let hasher = foldhash::fast::RandomState::default();
    let mut table = CountTable::default();
    let mut batch = Batch::with_limit(Some(&limit), &mut table, &hasher);
    for n in 0..200_000_u32 {
        batch.add(&n.to_le_bytes(), 0, 4).unwrap();
    }
    batch.flush().unwrap();
    let runs = runs.0.lock().unwrap();
    // An entry and its slots take 30 bytes or more; a sixteenth is reserved for long pre-tokens.
    assert!(runs[1..].iter().all(|run| run.len() > (1 << 20) * 6 / 10 / 30), "{}", runs[1].len());
}

#[test]
fn a_pretoken_longer_than_the_table_becomes_a_separate_run() {
    let (runs, limit) = limit(8_000);
    let hasher = foldhash::fast::RandomState::default();
    let mut table = CountTable::default();
    let mut batch = Batch::with_limit(Some(&limit), &mut table, &hasher);
    let long = vec![7; 100_000];
    for _ in 0..3 {
        batch.add(&long, 0, long.len()).unwrap();
        batch.add(b"ab", 0, 1).unwrap();
        batch.add(b"ab", 1, 2).unwrap();
    }
    batch.flush().unwrap();
    table.spill(&*runs).unwrap();
    let expected = BTreeMap::from([(long, 3), (b"a".to_vec(), 3), (b"b".to_vec(), 3)]);
    assert_eq!(runs.sum(), expected);
}

#[test]
fn a_counter_with_a_limit_keeps_or_spills_everything() {
    let pretokenizer = Pretokenizer::new(Some(GPT2)).unwrap();
    let boundaries = Specials::new(&[] as &[String]).unwrap();
    let options =
        CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
    let mut random = Random(3);
    let documents: Vec<Vec<u8>> =
        (0..300).map(|_| (0..2000).map(|_| b"abcdefgh  "[random.below(10)]).collect()).collect();
    let mut plain = Counter::new(NonZeroUsize::MIN);
    plain.count_documents(&documents, &options).unwrap();
    let expected = map_of(&plain.finish().unwrap());
    for threads in [1, 2, 7] {
        let threads = NonZeroUsize::new(threads).unwrap();
        let (runs, small) = limit(20_000);
        let mut counter = Counter::with_limit(small, threads);
        counter.count_documents(&documents, &options).unwrap();
        assert!(counter.finish_within(0).unwrap().is_none());
        assert_eq!(runs.sum(), expected);

        let (runs, large) = limit(64 << 20);
        let mut counter = Counter::with_limit(large, threads);
        counter.count_documents(&documents, &options).unwrap();
        let counts = counter.finish_within(64 << 20).unwrap().unwrap();
        assert_eq!(map_of(&counts), expected);
        assert!(runs.0.lock().unwrap().is_empty());
    }
}

#[test]
fn a_sorted_index_is_ordered_by_part_and_bytes() {
    let mut random = Random(9);
    let mut counts = Counts::new();
    for _ in 0..5_000 {
        counts.add(&random_pretoken(&mut random), 1).unwrap();
    }
    let part_of = |bytes: &[u8]| bytes.len() % 3;
    let index = SortedIndex::new(&counts, 3, part_of).unwrap();
    for part in 0..3 {
        let mut expected = counts.sorted().unwrap();
        expected.retain(|(bytes, _)| part_of(bytes) == part);
        let found: Vec<_> = index.part(&counts, part, 0).collect();
        assert_eq!(found, expected);
        assert_eq!(index.part(&counts, part, 7).collect::<Vec<_>>(), expected[7..]);
    }
}

#[test]
fn pruning_reports_the_largest_loss_of_a_byte_pair() {
    let mut pruned = Pruned::default();
    assert_eq!(pruned.pair_error(), 0);
    for (bytes, count) in [(b"lower".as_slice(), 2), (b"aaa", 1), (&[9; 30], 1), (b"x", 7)] {
        pruned.add(bytes, count);
    }
    assert_eq!((pruned.distinct, pruned.occurrences, pruned.bytes), (4, 11, 50));
    assert_eq!(pruned.pair_error(), 29);
}

#[test]
fn the_predicted_memory_is_an_upper_bound() {
    for amount in [0, 1, 10, 11, 1000, 100_000] {
        let mut table = CountTable::default();
        let hasher = foldhash::fast::RandomState::default();
        let mut bytes = 0;
        for n in 0..amount {
            let mut pretoken = vec![n as u8; 1 + n % 40];
            pretoken.extend_from_slice(&n.to_le_bytes());
            bytes += pretoken.len();
            let mut batch = Batch::new(&mut table, &hasher);
            batch.add(&pretoken, 0, pretoken.len()).unwrap();
            batch.flush().unwrap();
        }
        assert!(table.memory() <= table_bytes(amount, bytes), "{amount}");
    }
}

// ---------------------------------------------------------------------- cut points anywhere

/// However a window is placed in a document, cutting at the point found in it changes no count.
#[test]
fn a_document_may_be_cut_at_the_first_cut_of_any_window() {
    const PIECES: [&str; 16] = [
        "a", "bc", " ", "  ", "\n", "\r\n", "1", "234", "é", "你", "<|e|>", "<|", "b<|e|>c", "'s",
        "\u{a0}", ".",
    ];
    let boundaries = Specials::new(&["<|e|>".to_owned(), "b<|e|>c".to_owned()]).unwrap();
    let mut random = Random(18);
    let mut found = 0;
    for pattern in [GPT2, CK_RUNTIME, r"\w+|\s+|[^\w\s]+", r"\p{L}{1,2}|\P{L}"] {
        let pretokenizer = Pretokenizer::new(Some(pattern)).unwrap();
        let options =
            CountOptions { pretokenizer: &pretokenizer, boundaries: &boundaries, alphabet: None };
        assert!(options.has_cuts());
        let count = |parts: &[&[u8]]| {
            let mut counter = Counter::new(NonZeroUsize::MIN);
            counter.count_documents(parts, &options).unwrap();
            map_of(&counter.finish().unwrap())
        };
        for _ in 0..crate::testing::examples(2000) {
            let text: Vec<u8> = (0..random.below(40))
                .flat_map(|_| random.pick(&PIECES).bytes().collect::<Vec<u8>>())
                .collect();
            let start = random.below(text.len() + 1);
            let first = start.saturating_sub(options.context_bytes() + random.below(4));
            let stop = text.len().min(start + random.below(40));
            let cut = options.first_cut(&text[first..stop], start - first, stop == text.len());
            let Some(cut) = cut.map(|cut| first + cut) else { continue };
            assert!(cut >= start && cut < text.len());
            assert_eq!(count(&[&text[..cut], &text[cut..]]), count(&[&text]));
            found += 1;
        }
    }
    assert!(found > 2000, "{found}");
}
