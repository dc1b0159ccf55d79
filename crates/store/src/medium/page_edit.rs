//! Changes of table pages in memory, reduced to the differing lines for the log.

use super::{Medium, MediumError};
use crate::format::{LINE, PAGE};
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const L: usize = LINE as usize;
const LINES: usize = (PAGE / LINE) as usize;

struct Image {
    /// Lines (bits) to log even if unchanged.
    forced: u64,
    before: Vec<(usize, [u8; L])>,
    after: Box<[u8; PAGE as usize]>,
}

impl Image {
    fn line(&self, line: usize) -> &[u8] {
        &self.after[line * L..(line + 1) * L]
    }

    fn line_mut(&mut self, line: usize) -> &mut [u8] {
        &mut self.after[line * L..(line + 1) * L]
    }

    fn place(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        if range.end > self.after.len() {
            return None;
        }
        for line in range.start / L..range.end.div_ceil(L) {
            if !self.before.iter().any(|(kept, _)| *kept == line) {
                let mut bytes = [0; L];
                bytes.copy_from_slice(self.line(line));
                self.before.push((line, bytes));
            }
        }
        self.after.get_mut(range)
    }

    fn changed(&self) -> u64 {
        let differ = self.before.iter().filter(|(line, before)| before != self.line(*line));
        differ.fold(self.forced, |mask, (line, _)| mask | 1 << line)
    }
}

/// Unpublished changes of table pages.
pub struct PageEdit<'m> {
    medium: &'m dyn Medium,
    pages: HashMap<u64, Image>,
}

impl<'m> PageEdit<'m> {
    /// An edit without changes.
    #[must_use]
    pub fn new(medium: &'m dyn Medium) -> Self {
        PageEdit { medium, pages: HashMap::new() }
    }

    /// The medium under the edit.
    #[must_use]
    pub fn medium(&self) -> &'m dyn Medium {
        self.medium
    }

    /// The struct at `offset`, within one page, with the edit's changes.
    pub fn read<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &self,
        offset: u64,
    ) -> Result<T, MediumError> {
        let mut value = T::new_zeroed();
        self.read_into(offset, &mut value)?;
        Ok(value)
    }

    /// [`read`](PageEdit::read) into `value`.
    pub fn read_into<T: FromBytes + IntoBytes>(&self, offset: u64, value: &mut T) -> Result<(), MediumError> {
        let bytes = value.as_mut_bytes();
        let image = self.pages.get(&(offset / PAGE * PAGE));
        let at = (offset % PAGE) as usize;
        match image.and_then(|image| image.after.get(at..at + bytes.len())) {
            Some(changed) => bytes.copy_from_slice(changed),
            None => self.medium.read(offset, bytes)?,
        }
        Ok(())
    }

    /// Replaces the struct at `offset`, within one page.
    pub fn write<T: IntoBytes + Immutable>(&mut self, offset: u64, value: &T) -> Result<(), MediumError> {
        let at = (offset % PAGE) as usize;
        let bytes = value.as_bytes();
        let image = self.image(offset / PAGE * PAGE)?;
        match image.place(at..at + bytes.len()) {
            Some(place) => place.copy_from_slice(bytes),
            None => return Err(self.straddles(offset, bytes.len() as u64)),
        }
        Ok(())
    }

    /// Clears and logs the lines of `mask` (one bit a line), which may differ after a crash. Other
    /// lines stay.
    pub fn fresh_page(&mut self, page: u64, mask: u64) -> Result<(), MediumError> {
        let image = self.image(page)?;
        image.forced = mask;
        for (line, before) in std::mem::take(&mut image.before) {
            image.line_mut(line).copy_from_slice(&before);
        }
        for line in (0..LINES).filter(|line| mask >> line & 1 == 1) {
            image.line_mut(line).fill(0);
        }
        Ok(())
    }

    /// Logs the first line of the page, for the same reason.
    pub fn force_first_line(&mut self, page: u64) -> Result<(), MediumError> {
        self.image(page)?.forced |= 1;
        Ok(())
    }

    fn straddles(&self, offset: u64, len: u64) -> MediumError {
        MediumError::OutOfBounds { offset, len, size: self.medium.len() }
    }

    fn image(&mut self, page: u64) -> Result<&mut Image, MediumError> {
        match self.pages.entry(page) {
            MapEntry::Occupied(slot) => Ok(slot.into_mut()),
            MapEntry::Vacant(slot) => {
                let mut after = Box::new([0; PAGE as usize]);
                self.medium.read(page, &mut after[..])?;
                Ok(slot.insert(Image { forced: 0, before: Vec::new(), after }))
            }
        }
    }

    /// Calls `emit(offset, bytes)` for every maximal run of changed lines, ascending.
    pub fn changed_runs(&self, mut emit: impl FnMut(u64, &[u8])) {
        let mut offsets: Vec<_> = self.pages.keys().copied().collect();
        offsets.sort_unstable();
        for page in offsets {
            let image = &self.pages[&page];
            let mut left = image.changed();
            while left != 0 {
                let start = left.trailing_zeros() as usize;
                let count = (left >> start).trailing_ones() as usize;
                emit(page + (start * L) as u64, &image.after[start * L..(start + count) * L]);
                left &= !(u64::MAX >> (LINES - count) << start);
            }
        }
    }

    /// Whether the edit touched the page at `page`.
    #[must_use]
    pub fn has(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// Pages the edit touched.
    pub fn touched(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }
}

/// Reads one struct from the medium.
pub fn read_struct<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
    medium: &dyn Medium,
    offset: u64,
) -> Result<T, MediumError> {
    let mut value = T::new_zeroed();
    medium.read(offset, <T as IntoBytes>::as_mut_bytes(&mut value))?;
    Ok(value)
}
