//! What a reader says about its work: where it is, what it finished, what it skipped.

/// The most skips that are kept between two calls; the others are only counted.
const MAX_SKIPS: usize = 1000;

/// A place between two documents of a list of files, where reading can start again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The index of the file in the list.
    pub file: u64,
    /// The number of decompressed bytes before it in that file; separators and what was skipped
    /// are included.
    pub offset: u64,
    /// The number of documents of that file returned before it.
    pub documents: u64,
    /// The number of lines before it, in JSON lines and where each line is a document.
    pub line: u64,
}

impl Position {
    /// Whether nothing of the file was read.
    pub(crate) fn is_file_start(&self) -> bool {
        self.offset == 0 && self.documents == 0
    }
}

/// A part of a file that is not compressed, between two bytes. It is read as if it were a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The offset of its first byte.
    pub start: u64,
    /// The offset after its last byte.
    pub stop: u64,
    /// The number of lines of the file before it, where lines are counted; 0 if it is not known.
    pub line: u64,
}

/// A file, or a part of one, that was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedFile {
    /// The index of the file in the list.
    pub file: u64,
    /// Its size as it is stored: compressed, if it is.
    pub bytes: u64,
    /// The XXH3-128 of those bytes; `None` for a part of a file.
    pub digest: Option<u128>,
    /// The number of its documents that were returned, also before [`crate::Reader::start_at`].
    pub documents: u64,
    /// The number of lines up to its end, in JSON lines and where each line is a document.
    pub lines: u64,
}

/// A document, or a whole file, that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The index of the file in the list.
    pub file: u64,
    /// The line, counted from 1, in JSON lines and where each line is a document.
    pub line: Option<u64>,
    /// The number of decompressed bytes before the document; `None` for a whole file.
    pub offset: Option<u64>,
    /// Why, in a few words.
    pub reason: String,
}

/// What was skipped: all of it counted, some of it kept.
#[derive(Default)]
pub(crate) struct Skips {
    kept: Vec<Skip>,
    total: u64,
}

impl Skips {
    pub(crate) fn add(&mut self, skip: Skip) {
        self.total += 1;
        if self.kept.len() < MAX_SKIPS {
            self.kept.push(skip);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Skip> {
        std::mem::take(&mut self.kept)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}
