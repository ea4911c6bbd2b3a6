//! Counts on disk. One execution: the bytes of one section, changed at will, read with one buffer size and
//! compared with a plain parser; or a few runs, merged and compared with a `BTreeMap`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use byteweld_spill::{
    Error, MergeOptions, PARTS, Reader, Section, Source, Spool, Writer, merge, part_of, write_run,
};

use crate::input::Input;
use crate::{magnitude, signature};

/// A spool is replaced after this many executions, so that its file stays small.
const MAX_USES: usize = 500;

/// A spool, and its file as a path of this process.
struct Disk {
    spool: Arc<Spool>,
    file: File,
    uses: usize,
}

impl Disk {
    fn new() -> Self {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let before = open_files();
        let spool = Arc::new(Spool::new(&folder).unwrap());
        // The file has no name; it is the one that was not open before.
        let path = open_files().difference(&before).next().unwrap().clone();
        let file = File::options().read(true).write(true).open(path).unwrap();
        Self { spool, file, uses: 0 }
    }
}

fn open_files() -> HashSet<PathBuf> {
    let all = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| {
        fs::read_link(path).is_ok_and(|to| to.to_string_lossy().ends_with("(deleted)"))
    })
    .collect()
}

pub fn run(input: &[u8]) -> u64 {
    // One for sections, whose chunks are never reused, and one for merging.
    thread_local!(static DISKS: RefCell<[Option<Disk>; 2]> = const { RefCell::new([None, None]) });
    let mut input = Input::new(input);
    let is_merge = input.byte() >= 240;
    DISKS.with_borrow_mut(|disks| {
        let disk = &mut disks[usize::from(is_merge)];
        disk.take_if(|disk| disk.uses == MAX_USES);
        let disk = disk.get_or_insert_with(Disk::new);
        disk.uses += 1;
        if is_merge { merge_runs(disk, input) } else { read_section(disk, input) }
    })
}

// ---------------------------------------------------------------------- one section

type Records = Vec<(Vec<u8>, u64)>;

/// A key; some are long.
fn key(input: &mut Input) -> Vec<u8> {
    match input.byte() {
        length @ 0..240 => input.take(usize::from(length) % 7).to_vec(),
        length @ 240..254 => vec![length; input.below(256) * 3],
        length => vec![length; 3000 + usize::from(input.byte()) * 20],
    }
}

fn count(input: &mut Input) -> u64 {
    match input.byte() {
        byte @ 0..200 => 1 + u64::from(byte) % 130,
        byte @ 200..250 => 1 << (byte - 200),
        byte => (u64::MAX / 8).saturating_mul(u64::from(byte - 249)),
    }
}

fn read_section(disk: &Disk, mut input: Input) -> u64 {
    let buffer_bytes = [0, 4096, 5000, 70_000][input.below(4)];
    let changes = input.below(6);
    let changes: Vec<(u8, u8, u8)> =
        (0..changes).map(|_| (input.byte(), input.byte(), input.byte())).collect();
    let mut writer = Writer::new(Arc::clone(&disk.spool));
    let mut data = Vec::new();
    let mut written: Records = Vec::new();
    while !input.is_empty() && data.len() < 60_000 {
        let (key, count) = (key(&mut input), count(&mut input));
        push_record(&mut data, &key, count);
        writer.push(&key, count).unwrap();
        written.push((key, count));
    }
    let section = writer.finish().unwrap();
    assert_eq!(section.distinct(), written.len() as u64);
    assert_eq!(section.total(), written.iter().map(|(_, count)| u128::from(*count)).sum());
    let (records, ends_well) = read(&disk.spool, &section, buffer_bytes);
    assert!(ends_well && records == written, "what was written was not read back");
    if data.is_empty() || changes.is_empty() {
        return signature(&[0, magnitude(data.len()), magnitude(written.len())]);
    }
    // Sections are whole chunks of 256 KiB; this one is the last of the file.
    let chunk = (disk.file.metadata().unwrap().len() - 1) >> 18 << 18;
    let mut changed = data.clone();
    for (high, low, byte) in changes {
        let place = usize::from(u16::from_le_bytes([low, high])) % data.len();
        changed[place] = byte;
    }
    disk.file.write_all_at(&changed, chunk).unwrap();
    let (records, ends_well) = read(&disk.spool, &section, buffer_bytes);
    let (expected, is_well_formed) = plain_records(&changed);
    assert_eq!((&records, ends_well), (&expected, is_well_formed), "{changed:?}");
    let longest = expected.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    signature(&[
        1,
        usize::from(ends_well),
        magnitude(expected.len()),
        magnitude(longest),
        magnitude(data.len()),
    ])
}

/// The records of a section up to its end or to damage, and which it was.
fn read(spool: &Spool, section: &Section, buffer_bytes: usize) -> (Records, bool) {
    let mut reader = Reader::new(spool, section, 0, buffer_bytes);
    let mut records = Vec::new();
    loop {
        match reader.next() {
            Ok(true) => records.push((reader.key().to_vec(), reader.count())),
            Ok(false) => return (records, true),
            Err(Error::Damaged { .. }) => return (records, false),
            Err(error) => panic!("{error}"),
        }
    }
}

fn push_record(data: &mut Vec<u8>, key: &[u8], count: u64) {
    push_varint(data, key.len() as u64);
    data.extend_from_slice(key);
    push_varint(data, count);
}

fn push_varint(data: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        data.push(number as u8 | 128);
        number >>= 7;
    }
    data.push(number as u8);
}

/// Records read plainly: length, bytes, count (not 0); numbers in LEB128.
fn plain_records(mut data: &[u8]) -> (Records, bool) {
    let mut records = Vec::new();
    while !data.is_empty() {
        let Some(record) = plain_record(&mut data) else { return (records, false) };
        records.push(record);
    }
    (records, true)
}

fn plain_record(data: &mut &[u8]) -> Option<(Vec<u8>, u64)> {
    let length = usize::try_from(plain_varint(data)?).ok()?;
    let (key, rest) = data.split_at_checked(length)?;
    *data = rest;
    let count = plain_varint(data)?;
    (count > 0).then(|| (key.to_vec(), count))
}

/// At most ten bytes; what does not fit in 64 bits is cut off.
fn plain_varint(data: &mut &[u8]) -> Option<u64> {
    let mut number = 0u128;
    for shift in 0..10 {
        let (&first, rest) = data.split_first()?;
        *data = rest;
        number |= u128::from(first & 127) << (7 * shift);
        if first < 128 {
            return Some(number as u64);
        }
    }
    None
}

// ---------------------------------------------------------------------- merging

type Map = BTreeMap<Vec<u8>, u64>;

fn merge_runs(disk: &Disk, mut input: Input) -> u64 {
    let fan_in = 2 + input.below(6);
    let threads = if input.byte() == 255 { 3 } else { 1 };
    let mut maps: Vec<Map> = vec![Map::new()];
    while !input.is_empty() && maps.len() < 8 {
        if input.byte() < 30 {
            maps.push(Map::new());
        }
        let (key, count) = (key(&mut input), count(&mut input));
        maps.last_mut().unwrap().insert(key, count);
    }
    let spool = &disk.spool;
    let mut sources: Vec<Vec<Source>> = (0..PARTS).map(|_| Vec::new()).collect();
    for map in &maps {
        let mut run: Vec<(&[u8], u64)> =
            map.iter().map(|(key, &count)| (&key[..], count)).collect();
        run.sort_by_key(|&(key, _)| (part_of(key), key));
        let sections = write_run(spool, &mut run.into_iter()).unwrap();
        sources
            .iter_mut()
            .zip(sections)
            .for_each(|(part, section)| part.push(Source::Owned(section)));
    }
    let mut expected: BTreeMap<&[u8], u128> = BTreeMap::new();
    for (key, count) in maps.iter().flatten() {
        *expected.entry(key).or_default() += u128::from(*count);
    }
    let longest = expected.keys().map(|key| key.len()).max().unwrap_or(0) + 20;
    let bytes = (256 << 10) + longest + fan_in * (longest.max(4096) + 256);
    let options = MergeOptions { bytes, threads: NonZeroUsize::new(threads).unwrap() };
    let merged = merge(sources, spool, options, &mut || ControlFlow::Continue(()));
    if expected.values().any(|&count| count > u128::from(u64::MAX)) {
        assert!(matches!(merged, Err(Error::Overflow(_))));
        return signature(&[2, magnitude(expected.len())]);
    }
    let merged = merged.unwrap();
    let mut cursor = merged.in_order().unwrap();
    for (key, &count) in &expected {
        assert_eq!(
            cursor.next().unwrap().map(|(key, count)| (key, u128::from(count))),
            Some((*key, count))
        );
    }
    assert!(cursor.next().unwrap().is_none());
    for (key, &count) in expected.iter().take(4) {
        assert_eq!(u128::from(merged.get(key).unwrap()), count);
    }
    assert_eq!(merged.get(b"absent").unwrap(), 0);
    let distinct: u64 = merged.parts().iter().map(Section::distinct).sum();
    assert_eq!(distinct, expected.len() as u64);
    signature(&[3, magnitude(expected.len()), maps.len(), fan_in, magnitude(longest)])
}
