//! The details of one token, as the studio's side panel shows them: what it is, how merges build it,
//! and what is built from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use byteweld_core::encode::Allowed;
use byteweld_core::table::VocabTable;
use byteweld_core::watch::Watch;
use memchr::memmem;
use serde::Serialize;

use crate::Result;
use crate::facts::Limits;
use crate::opened::Opened;

/// How many ids on each side are near.
const NEAR: u32 = 3;

/// A merge: rank, left, right, new, and how often it occurred in training, which no file says.
type Row = (usize, u32, u32, u32, Option<u64>);

/// What `views/vocabulary.py` answers, except for the script.
#[derive(Serialize)]
pub(crate) struct Details {
    id: u32,
    bytes: String,
    length: usize,
    rank: Option<usize>,
    special: bool,
    unreachable: Option<&'static str>,
    as_left: Vec<Row>,
    as_right: Vec<Row>,
    makes: Vec<Row>,
    total_left: usize,
    total_right: usize,
    alone: Vec<u32>,
    inside: Vec<u32>,
    total_inside: usize,
    near: Vec<u32>,
    tree: Option<Tree>,
    tokens: BTreeMap<u32, String>,
}

/// An id, its left and right parts as indices of nodes, and the rank of their merge.
type Node = (u32, Option<usize>, Option<usize>, Option<usize>);

/// A merge tree; children come before their parents.
#[derive(Serialize)]
struct Tree {
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

/// Describes a token.
pub(crate) fn details(opened: &Opened, id: u32, limits: &Limits) -> Result<Details> {
    let table = &opened.table;
    let token = table
        .get(id)
        .ok_or_else(|| format!("id {id} is not in this vocabulary of {} tokens", table.len()))?;
    let special = opened.special_ids.binary_search(&id).is_ok();
    let mut alone = Vec::new();
    if special {
        alone.push(id);
    } else {
        let encoded = opened.encoder.encode(token, &Allowed::None, &mut alone);
        encoded.map_err(|error| error.to_string())?;
    }
    let unreachable = if alone == [id] { None } else { Some(why_unreachable(opened, token)?) };
    alone.truncate(limits.shown);
    let finder = memmem::Finder::new(token);
    let (mut inside, mut total_inside) = (Vec::new(), 0);
    for (other, bytes) in table.tokens() {
        if other != id && bytes.len() >= token.len() && finder.find(bytes).is_some() {
            total_inside += 1;
            if inside.len() < limits.shown {
                inside.push(other);
            }
        }
    }
    let near: Vec<u32> = (id.saturating_sub(NEAR)..=id.saturating_add(NEAR))
        .filter(|&other| table.get(other).is_some())
        .collect();
    let mut shown = BTreeSet::from([id]);
    shown.extend(alone.iter().chain(&inside).chain(&near));
    let mut found: [(Vec<Row>, usize); 3] = Default::default(); // as left, as right, makes
    let mut rank = None;
    for (number, &(left, right, new)) in table.merges().iter().enumerate() {
        for ((rows, total), part) in found.iter_mut().zip([left, right, new]) {
            if part != id {
                continue;
            }
            *total += 1;
            if rows.len() < limits.shown {
                rows.push((number, left, right, new, None));
                shown.extend([left, right, new]);
            }
        }
        if new == id {
            rank = rank.or(Some(number));
        }
    }
    let is_other = opened.other_ids.binary_search(&id).is_ok();
    if opened.is_ranked_by_id && token.len() > 1 && !is_other {
        rank = Some(id as usize);
    }
    let tree = (token.len() <= limits.tree_bytes).then(|| tree(opened, id, token));
    if let Some(tree) = &tree {
        shown.extend(tree.nodes.iter().map(|node| node.0));
    }
    let [(as_left, total_left), (as_right, total_right), (makes, _)] = found;
    let cut = |token: &[u8]| hex(&token[..token.len().min(limits.token_bytes)]);
    let tokens =
        shown.into_iter().filter_map(|other| Some((other, cut(table.get(other)?)))).collect();
    Ok(Details {
        id,
        bytes: cut(token),
        length: token.len(),
        rank,
        special,
        unreachable,
        as_left,
        as_right,
        makes,
        total_left,
        total_right,
        alone,
        inside,
        total_inside,
        near,
        tree,
        tokens,
    })
}

/// Why a token's own bytes do not encode to it; the words are those of `evaluation`.
fn why_unreachable(opened: &Opened, token: &[u8]) -> Result<&'static str> {
    let (mut joined, mut pieces) = (Vec::new(), 0);
    let mut take = |piece: &[u8]| {
        joined.extend_from_slice(piece);
        pieces += 1;
        Ok(ControlFlow::Continue(()))
    };
    let split = opened.encoder.pretokenize(token, &Watch::default(), &mut take);
    split.map_err(|error| error.to_string())?;
    Ok(if joined != token {
        "changed"
    } else if pieces == 1 {
        "never merged"
    } else if std::str::from_utf8(token).is_ok() {
        "cut"
    } else {
        "part"
    })
}

/// How merges build a token, lowest rank first, and of equal ranks the leftmost. Quadratic in the
/// length of the token, which is limited.
fn tree(opened: &Opened, id: u32, token: &[u8]) -> Tree {
    let table = &opened.table;
    let byte_ids = table.byte_ids(&opened.other_ids);
    let is_ordinary = opened.other_ids.binary_search(&id).is_err() || has_twin(opened, token);
    if !is_ordinary {
        return Tree { nodes: vec![(id, None, None, None)], roots: vec![0] };
    }
    if token.iter().any(|&byte| byte_ids[usize::from(byte)] == u32::MAX) {
        return Tree { nodes: vec![(id, None, None, None)], roots: vec![0] };
    }
    let ranks = ranks_inside(opened, token);
    let mut parts: Vec<u32> = token.iter().map(|&byte| byte_ids[usize::from(byte)]).collect();
    let mut nodes: Vec<_> = parts.iter().map(|&id| (id, None, None, None)).collect();
    let mut roots: Vec<usize> = (0..parts.len()).collect();
    loop {
        let known = |(at, pair): (usize, &[u32])| {
            let &(rank, new) = ranks.get(&(pair[0], pair[1]))?;
            Some((rank, at, new))
        };
        let Some((rank, at, new)) = parts.windows(2).enumerate().filter_map(known).min() else {
            return Tree { nodes, roots };
        };
        nodes.push((new, Some(roots[at]), Some(roots[at + 1]), Some(rank)));
        parts.splice(at..at + 2, [new]);
        roots.splice(at..at + 2, [nodes.len() - 1]);
    }
}

/// Whether an ordinary token has these bytes, too.
fn has_twin(opened: &Opened, token: &[u8]) -> bool {
    let is_ordinary = |id: u32| opened.other_ids.binary_search(&id).is_err();
    opened.table.tokens().any(|(id, bytes)| bytes == token && is_ordinary(id))
}

/// The rank and the result of each pair of tokens that may meet inside a token.
fn ranks_inside(opened: &Opened, token: &[u8]) -> HashMap<(u32, u32), (usize, u32)> {
    let table: &VocabTable = &opened.table;
    let finder = |bytes: &[u8]| bytes.len() <= token.len() && memmem::find(token, bytes).is_some();
    if !opened.is_ranked_by_id {
        let merges = table.merges().iter().enumerate().rev(); // the first of a pair wins
        return merges
            .filter(|(_, merge)| table.get(merge.2).is_some_and(finder))
            .map(|(rank, &(left, right, new))| ((left, right), (rank, new)))
            .collect();
    }
    // Any two tokens whose bytes are a token may merge.
    let is_ordinary = |id: u32| opened.other_ids.binary_search(&id).is_err();
    let parts: HashMap<&[u8], u32> = table
        .tokens()
        .filter(|&(id, bytes)| is_ordinary(id) && finder(bytes))
        .map(|(id, bytes)| (bytes, id))
        .collect();
    let mut pairs = HashMap::new();
    for (id, bytes) in table.tokens().filter(|&(id, bytes)| is_ordinary(id) && finder(bytes)) {
        for at in 1..bytes.len() {
            if let (Some(&left), Some(&right)) = (parts.get(&bytes[..at]), parts.get(&bytes[at..]))
            {
                pairs.insert((left, right), (id as usize, id));
            }
        }
    }
    pairs
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
