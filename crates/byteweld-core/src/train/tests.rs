//! One thread against several. Under test, a few positions are worth a thread, so that small texts
//! are divided.

use super::*;
use crate::testing::{Random, examples};

fn learn(pretokens: &[(&[u8], u64)], options: &Options) -> Trained {
    train(&pretokens, options, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn any_number_of_threads_learns_the_same() {
    let random = &mut Random(1);
    for case in 0..examples(100) {
        let letters = 1 + random.below(4);
        let longest = [3, 12, 200, 2000][random.below(4)];
        let pretokens: Vec<(Vec<u8>, u64)> = (0..1 + random.below(12))
            .map(|_| {
                let length = random.below(longest + 1);
                (
                    (0..length).map(|_| b'a' + random.below(letters) as u8).collect(),
                    random.below(5) as u64,
                )
            })
            .collect();
        let pretokens: Vec<(&[u8], u64)> =
            pretokens.iter().map(|(p, count)| (&p[..], *count)).collect();
        let base_ids = std::array::from_fn(|byte| Some(byte as u32));
        let max_new_ids = if random.below(2) == 0 { 1 + random.below(60) } else { 100_000 };
        let tie_break = [TieBreak::SmallestIds, TieBreak::GreatestBytes, TieBreak::SmallestBytes]
            [random.below(3)];
        let one = Options {
            base_ids,
            first_id: 256,
            max_new_ids,
            reserved: Vec::new(),
            forbidden: [Vec::new(), vec![b"ab".to_vec(), b"aba".to_vec()]][random.below(2)].clone(),
            known: Vec::new(),
            tie_break,
            min_frequency: random.below(4) as u64,
            max_token_bytes: [None, Some(7)][random.below(2)],
            threads: 1,
        };
        let expected = learn(&pretokens, &one);
        for threads in [2, 3, 7] {
            let found = learn(&pretokens, &Options { threads, ..one.clone() });
            assert_eq!(found, expected, "case {case}, {threads} threads");
        }
        // The same if the first merges are known. (Starting threads is slow: not in every case.)
        if case % 8 != 0 {
            continue;
        }
        let done = random.below(expected.merges.len() + 1);
        let (done, rest) = expected.merges.split_at(done);
        let known = |m: &LearnedMerge| KnownMerge { left: m.left, right: m.right, new: m.new };
        for threads in [1, 3] {
            let second = Options {
                known: done.iter().map(known).collect(),
                first_id: one.first_id + done.len() as u32,
                max_new_ids: one.max_new_ids - done.len(),
                threads,
                ..one.clone()
            };
            assert_eq!(learn(&pretokens, &second).merges, rest, "case {case}, {threads} threads");
        }
    }
}
