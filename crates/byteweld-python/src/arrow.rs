//! Strings from the Arrow C stream interface, which pyarrow, polars, duckdb and others export as a
//! capsule: record batches are read in place, without a Python object per row.
//!
//! The interface passes pointers without the sizes of their buffers, so a producer must own what it
//! describes. Everything else is checked once per batch, in linear time: lengths, the offsets or view
//! of each row, and the indices of dictionaries. UTF-8 is not assumed.

use std::ffi::{CStr, c_char, c_int, c_void};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Larger arrays cannot exist: the address of their last element would overflow.
const MAX_ROWS: usize = isize::MAX as usize / 32;

/// The maximum number of columns that an error names.
const MAX_NAMES: usize = 20;

// ---------------------------------------------------------------------- the C structures

#[repr(C)]
struct RawSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const RawSchema,
    dictionary: *const RawSchema,
    release: Option<unsafe extern "C" fn(*mut RawSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *const *const RawArray,
    dictionary: *const RawArray,
    release: Option<unsafe extern "C" fn(*mut RawArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut RawSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut RawArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut RawStream)>,
    private_data: *mut c_void,
}

impl RawSchema {
    const EMPTY: Self = Self {
        format: std::ptr::null(),
        name: std::ptr::null(),
        metadata: std::ptr::null(),
        flags: 0,
        n_children: 0,
        children: std::ptr::null(),
        dictionary: std::ptr::null(),
        release: None,
        private_data: std::ptr::null_mut(),
    };
}

impl RawArray {
    const EMPTY: Self = Self {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: std::ptr::null(),
        children: std::ptr::null(),
        dictionary: std::ptr::null(),
        release: None,
        private_data: std::ptr::null_mut(),
    };
}

impl Drop for RawSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the structure is ours, and whoever releases it sets `release` to null.
            unsafe { release(self) }
        }
    }
}

impl Drop for RawArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the structure is ours, and whoever releases it sets `release` to null.
            unsafe { release(self) }
        }
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the structure is ours, and whoever releases it sets `release` to null.
            unsafe { release(self) }
        }
    }
}

// ---------------------------------------------------------------------- the stream

/// A stream of record batches, or of plain string arrays.
pub(crate) struct Stream(Box<RawStream>);

// SAFETY: the interface lets a consumer move a stream between threads; it is used by one at a time.
unsafe impl Send for Stream {}

impl Stream {
    /// Takes the stream of an object with `__arrow_c_stream__`.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = object.call_method0("__arrow_c_stream__")?;
        let pointer = found.cast::<PyCapsule>().ok().and_then(|capsule| {
            // Of another name, it holds something else.
            capsule.pointer_checked(Some(c"arrow_array_stream")).ok()
        });
        let pointer = pointer.ok_or_else(|| {
            PyTypeError::new_err("__arrow_c_stream__ did not return an Arrow stream capsule")
        })?;
        let pointer = pointer.cast::<RawStream>();
        // SAFETY: a capsule of this name holds this structure. It is moved: the capsule's own
        // destructor leaves a stream without `release` alone.
        let raw = unsafe {
            let raw = pointer.read_unaligned();
            (&raw mut (*pointer.as_ptr()).release).write_unaligned(None);
            raw
        };
        if raw.release.is_none() {
            return Err(PyTypeError::new_err(
                "the Arrow stream has already been read; open the table again",
            ));
        }
        Ok(Self(Box::new(raw)))
    }

    /// Finds the column with the text, or says what there is. A stream of plain strings is its own
    /// column.
    pub(crate) fn column(&mut self, field: &str) -> Result<Column, ColumnError> {
        let mut schema = RawSchema::EMPTY;
        let Some(get_schema) = self.0.get_schema else {
            return Err(ColumnError::Broken("the stream has no schema".to_owned()));
        };
        // SAFETY: the stream is not released, and `schema` is an empty structure to fill.
        let code = unsafe { get_schema(&raw mut *self.0, &raw mut schema) };
        if code != 0 {
            return Err(ColumnError::Broken(self.last_error(code)));
        }
        // SAFETY: strings and children of a schema are valid until it is released, at the end.
        unsafe { Column::find(&schema, field) }
    }

    /// The next batch; `None` at the end. May call Python, so the GIL must not be held.
    pub(crate) fn next(&mut self, column: Option<&Column>) -> Result<Option<Batch>, String> {
        let mut array = RawArray::EMPTY;
        let Some(get_next) = self.0.get_next else {
            return Err("the stream has no batches".to_owned());
        };
        // SAFETY: the stream is not released, and `array` is an empty structure to fill.
        let code = unsafe { get_next(&raw mut *self.0, &raw mut array) };
        if code != 0 {
            return Err(self.last_error(code));
        }
        if array.release.is_none() {
            return Ok(None);
        }
        Batch::new(array, column).map(Some)
    }

    fn last_error(&mut self, code: c_int) -> String {
        let message = self.0.get_last_error.and_then(|get| {
            // SAFETY: the stream is not released; its message is valid until the next call.
            unsafe { text(get(&raw mut *self.0)) }
        });
        message.unwrap_or_else(|| std::io::Error::from_raw_os_error(code).to_string())
    }
}

/// Copies a C string; `None` if there is none.
///
/// # Safety
/// The pointer must be null or point to a C string.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

// ---------------------------------------------------------------------- the column

/// Why a table has no text.
pub(crate) enum ColumnError {
    /// No column has the name; these are the names.
    Missing(Vec<String>),
    /// Two columns have the name.
    Twice,
    /// The column has another type.
    Type(String),
    /// The stream itself is wrong.
    Broken(String),
}

/// Which column of the batches has the text, and its type.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// Its index in a record batch; `None` if the stream is of plain strings.
    child: Option<usize>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Null,
    Strings(Layout),
    Dictionary(Index, Layout),
}

#[derive(Clone, Copy)]
enum Layout {
    Offsets32,
    Offsets64,
    Views,
}

/// The type of a dictionary's indices: their width in bytes, and whether they have a sign.
#[derive(Clone, Copy)]
struct Index {
    width: usize,
    signed: bool,
}

impl Column {
    /// # Safety
    /// The schema must not be released, and follow the interface.
    unsafe fn find(schema: &RawSchema, field: &str) -> Result<Self, ColumnError> {
        // SAFETY: the caller's.
        let format = unsafe { text(schema.format) }.unwrap_or_default();
        if format != "+s" {
            // SAFETY: the caller's.
            return unsafe { Kind::of(schema) }.map(|kind| Self { child: None, kind });
        }
        let count = usize::try_from(schema.n_children).unwrap_or(0);
        let mut names = Vec::new();
        let mut found = None;
        for index in 0..count {
            if schema.children.is_null() {
                return Err(ColumnError::Broken("the schema has no columns".to_owned()));
            }
            // SAFETY: there are `n_children` pointers; each is read before it is used.
            let child = unsafe { (*schema.children.add(index)).as_ref() };
            let Some(child) = child else {
                return Err(ColumnError::Broken("a column of the schema is missing".to_owned()));
            };
            // SAFETY: the caller's.
            let name = unsafe { text(child.name) }.unwrap_or_default();
            if name == field {
                if found.is_some() {
                    return Err(ColumnError::Twice);
                }
                // SAFETY: the caller's.
                let kind = unsafe { Kind::of(child) }?;
                found = Some(Self { child: Some(index), kind });
            }
            if names.len() <= MAX_NAMES {
                names.push(name);
            }
        }
        found.ok_or(ColumnError::Missing(names))
    }
}

impl Kind {
    /// # Safety
    /// The schema must not be released, and follow the interface.
    unsafe fn of(schema: &RawSchema) -> Result<Self, ColumnError> {
        // SAFETY: the caller's.
        let format = unsafe { text(schema.format) }.unwrap_or_default();
        // SAFETY: the caller's.
        if let Some(dictionary) = unsafe { schema.dictionary.as_ref() } {
            // SAFETY: the caller's.
            let values = unsafe { text(dictionary.format) }.unwrap_or_default();
            if let (Some(index), Some(layout)) = (Index::of(&format), Layout::of(&values))
                && dictionary.dictionary.is_null()
            {
                return Ok(Self::Dictionary(index, layout));
            }
            return Err(ColumnError::Type(format!("a dictionary of {}", type_name(&values))));
        }
        match Layout::of(&format) {
            Some(layout) => Ok(Self::Strings(layout)),
            None if format == "n" => Ok(Self::Null),
            None => Err(ColumnError::Type(format!("of type {}", type_name(&format)))),
        }
    }
}

impl Layout {
    fn of(format: &str) -> Option<Self> {
        match format {
            "u" | "z" => Some(Self::Offsets32),
            "U" | "Z" => Some(Self::Offsets64),
            "vu" | "vz" => Some(Self::Views),
            _ => None,
        }
    }
}

impl Index {
    fn of(format: &str) -> Option<Self> {
        let width = match format {
            "c" | "C" => 1,
            "s" | "S" => 2,
            "i" | "I" => 4,
            "l" | "L" => 8,
            _ => return None,
        };
        Some(Self { width, signed: format.chars().all(char::is_lowercase) })
    }
}

/// The name of a type by its format string.
fn type_name(format: &str) -> String {
    let name = match format {
        "n" => "null",
        "b" => "bool",
        "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L" => "integer",
        "e" | "f" | "g" => "float",
        "+s" => "struct",
        "+r" => "run-end encoded",
        "+m" => "map",
        other if other.starts_with("+l") || other.starts_with("+L") => "list",
        other if other.starts_with("+w") || other.starts_with("+v") => "list",
        other if other.starts_with("+u") => "union",
        other if other.starts_with('t') => "date or time",
        other if other.starts_with('d') => "decimal",
        other if other.starts_with("w:") => "fixed-size binary",
        other => return format!("{other:?} (an Arrow format string)"),
    };
    name.to_owned()
}

// ---------------------------------------------------------------------- a batch

/// The text column of a batch, checked.
pub(crate) struct Batch {
    rows: usize,
    /// The validity of the rows themselves: a struct may be null.
    outer: Validity,
    text: Text,
    /// Releases the memory that all pointers above point to.
    _owner: RawArray,
}

// SAFETY: as for the stream; the memory is not changed until it is released.
unsafe impl Send for Batch {}

enum Text {
    /// Without the column, only the number of rows is known.
    Null,
    Strings(Strings),
    Dictionary {
        validity: Validity,
        indices: *const u8,
        /// The first row of this batch.
        start: usize,
        index: Index,
        values: Strings,
    },
}

impl Batch {
    fn new(array: RawArray, column: Option<&Column>) -> Result<Self, String> {
        let (start, rows) = extent(&array)?;
        let mut outer = Validity::ALL;
        let Some(column) = column else {
            return Ok(Self { rows, outer, text: Text::Null, _owner: array });
        };
        let (inner, start) = match column.child {
            None => (&array, 0),
            Some(index) => {
                if array.n_buffers > 0 {
                    outer = Validity::of(&array, start)?;
                }
                let is_known = usize::try_from(array.n_children).is_ok_and(|count| index < count);
                if !is_known || array.children.is_null() {
                    return Err("a batch has fewer columns than the schema".to_owned());
                }
                // SAFETY: there are `n_children` pointers; each is null or points to an array.
                let child = unsafe { (*array.children.add(index)).as_ref() };
                (child.ok_or("a column of a batch is missing")?, start)
            }
        };
        // The rows of a batch start at its own offset in each column.
        let (offset, length) = extent(inner)?;
        let end = start.checked_add(rows).filter(|&end| end <= length);
        if end.is_none() {
            return Err(format!("a column has {length} rows; expected {rows}, from {start} on"));
        }
        let text = Text::new(inner, column.kind, offset + start, rows, &outer)?;
        Ok(Self { rows, outer, text, _owner: array })
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The text of a row; `None` if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if !self.outer.is_valid(row) {
            return None;
        }
        match &self.text {
            Text::Null => None,
            Text::Strings(strings) => strings.get(row),
            Text::Dictionary { validity, indices, start, index, values } => {
                // SAFETY: the row is one of the array's, and the index was checked to be in the
                // dictionary.
                let place = || unsafe { index.read(*indices, start + row) };
                let place = validity.is_valid(row).then(place)??;
                values.get(place)
            }
        }
    }
}

impl Text {
    fn new(
        array: &RawArray,
        kind: Kind,
        start: usize,
        rows: usize,
        outer: &Validity,
    ) -> Result<Self, String> {
        match kind {
            Kind::Null => Ok(Self::Null),
            Kind::Strings(layout) => {
                let strings = Strings::new(array, layout, start, rows)?;
                for row in (0..rows).filter(|&row| outer.is_valid(row)) {
                    strings.check(row)?;
                }
                Ok(Self::Strings(strings))
            }
            Kind::Dictionary(index, layout) => {
                let [_, indices] = buffers(array)?;
                let validity = Validity::of(array, start)?;
                // SAFETY: the dictionary is null or an array, and lives as long as `array`.
                let dictionary = unsafe { array.dictionary.as_ref() };
                let dictionary = dictionary.ok_or("a dictionary is missing")?;
                let (first, count) = extent(dictionary)?;
                let values = Strings::new(dictionary, layout, first, count)?;
                let indices = indices.cast::<u8>();
                if indices.is_null() && rows > 0 {
                    return Err("the indices of a dictionary are missing".to_owned());
                }
                for row in (0..rows).filter(|&row| outer.is_valid(row) && validity.is_valid(row)) {
                    // SAFETY: the buffer has an index for each row.
                    let place = unsafe { index.read(indices, start + row) };
                    let Some(place) = place.filter(|&place| place < count) else {
                        return Err(format!(
                            "an index is outside the dictionary of {count} values"
                        ));
                    };
                    // Not the others: many small batches may share a large dictionary.
                    values.check(place)?;
                }
                Ok(Self::Dictionary { validity, indices, start, index, values })
            }
        }
    }
}

impl Index {
    /// # Safety
    /// `indices` must point to more than `at` indices.
    unsafe fn read(self, indices: *const u8, at: usize) -> Option<usize> {
        let mut bytes = [0; 8];
        // SAFETY: the caller's.
        unsafe {
            std::ptr::copy_nonoverlapping(
                indices.add(at * self.width),
                bytes.as_mut_ptr(),
                self.width,
            );
        }
        if self.signed && bytes[self.width - 1] >= 0x80 {
            return None;
        }
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    }
}

/// The offset and length of an array.
fn extent(array: &RawArray) -> Result<(usize, usize), String> {
    let offset = usize::try_from(array.offset).ok();
    let length = usize::try_from(array.length).ok();
    if let (Some(offset), Some(length)) = (offset, length)
        && offset.checked_add(length).is_some_and(|end| end <= MAX_ROWS)
    {
        return Ok((offset, length));
    }
    Err(format!("an array of length {} at offset {} cannot exist", array.length, array.offset))
}

/// The first `N` buffers of an array, which must have at least that many.
fn buffers<const N: usize>(array: &RawArray) -> Result<[*const c_void; N], String> {
    if usize::try_from(array.n_buffers).is_ok_and(|count| count >= N) && !array.buffers.is_null() {
        // SAFETY: there are `n_buffers` pointers.
        return Ok(std::array::from_fn(|at| unsafe { *array.buffers.add(at) }));
    }
    Err(format!("an array has {} buffers; expected {N}", array.n_buffers))
}

/// A bitmap of the rows that are not null, from a row on.
struct Validity {
    bits: *const u8,
    start: usize,
}

impl Validity {
    const ALL: Self = Self { bits: std::ptr::null(), start: 0 };

    fn of(array: &RawArray, start: usize) -> Result<Self, String> {
        let [bits] = buffers(array)?;
        Ok(Self { bits: bits.cast(), start })
    }

    fn is_valid(&self, row: usize) -> bool {
        let at = self.start + row;
        // SAFETY: the bitmap has a bit for each row of the array; callers pass no other rows.
        self.bits.is_null() || unsafe { *self.bits.add(at / 8) } >> (at % 8) & 1 == 1
    }
}

/// Strings in one of the three layouts.
struct Strings {
    validity: Validity,
    start: usize,
    values: Values,
}

enum Values {
    Offsets32(*const i32, *const u8),
    Offsets64(*const i64, *const u8),
    /// The views, and the buffers that the long ones point to, with their sizes.
    Views(*const [u8; VIEW_BYTES], Vec<(*const u8, usize)>),
}

const VIEW_BYTES: usize = 16;
/// Strings of at most this length are in their view.
const INLINE_BYTES: usize = 12;

impl Strings {
    fn new(array: &RawArray, layout: Layout, start: usize, rows: usize) -> Result<Self, String> {
        let validity = Validity::of(array, start)?;
        let values = match layout {
            Layout::Offsets32 => {
                let [_, offsets, data] = buffers(array)?;
                Values::Offsets32(offsets.cast(), data.cast())
            }
            Layout::Offsets64 => {
                let [_, offsets, data] = buffers(array)?;
                Values::Offsets64(offsets.cast(), data.cast())
            }
            Layout::Views => view_buffers(array)?,
        };
        let missing = match &values {
            Values::Offsets32(offsets, _) if offsets.is_null() => Some("offsets"),
            Values::Offsets64(offsets, _) if offsets.is_null() => Some("offsets"),
            Values::Views(views, _) if views.is_null() => Some("views"),
            _ => None,
        };
        if let Some(missing) = missing.filter(|_| rows > 0) {
            return Err(format!("the {missing} of a column are missing"));
        }
        Ok(Self { validity, start, values })
    }

    /// Checks that a row, unless it is null, is inside its buffer; `get` is for such rows.
    fn check(&self, row: usize) -> Result<(), String> {
        if !self.validity.is_valid(row) {
            return Ok(()); // it may have any content
        }
        let at = self.start + row;
        match &self.values {
            Values::Offsets32(offsets, data) => {
                // SAFETY: there is an offset for each row and one more.
                let [start, end] =
                    [at, at + 1].map(|at| unsafe { offsets.add(at).read_unaligned() });
                check_range(start.into(), end.into(), data.is_null())
            }
            Values::Offsets64(offsets, data) => {
                // SAFETY: there is an offset for each row and one more.
                let [start, end] =
                    [at, at + 1].map(|at| unsafe { offsets.add(at).read_unaligned() });
                check_range(start, end, data.is_null())
            }
            Values::Views(views, buffers) => {
                // SAFETY: there is a view for each row.
                let view = unsafe { views.add(at).read() };
                match parse_view(&view, buffers) {
                    Some(_) => Ok(()),
                    None => Err(format!("row {row} of a batch is outside its buffers")),
                }
            }
        }
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        if !self.validity.is_valid(row) {
            return None;
        }
        let at = self.start + row;
        match &self.values {
            Values::Offsets32(offsets, data) => {
                // SAFETY: there is an offset for each row and one more; `check` has seen these.
                unsafe {
                    let start = offsets.add(at).read_unaligned() as usize;
                    let end = offsets.add(at + 1).read_unaligned() as usize;
                    Some(slice(*data, start, end))
                }
            }
            Values::Offsets64(offsets, data) => {
                // SAFETY: there is an offset for each row and one more; `check` has seen these.
                unsafe {
                    let start = offsets.add(at).read_unaligned() as usize;
                    let end = offsets.add(at + 1).read_unaligned() as usize;
                    Some(slice(*data, start, end))
                }
            }
            Values::Views(views, buffers) => {
                // SAFETY: there is a view for each row. It is borrowed, since a short string is
                // inside it; its bytes have no alignment.
                let view = unsafe { &*views.add(at) };
                match parse_view(view, buffers)? {
                    View::Inline(length) => Some(&view[4..4 + length]),
                    // SAFETY: `parse_view` checks that the range is in the buffer.
                    View::Range(data, start, end) => Some(unsafe { slice(data, start, end) }),
                }
            }
        }
    }
}

/// # Safety
/// The range must be in the buffer; the buffer may be null if the range is empty.
unsafe fn slice<'a>(data: *const u8, start: usize, end: usize) -> &'a [u8] {
    if start >= end {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(data.add(start), end - start) }
}

fn check_range(start: i64, end: i64, has_no_data: bool) -> Result<(), String> {
    let (previous, offset) = if start < 0 { (0, start) } else { (start, end) };
    if offset < previous {
        return Err(format!("the offset {offset} follows {previous}; offsets must not fall"));
    }
    if has_no_data && start < end {
        return Err("the text of a column is missing".to_owned());
    }
    match isize::try_from(end) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("the offset {end} is outside any memory")),
    }
}

fn view_buffers(array: &RawArray) -> Result<Values, String> {
    let [_, views] = buffers(array)?;
    // After the validity and the views: the data buffers, then their sizes.
    let count = usize::try_from(array.n_buffers).ok().and_then(|count| count.checked_sub(3));
    let count = count.ok_or("a column of views has no list of buffer sizes")?;
    // SAFETY: there are `n_buffers` pointers.
    let pointer = |at: usize| unsafe { *array.buffers.add(at) };
    let sizes = pointer(count + 2).cast::<i64>();
    if sizes.is_null() && count > 0 {
        return Err("a column of views has no list of buffer sizes".to_owned());
    }
    let mut buffers = Vec::new();
    for at in 0..count {
        // SAFETY: there is a size for each buffer.
        let size = isize::try_from(unsafe { sizes.add(at).read_unaligned() }).ok();
        let size = size.and_then(|size| usize::try_from(size).ok());
        let data = pointer(at + 2).cast::<u8>();
        let size = size.filter(|&size| !data.is_null() || size == 0);
        buffers.push((data, size.ok_or("a buffer of a column of views is missing")?));
    }
    Ok(Values::Views(views.cast(), buffers))
}

enum View {
    /// The length.
    Inline(usize),
    /// A buffer, start and end.
    Range(*const u8, usize, usize),
}

/// Where the text of a view is; `None` if it is outside its buffers.
fn parse_view(view: &[u8; VIEW_BYTES], buffers: &[(*const u8, usize)]) -> Option<View> {
    let number = |at: usize| {
        let bytes = [view[at], view[at + 1], view[at + 2], view[at + 3]];
        usize::try_from(i32::from_ne_bytes(bytes)).ok()
    };
    let length = number(0)?;
    if length <= INLINE_BYTES {
        return Some(View::Inline(length));
    }
    let &(data, size) = buffers.get(number(8)?)?;
    let start = number(12)?;
    let end = start.checked_add(length).filter(|&end| end <= size)?;
    Some(View::Range(data, start, end))
}
