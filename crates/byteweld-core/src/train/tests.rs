//! One thread and several: here a few places are worth a thread, so that small texts are divided.

use super::*;

/// Numbers that look random and are the same every time.
fn random(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

fn learn(words: &[(&[u8], u64)], options: &Options) -> Trained {
    train(&words, options, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn any_number_of_threads_learns_the_same() {
    let mut random = random(0x2545_F491_4F6C_DD1D);
    for case in 0..400 {
        let letters = 1 + random(4);
        let longest = [3, 12, 200, 2000][random(4)];
        let words: Vec<(Vec<u8>, u64)> = (0..1 + random(12))
            .map(|_| {
                let length = random(longest + 1);
                ((0..length).map(|_| b'a' + random(letters) as u8).collect(), random(5) as u64)
            })
            .collect();
        let words: Vec<(&[u8], u64)> = words.iter().map(|(w, count)| (&w[..], *count)).collect();
        let base_ids = std::array::from_fn(|byte| Some(byte as u32));
        let max_new_ids = if random(2) == 0 { 1 + random(60) } else { 100_000 };
        let tie_break =
            [TieBreak::SmallestIds, TieBreak::GreatestBytes, TieBreak::SmallestBytes][random(3)];
        let one = Options {
            base_ids,
            first_id: 256,
            max_new_ids,
            reserved: Vec::new(),
            known: Vec::new(),
            tie_break,
            min_frequency: random(4) as u64,
            max_token_bytes: [None, Some(7)][random(2)],
            threads: 1,
        };
        let expected = learn(&words, &one);
        for threads in [2, 3, 7] {
            let found = learn(&words, &Options { threads, ..one.clone() });
            assert_eq!(found, expected, "case {case}, {threads} threads");
        }
        // The same if the first merges are known. (Threads take their time: not in every case.)
        if case % 8 != 0 {
            continue;
        }
        let done = random(expected.merges.len() + 1);
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
            assert_eq!(learn(&words, &second).merges, rest, "case {case}, {threads} threads");
        }
    }
}
