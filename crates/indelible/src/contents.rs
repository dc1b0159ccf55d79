//! Objects whose first bytes determine a minimal length: a resize keeps the needed bytes.

use crate::entries::{CONTEXT as CONTEXTS, Entries, VIEW as VIEWS};
use crate::error::{Cause, HeapError, Result};
use crate::heap::AtRest;
use crate::heap::layout::MAGIC as HEAP;
use crate::heap::words::{WordHeap, Words};
use crate::pool::{Inner, Pool, SealKey};
use indelible_stm::ecc::check_word;
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::entry::FLAG_ECC;
use indelible_store::format::{LINE, PAGE};
use indelible_store::lane::Batch;
use indelible_store::store::{PageImage, Store, Writer};
use indelible_store::table::{Key, Located};
use std::collections::{BTreeMap, BTreeSet};

const LOG: u64 = u64::from_le_bytes(*b"pmo-log\0");
const VIEW: u64 = u64::from_le_bytes(VIEWS.magic);
const CONTEXT: u64 = u64::from_le_bytes(CONTEXTS.magic);
const ARRAY: u64 = u64::from_le_bytes(*b"PMO-NDAR");
const ARRAY_HEADER: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) what: &'static str,
    pub(crate) least: u64,
}

impl Contents {
    fn of(mut word: impl FnMut(u64) -> Result<u64, Cause>, size: u64) -> Result<Option<Contents>, Cause> {
        if size < 64 {
            return Ok(None);
        }
        let first = word(0)?;
        let mut entries = |of: Entries| Ok::<u64, Cause>(of.len((word(8)? >> 32) as usize) as u64);
        let (what, least) = match first {
            VIEW => ("view", entries(VIEWS)?),
            CONTEXT => ("security context", entries(CONTEXTS)?),
            HEAP => ("heap", word(16)?.saturating_mul(PAGE)),
            LOG => ("log", word(16)?),
            ARRAY => {
                let words = (0..size.min(ARRAY_HEADER as u64) / 8).map(|at| word(at * 8));
                let header: Vec<u8> =
                    words.collect::<Result<Vec<_>, _>>()?.into_iter().flat_map(u64::to_le_bytes).collect();
                let Some(least) = array(&header) else { return Ok(None) };
                ("array", least)
            }
            _ => return Ok(None),
        };
        Ok(Some(Contents { what, least }))
    }

    pub(crate) fn at_rest(store: &Store, object: &Located) -> Result<Option<Contents>, Cause> {
        let (entry, mut words) = (&object.entry, AtRest::new(store, object));
        Contents::of(|offset| words.load(offset), entry.usable(entry.size.get()))
    }

    fn fit(&self, size: u64) -> Result<(), Cause> {
        match *self {
            Contents { what, least } if size < least => Err(HeapError::Needs { what, least }.into()),
            _ => Ok(()),
        }
    }
}

fn get(bytes: &[u8], at: u64) -> u64 {
    let word = bytes.get(at as usize..).and_then(|rest| rest.first_chunk::<8>());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

fn array(header: &[u8]) -> Option<u64> {
    let number = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
    let (start, dimensions, len) = (number(16)?, *header.get(24)?, number(28)? as usize);
    let lengths = 32 + 8 * usize::from(dimensions);
    let description = std::str::from_utf8(header.get(lengths..lengths.checked_add(len)?)?).ok()?;
    let item = Description(description.trim()).item()?;
    let count =
        (32..lengths).step_by(8).try_fold(1_u64, |all, at| all.checked_mul(get(header, at as u64)))?;
    item.checked_mul(count)?.checked_add(start.into())
}

struct Description<'t>(&'t str);

impl<'t> Description<'t> {
    fn item(&mut self) -> Option<u64> {
        if self.eat("{") {
            // A type of the package ml_dtypes: one byte, except bfloat16.
            self.text()?;
            self.eat(":").then_some(())?;
            let name = self.text()?;
            return self.eat("}").then_some(if name == "bfloat16" { 2 } else { 1 });
        }
        if !self.eat("[") {
            return scalar(self.text()?);
        }
        let mut sum = 0_u64;
        while !self.eat("]") {
            self.eat("[").then_some(())?;
            if self.eat("[") {
                self.text()?;
                self.eat(",").then_some(())?;
                self.text()?;
                self.eat("]").then_some(())?;
            } else {
                self.text()?;
            }
            self.eat(",").then_some(())?;
            let mut field = self.item()?;
            if self.eat(",") {
                field = field.checked_mul(self.shape()?)?;
            }
            self.eat("]").then_some(())?;
            sum = sum.checked_add(field)?;
            self.eat(",");
        }
        Some(sum)
    }

    fn shape(&mut self) -> Option<u64> {
        if !self.eat("[") {
            return self.number();
        }
        let mut all = 1_u64;
        while !self.eat("]") {
            all = all.checked_mul(self.number()?)?;
            self.eat(",");
        }
        Some(all)
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.0.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.0.len());
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest.trim_start();
        number.parse().ok()
    }

    fn text(&mut self) -> Option<&'t str> {
        let rest = self.0.strip_prefix('"')?;
        let (mut end, mut escaped) = (None, false);
        for (at, letter) in rest.char_indices() {
            match letter {
                '"' if !escaped => {
                    end = Some(at);
                    break;
                }
                _ => escaped = letter == '\\' && !escaped,
            }
        }
        let end = end?;
        self.0 = rest[end + 1..].trim_start();
        Some(&rest[..end])
    }

    fn eat(&mut self, what: &str) -> bool {
        let Some(rest) = self.0.strip_prefix(what) else { return false };
        self.0 = rest.trim_start();
        true
    }
}

fn scalar(text: &str) -> Option<u64> {
    let mut letters = text.trim_start_matches(['<', '>', '|', '=']).chars();
    let kind = letters.next()?;
    let rest = letters.as_str();
    let size: u64 = rest[..rest.find('[').unwrap_or(rest.len())].parse().ok()?;
    match kind {
        'U' => size.checked_mul(4),
        'b' | 'i' | 'u' | 'f' | 'c' | 'S' | 'a' | 'V' | 'M' | 'm' => Some(size),
        _ => None,
    }
}

impl Pool {
    /// Resizes a detached object; its address stays. Shrinking gives up a heap's free space at the
    /// end, and fails if contents need more than `size` bytes.
    ///
    /// # Errors
    /// `NotFound`, `Held`, `WrongKey`, `BadSize`, `NoRoom`, `NoSpace`, `NoAddresses`: nothing
    /// changed.
    pub fn resize(&self, name: &str, size: u64, key: &[u8]) -> Result<()> {
        let inner = self.inner();
        let resized = inner.alive().and_then(|()| inner.patiently(|| inner.resize(name, size, Key(key))));
        self.about("resize", name, resized)
    }

    /// As [`resize`](Pool::resize), of a sealed object.
    ///
    /// # Errors
    /// As for [`resize`](Pool::resize) and [`attach_sealed`](Pool::attach_sealed).
    pub fn resize_sealed(&self, name: &str, size: u64, key: &[u8], seal: &SealKey) -> Result<()> {
        self.inner().store.reap().ok();
        let result = self.change_keys(name, key, seal, |writer, _| {
            fit(writer, size)?;
            Ok(writer.resize(size)?)
        });
        self.about("resize", name, result)
    }
}

impl Inner {
    fn resize(&self, name: &str, size: u64, key: Key<'_>) -> Result<(), Cause> {
        let store = &self.store;
        let too_large = StoreError::BadSize { size, why: "the address range ends at 64 TiB" };
        let occupied = store.find(name)?.entry.occupied(size).ok_or(too_large)?;
        let mut failed = None;
        let judge = |object: &Located| {
            if occupied >= object.entry.size.get() {
                return Ok(true);
            }
            let contents = Contents::at_rest(store, object).unwrap_or_else(|cause| {
                failed = Some(cause);
                None
            });
            let fits = contents.is_none_or(|contents| contents.least <= size);
            Ok(failed.is_none() && (fits || Mutant::ContentsCutOff.is_on()))
        };
        if store.resize_if(name, key, occupied, judge)?.is_some() {
            return Ok(());
        }
        if let Some(cause) = failed {
            return Err(cause);
        }
        let mut writer = store.attach_to_resize(name, key)?;
        let shrunk = fit(&mut writer, size).and_then(|()| Ok(writer.shrink(occupied)?));
        let left = writer.detach();
        shrunk.and_then(|()| Ok(left?))
    }
}

fn fit(writer: &mut Writer, size: u64) -> Result<(), Cause> {
    let entry = writer.object().entry;
    let (old, sealed) = (entry.usable(entry.size.get()), writer.object().is_sealed());
    let mut words = WordsAtRest {
        ecc: entry.has(FLAG_ECC),
        len: old,
        pages: BTreeMap::new(),
        lines: BTreeSet::new(),
        writer,
    };
    match Contents::of(|offset| words.load(offset), old)? {
        Some(Contents { what: "heap", least }) if size < least && !sealed => {
            WordHeap::new(entry.address.get() as usize, old as usize).shorten(&mut words, size)?;
            words.psync()
        }
        Some(Contents { what: "heap", least }) => Contents { what: "sealed heap", least }.fit(size),
        Some(contents) => contents.fit(size),
        None => Ok(()),
    }
}

struct WordsAtRest<'w> {
    writer: &'w mut Writer,
    ecc: bool,
    len: u64,
    pages: BTreeMap<u64, Box<PageImage>>,
    lines: BTreeSet<u64>,
}

impl WordsAtRest<'_> {
    fn place(&self, offset: u64) -> Result<u64, Cause> {
        if offset.checked_add(8).is_none_or(|end| end > self.len) {
            return Err(HeapError::Damaged { offset, what: "this lies beyond the end of the object" }.into());
        }
        Ok(if self.ecc { 2 * offset } else { offset })
    }

    fn page(&mut self, page: u64) -> Result<&mut PageImage, Cause> {
        if let std::collections::btree_map::Entry::Vacant(slot) = self.pages.entry(page) {
            let mut image = Box::new(PageImage([0; PAGE as usize]));
            self.writer.look(|primary| primary.read(page, std::slice::from_mut(&mut *image)))?;
            slot.insert(image);
        }
        match self.pages.get_mut(&page) {
            Some(image) => Ok(image),
            None => Err(HeapError::NotAHeap.into()),
        }
    }

    fn put(&mut self, at: u64, word: u64) -> Result<(), Cause> {
        let within = (at % PAGE) as usize;
        self.page(at / PAGE)?.0[within..within + 8].copy_from_slice(&word.to_le_bytes());
        self.lines.insert(at / LINE);
        Ok(())
    }

    fn psync(self) -> Result<(), Cause> {
        let WordsAtRest { writer, pages, lines, .. } = self;
        let end = lines.last().map_or(0, |line| (line + 1) * LINE);
        writer.psync(&mut |primary: u64, batch: &mut Batch| {
            for line in &lines {
                let (at, within) = (line * LINE, (line * LINE % PAGE) as usize);
                if let Some(page) = pages.get(&(at / PAGE)) {
                    batch.copy_lines(primary + at, &page.0[within..within + LINE as usize]);
                }
            }
            Ok(end)
        })?;
        Ok(())
    }
}

impl Words for WordsAtRest<'_> {
    fn load(&mut self, offset: u64) -> Result<u64, Cause> {
        let at = self.place(offset)?;
        Ok(get(&self.page(at / PAGE)?.0, at % PAGE))
    }

    fn store(&mut self, offset: u64, value: u64) -> Result<(), Cause> {
        let at = self.place(offset)?;
        self.put(at, value)?;
        if self.ecc { self.put(at + 8, check_word(value)) } else { Ok(()) }
    }

    fn store_byte(&mut self, offset: u64, value: u8) -> Result<(), Cause> {
        let (word, up) = (offset & !7, offset % 8 * 8);
        let old = self.load(word)?;
        self.store(word, old & !(0xff << up) | u64::from(value) << up)
    }

    fn peek(&self, _: u64) -> u64 {
        0
    }
}
