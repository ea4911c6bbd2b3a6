//! Counts on disk: one sorted section per part.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::Result;
use crate::merge::{MergeCursor, Source};
use crate::section::{Reader, Section, Writer};
use crate::spool::Spool;
use crate::{PARTS, part_of};

/// The buffer size of a sequential scan.
const SCAN_BUFFER_BYTES: usize = 256 << 10;
/// The buffer size of a lookup; most records are much shorter.
const LOOKUP_BUFFER_BYTES: usize = 4 << 10;

/// Counts on disk, deleted on drop.
pub struct SortedCounts {
    spool: Arc<Spool>,
    parts: Vec<Section>,
}

impl SortedCounts {
    /// Counts with these sections of a spool as parts.
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

    /// The parts as sources of a merge.
    pub fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        self.parts.iter().map(|section| Source::Borrowed(&self.spool, section))
    }

    /// The count of one pre-token.
    pub fn get(&self, pretoken: &[u8]) -> Result<u64> {
        let Some(section) = self.parts.get(part_of(pretoken)) else { return Ok(0) };
        let mut low = 0;
        let mut high = section.starts().len();
        while low < high {
            let middle = (low + high) / 2;
            let mut reader =
                Reader::new(&self.spool, section, section.starts()[middle], LOOKUP_BUFFER_BYTES);
            if reader.next()? && reader.key() <= pretoken {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The record follows the last indexed pre-token that is not greater.
        let Some(before) = low.checked_sub(1) else { return Ok(0) };
        let mut reader =
            Reader::new(&self.spool, section, section.starts()[before], SCAN_BUFFER_BYTES);
        while reader.next()? {
            match reader.key().cmp(pretoken) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(reader.count()),
                Ordering::Greater => break,
            }
        }
        Ok(0)
    }

    /// Reads one part, starting at the offset of a record.
    pub fn part(&self, part: usize, offset: u64) -> Reader<'_> {
        Reader::new(&self.spool, &self.parts[part], offset, SCAN_BUFFER_BYTES)
    }

    /// Reads all parts merged in sorted order.
    pub fn in_order(&self) -> Result<MergeCursor<'_>> {
        let sections = self.parts.iter().map(|section| (&*self.spool, section));
        MergeCursor::new(sections, SCAN_BUFFER_BYTES / PARTS)
    }
}

/// Writes a run of pre-tokens, sorted by part and bytes.
pub fn write_run(
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
