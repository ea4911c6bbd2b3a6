//! How often each byte value occurs in a corpus.

use std::path::PathBuf;

use crate::error::Result;
use crate::reader::{ReadStatus, Reader};

/// The text is read in pieces of about this size.
const PIECE_BYTES: usize = 1 << 18;

/// For less, adding up the tables takes longer than it saves.
const MIN_TABLES_BYTES: usize = 1 << 12;

/// The counts of the 256 byte values in all documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteCounts {
    /// By byte value.
    pub counts: [u64; 256],
    /// The first byte that is not in the alphabet.
    pub first_outside: Option<Outside>,
    /// The number of files with such bytes.
    pub files_outside: u64,
}

/// A byte that is not in an alphabet, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Its file.
    pub path: PathBuf,
    /// Its (decompressed) offset in the file. There is none in JSON and replaced text, whose bytes
    /// are not those of the file.
    pub offset: Option<u64>,
    /// The byte.
    pub byte: u8,
}

impl ByteCounts {
    /// Counts the bytes of all documents; `alphabet` tells which bytes are in it.
    pub fn of(reader: &mut Reader, alphabet: &[bool; 256]) -> Result<Self> {
        let mut found = ByteCounts { counts: [0; 256], first_outside: None, files_outside: 0 };
        let mut piece = Vec::new();
        let mut last: Option<PathBuf> = None; // the last file with a byte outside
        loop {
            piece.clear();
            let status = reader.read(&mut piece, PIECE_BYTES)?;
            count(&piece, &mut found.counts);
            if last.as_deref() != reader.location().0
                && let Some(outside) = outside(&piece, alphabet, reader)
            {
                last = Some(outside.path.clone());
                found.files_outside += 1;
                found.first_outside.get_or_insert(outside);
            }
            if status == ReadStatus::CorpusEnd {
                return Ok(found);
            }
        }
    }
}

/// Counts a long piece into four tables in turn: in a run of equal bytes, one table would make each
/// addition wait for the one before.
fn count(bytes: &[u8], counts: &mut [u64; 256]) {
    if bytes.len() < MIN_TABLES_BYTES {
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        return;
    }
    let mut tables = [[0u64; 256]; 4];
    let groups = bytes.chunks_exact(4);
    let rest = groups.remainder();
    for group in groups {
        for (table, &byte) in tables.iter_mut().zip(group) {
            table[usize::from(byte)] += 1;
        }
    }
    for &byte in rest {
        tables[0][usize::from(byte)] += 1;
    }
    for table in &tables {
        for (sum, count) in counts.iter_mut().zip(table) {
            *sum += count;
        }
    }
}

/// The first byte of a piece that is not in the alphabet.
fn outside(piece: &[u8], alphabet: &[bool; 256], reader: &Reader) -> Option<Outside> {
    let at = piece.iter().position(|&byte| !alphabet[usize::from(byte)])?;
    let (path, offset) = reader.location();
    Some(Outside {
        path: path?.to_owned(),
        offset: offset.map(|offset| offset + at as u64),
        byte: piece[at],
    })
}
