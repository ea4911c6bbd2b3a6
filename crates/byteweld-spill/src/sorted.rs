//! Counts that are on disk: one sorted section for each part.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::Result;
use crate::merge::{Cursor, Source};
use crate::section::{Reader, Section, Writer};
use crate::spool::Spool;
use crate::{PARTS, part_of};

/// The buffer of a walk through a section.
const WALK_BUFFER: usize = 256 << 10;
/// The buffer of a single look; most records are far shorter.
const LOOK_BUFFER: usize = 4 << 10;

/// Counts on disk. They are gone when this is dropped.
pub struct Sorted {
    spool: Arc<Spool>,
    parts: Vec<Section>,
}

impl Sorted {
    /// Counts whose parts are these sections of a spool.
    pub fn new(spool: Arc<Spool>, parts: Vec<Section>) -> Self {
        Self { spool, parts }
    }

    /// The parts.
    pub fn parts(&self) -> &[Section] {
        &self.parts
    }

    pub(crate) fn into_parts(self) -> Vec<Section> {
        self.parts
    }

    /// The parts as what to merge next.
    pub fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        self.parts.iter().map(|section| Source::Lent(&self.spool, section))
    }

    /// The count of one pre-token.
    pub fn get(&self, pretoken: &[u8]) -> Result<u64> {
        let Some(section) = self.parts.get(part_of(pretoken)) else { return Ok(0) };
        let mut low = 0;
        let mut high = section.starts().len();
        while low < high {
            let middle = (low + high) / 2;
            let mut reader =
                Reader::new(&self.spool, section, section.starts()[middle], LOOK_BUFFER);
            if reader.next()? && reader.key() <= pretoken {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The record is after the last start whose pre-token is not greater.
        let Some(before) = low.checked_sub(1) else { return Ok(0) };
        let mut reader = Reader::new(&self.spool, section, section.starts()[before], WALK_BUFFER);
        while reader.next()? {
            match reader.key().cmp(pretoken) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(reader.count()),
                Ordering::Greater => break,
            }
        }
        Ok(0)
    }

    /// Walks through one part, from the start of a record on.
    pub fn part(&self, part: usize, offset: u64) -> Reader<'_> {
        Reader::new(&self.spool, &self.parts[part], offset, WALK_BUFFER)
    }

    /// Walks through all parts at once, in order of the bytes.
    pub fn in_order(&self) -> Result<Cursor<'_>> {
        let sections = self.parts.iter().map(|section| (&*self.spool, section));
        Cursor::new(sections, WALK_BUFFER / PARTS)
    }
}

/// Writes a run: pre-tokens in order of their parts and bytes.
pub fn sections(
    spool: &Arc<Spool>,
    run: &mut dyn Iterator<Item = (&[u8], u64)>,
) -> Result<Vec<Section>> {
    let mut parts = Vec::with_capacity(PARTS);
    let mut writer = Writer::new(Arc::clone(spool));
    for (pretoken, count) in run {
        let part = part_of(pretoken);
        while parts.len() < part {
            parts.push(std::mem::replace(&mut writer, Writer::new(Arc::clone(spool))).finish()?);
        }
        writer.push(pretoken, count)?;
    }
    parts.push(writer.finish()?);
    parts.resize_with(PARTS, Section::default);
    Ok(parts)
}
