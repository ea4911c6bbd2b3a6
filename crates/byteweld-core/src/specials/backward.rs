//! An Aho-Corasick automaton in flat arrays, which takes linear time and memory to build and linear
//! time to search, whatever the texts: long, periodic, nested, or many.
//!
//! It reads backward, so at each offset it knows the longest text that *starts* there. The leftmost
//! and longest match then follows without reading anything twice. An automaton that reads forward
//! has to read on after a match, in case there is a longer one, and then to return.

use std::ops::Range;

use crate::error::{Error, Result};

const ROOT: u32 = 0;

/// No text, or no node.
pub(super) const NONE: u32 = u32::MAX;

/// The trie of the reversed texts in breadth-first order, so that the children of a node are
/// neighbors, sorted by byte, and those of the next node follow them.
pub(super) struct Backward {
    /// The first child of each node, followed by the number of nodes.
    children: Vec<u32>,
    /// The last byte of the edge to each node.
    bytes: Vec<u8>,
    /// For each node, the one of its longest proper suffix in the trie.
    fails: Vec<u32>,
    /// For each node, the index of the longest text that is a suffix of it, or [`NONE`].
    longest: Vec<u32>,
    /// The children of the root by byte, or [`NONE`].
    from_root: [u32; 256],
    /// Whether a text starts with this byte.
    first_bytes: [bool; 256],
}

impl Backward {
    /// Fails if there are too many bytes to number.
    pub(super) fn new(texts: &[Vec<u8>]) -> Result<Self> {
        let total: usize = texts.iter().map(Vec::len).sum();
        if total >= NONE as usize {
            return Err(Error::Vocabulary(format!(
                "the special tokens have {total} bytes together; at most 2^32 - 2 are supported"
            )));
        }
        // In the order of the trie; of equal texts, the first is kept.
        let mut order: Vec<u32> = (0..texts.len() as u32).collect();
        let text = |index: u32| &texts[index as usize][..];
        order.sort_unstable_by(|&a, &b| {
            text(a).iter().rev().cmp(text(b).iter().rev()).then(a.cmp(&b))
        });
        let mut built = Self {
            children: vec![1],
            bytes: vec![0],
            fails: vec![ROOT],
            longest: vec![NONE],
            from_root: [NONE; 256],
            first_bytes: [false; 256],
        };
        for text in texts {
            built.first_bytes[usize::from(text[0])] = true;
        }
        // The texts of each node of a level: those that end with it.
        let mut level = vec![(ROOT, 0..order.len())];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for (node, range) in level {
                let byte = |index: u32| text(index).iter().rev().nth(depth).copied();
                let mut start = range.start;
                for group in order[range].chunk_by(|&a, &b| byte(a) == byte(b)) {
                    let end = start + group.len();
                    if let Some(byte) = byte(group[0]) {
                        // The shortest comes first.
                        let own = Some(group[0]).filter(|&own| text(own).len() == depth + 1);
                        next.push((built.add(node, byte, own), start..end));
                    }
                    start = end;
                }
                built.children.push(built.bytes.len() as u32);
            }
            level = next;
            depth += 1;
        }
        Ok(built)
    }

    /// Adds a child to the node whose children are being added.
    fn add(&mut self, parent: u32, byte: u8, own: Option<u32>) -> u32 {
        let node = self.bytes.len() as u32;
        let fail = if parent == ROOT { ROOT } else { self.step(self.fails[parent as usize], byte) };
        self.bytes.push(byte);
        self.fails.push(fail);
        self.longest.push(own.unwrap_or(self.longest[fail as usize]));
        if parent == ROOT {
            self.from_root[usize::from(byte)] = node;
        }
        node
    }

    /// The node after reading a byte.
    fn step(&self, mut node: u32, byte: u8) -> u32 {
        while node != ROOT {
            let first = self.children[node as usize] as usize;
            let end = self.children[node as usize + 1] as usize;
            if let Ok(at) = self.bytes[first..end].binary_search(&byte) {
                return (first + at) as u32;
            }
            node = self.fails[node as usize];
        }
        match self.from_root[usize::from(byte)] {
            NONE => ROOT,
            node => node,
        }
    }

    /// The first offset at or after `from` where a text may start.
    pub(super) fn first_candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        Some(from + rest.iter().position(|&byte| self.first_bytes[usize::from(byte)])?)
    }

    /// Calls `each` with every offset of a range where a text starts, last to first, and the index
    /// of the longest one there. Texts may reach beyond the range, but not beyond `read_end`.
    pub(super) fn for_each_start(
        &self,
        text: &[u8],
        range: Range<usize>,
        read_end: usize,
        mut each: impl FnMut(usize, u32),
    ) {
        let mut node = ROOT;
        for at in (range.start..read_end).rev() {
            node = self.step(node, text[at]);
            let found = self.longest[node as usize];
            if found != NONE && at < range.end {
                each(at, found);
            }
        }
    }
}
