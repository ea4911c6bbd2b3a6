//! Encodes the documents of a source in bounded memory, on several threads, in order.
//!
//! Workers read blocks (`documents.rs`), one worker at a time, and encode them in parallel. The
//! caller's thread receives the encoded blocks in the order of the text. A document may span
//! several blocks: it is cut where that changes no id. The number of blocks read ahead is limited.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::Encoder;
use super::scratch::Scratch;
use super::specials::Allowed;
use crate::documents::{
    Cutter, DocumentSource, MAX_TEXT_BYTES, OwnedBlock, Pieces, Position, SharedReader,
    SourceReader,
};
use crate::error::{Error, Result};
use crate::reserve::{check_memory, push, reserve};
use crate::threads::run_beside;
use crate::watch::Watch;

/// Blocks per thread that are read and not yet received, so that no thread waits for another.
const BLOCKS_PER_THREAD: u64 = 4;

/// The interval at which the caller's thread calls `progress` while it waits.
const WAIT_INTERVAL: Duration = Duration::from_millis(20);

/// The options of encoding a source of documents.
pub struct StreamOptions<'a> {
    /// The special tokens that are recognized in text.
    pub allowed: Allowed<'a>,
    /// Whether text with any special token is rejected.
    pub refuses: bool,
    /// The ids before each document.
    pub prefix: &'a [u32],
    /// The ids after each document.
    pub suffix: &'a [u32],
    /// Whether a document without ids of its own gets them, too.
    pub marks_empty: bool,
}

/// The ids of a part of the text.
#[derive(Debug, Default)]
pub struct EncodedBlock {
    /// The ids, including those before and after documents.
    pub ids: Vec<u32>,
    /// Where each document that ends in this block ends in `ids`.
    pub ends: Vec<u64>,
    /// Whether the block ends inside a document, which continues in the next one.
    pub is_open: bool,
    /// The length of the text.
    pub text_bytes: u64,
    /// The number of stored bytes that were read until the end of this block.
    pub consumed: u64,
    /// How often each special token occurs in the text, by its index among all, sorted by text.
    pub specials: BTreeMap<usize, u64>,
    /// Where to start again after the last document that ends here.
    pub position: Option<Position>,
}

/// Why a source could not be encoded.
#[derive(Debug)]
pub struct StreamError {
    /// The error.
    pub error: Error,
    /// The number of the document, from 0, if the error is in a document.
    pub document: Option<u64>,
}

impl From<Error> for StreamError {
    fn from(error: Error) -> Self {
        Self { error, document: None }
    }
}

impl Encoder {
    /// Encodes all documents of a source. `receive` gets the blocks in order, on the caller's
    /// thread, which also calls `progress` now and then; either may stop the work. The blocks
    /// before an error are received first.
    pub fn encode_source(
        &self,
        source: &mut dyn DocumentSource,
        options: &StreamOptions<'_>,
        threads: NonZeroUsize,
        receive: &mut dyn FnMut(EncodedBlock) -> Result<()>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> std::result::Result<(), StreamError> {
        check_memory()?;
        self.pool.warm_up(threads.get() - 1);
        let window = BLOCKS_PER_THREAD * threads.get() as u64;
        let shared = SharedReader::new(SourceReader::new(source, MAX_TEXT_BYTES), window);
        let watch = Watch::stoppable();
        let (sender, receiver) = channel();
        let work = |sender: Sender<(u64, Encoded)>| {
            let _guard = Guard { shared: &shared, watch: &watch, always: false };
            self.pool.with_scratch(|scratch| {
                scratch.watch = watch.clone();
                self.encode_blocks(&shared, options, scratch, &mut |number, encoded| {
                    sender.send((number, encoded)).is_ok()
                });
            });
        };
        let mut ordered =
            Ordered { waiting: BTreeMap::new(), documents: 0, shared: &shared, receive };
        run_beside(threads.get(), sender, &work, |started| {
            let _guard = Guard { shared: &shared, watch: &watch, always: true };
            if started == 0 {
                return self.encode_here(&shared, options, &mut ordered, progress);
            }
            ordered.receive_from(&receiver, progress)
        })
    }

    /// Encodes on the caller's thread, if no other could be started.
    fn encode_here(
        &self,
        shared: &SharedReader<SourceReader<'_>>,
        options: &StreamOptions<'_>,
        ordered: &mut Ordered<'_, '_>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> std::result::Result<(), StreamError> {
        let mut result = Ok(());
        self.pool.with_scratch(|scratch| {
            self.encode_blocks(shared, options, scratch, &mut |number, encoded| {
                result = ordered.take(number, encoded).and_then(|()| match progress() {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(Error::Interrupted.into()),
                });
                result.is_ok()
            });
        });
        result
    }

    /// Runs one worker: encodes blocks until the end of the source, an error, or a stop.
    fn encode_blocks(
        &self,
        shared: &SharedReader<SourceReader<'_>>,
        options: &StreamOptions<'_>,
        scratch: &mut Scratch,
        send: &mut dyn FnMut(u64, Encoded) -> bool,
    ) {
        let mut block = OwnedBlock::default();
        let cutter = StreamCutter { encoder: self, allowed: &options.allowed };
        loop {
            let (number, filled) =
                shared.fill(&mut block, &cutter, &mut || ControlFlow::Continue(()));
            let encoded = match filled {
                Ok(true) => self.encode_block(&block, options, scratch),
                Ok(false) => return,
                Err(error) => Err((error, None)),
            };
            let is_over = encoded.is_err();
            if is_over {
                shared.stop();
            }
            if !send(number, encoded) || is_over {
                return;
            }
        }
    }

    /// Encodes the documents of a block, and parts of them. An error comes with the number of its
    /// document in the block.
    fn encode_block(
        &self,
        block: &OwnedBlock,
        options: &StreamOptions<'_>,
        scratch: &mut Scratch,
    ) -> Encoded {
        let mut out = EncodedBlock {
            text_bytes: block.bytes.len() as u64,
            position: block.position,
            is_open: block.is_open,
            consumed: block.consumed,
            ..EncodedBlock::default()
        };
        let encoded = self.encode_documents(block, options, scratch, &mut out);
        encoded.map_err(|error| (error, Some(out.ends.len() as u64)))?;
        Ok(out)
    }

    fn encode_documents(
        &self,
        block: &OwnedBlock,
        options: &StreamOptions<'_>,
        scratch: &mut Scratch,
        out: &mut EncodedBlock,
    ) -> Result<()> {
        let marks = options.prefix.len() + options.suffix.len();
        let documents = block.ends.len();
        reserve(&mut out.ids, block.bytes.len() / 4 + marks * documents)?;
        for (number, (text, range)) in block.pieces().enumerate() {
            let is_start = number > 0 || !block.continues;
            let is_end = number + 1 < documents || !block.is_open;
            let text = &text[range];
            if options.refuses {
                self.refuse(text, None, &scratch.watch)?;
            }
            self.count_specials(text, out);
            let start = out.ids.len();
            if is_start {
                reserve(&mut out.ids, options.prefix.len())?;
                out.ids.extend_from_slice(options.prefix);
            }
            let text_start = out.ids.len();
            self.encode_with(text, &options.allowed, &mut out.ids, scratch)?;
            if !is_end {
                continue;
            }
            if is_start && out.ids.len() == text_start && !options.marks_empty {
                out.ids.truncate(start);
            } else {
                reserve(&mut out.ids, options.suffix.len())?;
                out.ids.extend_from_slice(options.suffix);
            }
            push(&mut out.ends, out.ids.len() as u64)?;
        }
        Ok(())
    }

    fn count_specials(&self, text: &[u8], out: &mut EncodedBlock) {
        let mut search = self.specials.finder.search(text);
        let mut from = 0;
        while let Some(found) = search.next(from) {
            *out.specials.entry(found.index).or_default() += 1;
            from = found.end;
        }
    }

    /// The text of each special token, in order.
    pub fn special_texts(&self) -> impl Iterator<Item = &str> {
        self.specials.tokens.iter().map(|(text, _)| text.as_str())
    }
}

/// Stops all threads if one panics, and when the caller's ends, so that none waits for a block that
/// never comes.
struct Guard<'a, 's> {
    shared: &'a SharedReader<SourceReader<'s>>,
    watch: &'a Watch,
    always: bool,
}

impl Drop for Guard<'_, '_> {
    fn drop(&mut self) {
        if self.always || std::thread::panicking() {
            self.shared.stop();
            self.watch.stop();
        }
    }
}

/// Passes blocks on in the order of the text.
struct Ordered<'a, 's> {
    /// Blocks whose turn has not come, by number.
    waiting: BTreeMap<u64, Encoded>,
    /// The number of documents before the next block.
    documents: u64,
    shared: &'a SharedReader<SourceReader<'s>>,
    receive: &'a mut dyn FnMut(EncodedBlock) -> Result<()>,
}

impl Ordered<'_, '_> {
    /// Takes blocks from the workers until they end.
    fn receive_from(
        &mut self,
        receiver: &Receiver<(u64, Encoded)>,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> std::result::Result<(), StreamError> {
        loop {
            match receiver.recv_timeout(WAIT_INTERVAL) {
                Ok((number, encoded)) => self.take(number, encoded)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if progress().is_break() {
                return Err(Error::Interrupted.into());
            }
        }
    }

    /// Takes a block, and passes on all whose turn has come.
    fn take(&mut self, number: u64, encoded: Encoded) -> std::result::Result<(), StreamError> {
        self.waiting.insert(number, encoded);
        while let Some(encoded) = self.waiting.remove(&self.shared.num_done()) {
            let block = encoded.map_err(|(error, number)| {
                let document = number.map(|number| self.documents + number);
                StreamError { error, document }
            })?;
            self.documents += block.ends.len() as u64;
            (self.receive)(block)?;
            self.shared.finish_block();
        }
        Ok(())
    }
}

/// A block, or an error with the number of its document in the block.
type Encoded = std::result::Result<EncodedBlock, (Error, Option<u64>)>;

/// Cuts where no id changes, and never inside a special token: all are counted, even those that are
/// encoded as text.
struct StreamCutter<'a> {
    encoder: &'a Encoder,
    allowed: &'a Allowed<'a>,
}

impl Cutter for StreamCutter<'_> {
    fn cut(&self, text: &[u8]) -> Option<usize> {
        Some(self.encoder.certain_end(text, self.allowed, None)).filter(|&offset| offset > 0)
    }
}

#[cfg(test)]
mod tests;
