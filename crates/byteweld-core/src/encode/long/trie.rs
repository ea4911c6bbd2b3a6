//! A trie that finds the longest token at the start of a text, as three flat arrays.
//!
//! The first two bytes index a table. Below that, the children of a node are contiguous, and so are
//! the bytes that lead to them (their labels), so that eight labels are compared at once.

use crate::encode::merge::NO_ID;

const NO_NODE: u32 = u32::MAX;

/// Labels that are compared at once.
const LABELS: usize = size_of::<u64>();

/// The bytes of a token, and its id.
type Entry<'t> = (&'t [u8], u32);

#[derive(Clone, Copy)]
struct Node {
    /// The start of its children; they end where those of the next node start.
    children: u32,
    /// The token that ends here, or [`NO_ID`].
    token: u32,
}

pub(crate) struct Trie {
    /// The node of every two bytes, or [`NO_NODE`].
    roots: Vec<u32>,
    nodes: Vec<Node>,
    /// The label of each node, and padding, so that [`LABELS`] can be read anywhere.
    labels: Vec<u8>,
}

impl Trie {
    /// Builds the trie of distinct tokens, sorted by their bytes; `None` if they are too many.
    /// Tokens of fewer than two bytes are ignored. Calls `prefix` for each of the others, with its
    /// longest proper prefix among them.
    pub(crate) fn new(
        tokens: &[Entry<'_>],
        mut prefix: impl FnMut(u32, Option<u32>),
    ) -> Option<Self> {
        let mut trie =
            Self { roots: vec![NO_NODE; 1 << 16], nodes: Vec::new(), labels: Vec::new() };
        // The nodes of one depth: for each, the tokens that start with it, and its longest prefix
        // that is a token.
        let has_two = |&(token, _): &Entry<'_>| token.len() >= 2;
        let mut level: Vec<(&[Entry<'_>], Option<u32>)> = tokens
            .chunk_by(|a, b| has_two(a) && has_two(b) && a.0[..2] == b.0[..2])
            .filter(|group| has_two(&group[0]))
            .map(|group| (group, None))
            .collect();
        for ((group, _), node) in level.iter().zip(0..) {
            let first = group[0].0;
            trie.roots[root(first[0], first[1])] = node;
            trie.labels.push(first[1]);
        }
        let mut depth = 2;
        while !level.is_empty() {
            let mut next_level = Vec::new();
            for (mut group, mut longest) in level {
                let mut ends_here = NO_ID;
                if let Some((&(token, id), longer)) = group.split_first()
                    && token.len() == depth
                {
                    prefix(id, longest);
                    (ends_here, longest, group) = (id, Some(id), longer);
                }
                let children = u32::try_from(trie.labels.len()).ok()?;
                trie.nodes.push(Node { children, token: ends_here });
                for child in group.chunk_by(|a, b| a.0[depth] == b.0[depth]) {
                    trie.labels.push(child[0].0[depth]);
                    next_level.push((child, longest));
                }
            }
            level = next_level;
            depth += 1;
        }
        let end = u32::try_from(trie.labels.len()).ok().filter(|&end| end < NO_NODE)?;
        trie.nodes.push(Node { children: end, token: NO_ID }); // ends the children of the last node
        trie.labels.resize(trie.labels.len() + LABELS, 0);
        Some(trie)
    }

    /// The longest token of two or more bytes that a text starts with, as (id, length), and the
    /// number of bytes read.
    #[inline]
    pub(crate) fn longest(&self, text: &[u8]) -> (Option<(u32, usize)>, usize) {
        let &[first, second, ref rest @ ..] = text else { return (None, 1) };
        let mut node = self.roots[root(first, second)];
        let (mut longest, mut length) = (None, 2);
        for &byte in rest {
            let Some(&[Node { children, token }, next]) = self.node_and_next(node) else { break };
            if token != NO_ID {
                longest = Some((token, length));
            }
            length += 1;
            node = self.child(children as usize, next.children as usize, byte);
        }
        if let Some(&[Node { token, .. }, _]) = self.node_and_next(node)
            && token != NO_ID
        {
            longest = Some((token, length));
        }
        (longest, length)
    }

    /// A node and the next one; `None` for [`NO_NODE`].
    #[inline(always)]
    fn node_and_next(&self, node: u32) -> Option<&[Node; 2]> {
        self.nodes.get(node as usize..)?.first_chunk()
    }

    /// The child with a label among the nodes `at..end`, or [`NO_NODE`].
    #[inline(always)]
    fn child(&self, mut at: usize, end: usize, label: u8) -> u32 {
        // Most nodes have one child, and a predicted branch is faster than waiting for a result.
        if at < end && self.labels[at] == label {
            return at as u32;
        }
        while at < end
            && let Some(labels) = self.labels[at..].first_chunk()
        {
            // The lowest bit set is the top bit of the first equal byte.
            const ONES: u64 = u64::MAX / 0xFF;
            let differ = u64::from_le_bytes(*labels) ^ (ONES * u64::from(label));
            let equal = differ.wrapping_sub(ONES) & !differ & (ONES << 7);
            if equal != 0 {
                at += equal.trailing_zeros() as usize / 8;
                return if at < end { at as u32 } else { NO_NODE };
            }
            at += LABELS;
        }
        NO_NODE
    }
}

fn root(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}
