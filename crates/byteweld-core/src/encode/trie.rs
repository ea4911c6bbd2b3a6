//! The longest token that a text starts with: a trie, as three flat arrays.
//!
//! The first two bytes are one look into a table. From there on a node's children lie side by side, with the
//! byte that leads to each in an array of its own, so that eight of them are compared at once.

use super::pairs::NONE;

/// So many labels are compared at once.
const LANES: usize = size_of::<u64>();

/// The bytes of a token, and its id.
type Entry<'t> = (&'t [u8], u32);

#[derive(Clone, Copy)]
struct Node {
    /// Where its children start; they end where those of the next node start.
    children: u32,
    /// The token that ends here, or [`NONE`].
    token: u32,
}

pub(super) struct Trie {
    /// The node of each two bytes, or [`NONE`].
    pairs: Vec<u32>,
    nodes: Vec<Node>,
    /// The last byte of each node, and [`LANES`] more so that so many can be read anywhere.
    labels: Vec<u8>,
}

impl Trie {
    /// The trie of tokens in order of their bytes, none twice; `None` if there are
    /// too many. Tokens of one byte are passed over. `shorter` is told of each token the longest one that it
    /// starts with, if that has at least two bytes.
    pub(super) fn new(
        tokens: &[Entry<'_>],
        mut shorter: impl FnMut(u32, Option<u32>),
    ) -> Option<Self> {
        let mut trie = Self { pairs: vec![NONE; 1 << 16], nodes: Vec::new(), labels: Vec::new() };
        // Nodes by depth: of each the tokens that start with it, and the longest token above.
        let long = |&(token, _): &Entry<'_>| token.len() >= 2;
        let mut level: Vec<(&[Entry<'_>], Option<u32>)> = tokens
            .chunk_by(|a, b| long(a) && long(b) && a.0[..2] == b.0[..2])
            .filter(|group| long(&group[0]))
            .map(|group| (group, None))
            .collect();
        for (group, at) in level.iter().zip(0..) {
            let first = group.0[0].0;
            trie.pairs[pair(first[0], first[1])] = at;
            trie.labels.push(first[1]);
        }
        let mut depth = 2;
        while !level.is_empty() {
            let mut next = Vec::new();
            for (mut group, mut above) in level {
                let mut ends = NONE;
                if let Some((&(token, id), others)) = group.split_first()
                    && token.len() == depth
                {
                    shorter(id, above);
                    (ends, above, group) = (id, Some(id), others);
                }
                let children = u32::try_from(trie.labels.len()).ok()?;
                trie.nodes.push(Node { children, token: ends });
                for child in group.chunk_by(|a, b| a.0[depth] == b.0[depth]) {
                    trie.labels.push(child[0].0[depth]);
                    next.push((child, above));
                }
            }
            level = next;
            depth += 1;
        }
        let children = u32::try_from(trie.labels.len()).ok().filter(|&end| end < NONE)?;
        trie.nodes.push(Node { children, token: NONE }); // where the last one's children end
        trie.labels.resize(trie.labels.len() + LANES, 0);
        Some(trie)
    }

    /// The longest token of at least two bytes that a text starts with, as (id, length), and how far was looked.
    #[inline]
    pub(super) fn longest(&self, text: &[u8]) -> (Option<(u32, usize)>, usize) {
        let &[first, second, ref rest @ ..] = text else { return (None, 1) };
        let mut node = self.pairs[pair(first, second)];
        let (mut longest, mut length) = (None, 2);
        for &byte in rest {
            let Some(&[Node { children, token }, next]) = self.window(node) else { break };
            if token != NONE {
                longest = Some((token, length));
            }
            length += 1;
            node = self.child(children as usize, next.children as usize, byte);
        }
        if let Some(&[Node { token, .. }, _]) = self.window(node)
            && token != NONE
        {
            longest = Some((token, length));
        }
        (longest, length)
    }

    /// A node and the next one; `None` for [`NONE`].
    #[inline(always)]
    fn window(&self, node: u32) -> Option<&[Node; 2]> {
        self.nodes.get(node as usize..)?.first_chunk()
    }

    /// Of the children from one to another, that with a label, or [`NONE`].
    #[inline(always)]
    fn child(&self, mut at: usize, end: usize, label: u8) -> u32 {
        // Most have one child. A jump that is guessed is quicker than a result that has to be waited for.
        if at < end && self.labels[at] == label {
            return at as u32;
        }
        while at < end
            && let Some(lanes) = self.labels[at..].first_chunk()
        {
            // The lowest bit that is set is the top of the first byte that is equal.
            const ONES: u64 = u64::MAX / 0xFF;
            let differ = u64::from_le_bytes(*lanes) ^ (ONES * u64::from(label));
            let equal = differ.wrapping_sub(ONES) & !differ & (ONES << 7);
            if equal != 0 {
                at += equal.trailing_zeros() as usize / 8;
                return if at < end { at as u32 } else { NONE };
            }
            at += LANES;
        }
        NONE
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}
