//! The bitmap of an overlay: which pages are the object's own.
//!
//! A *summary* lists which bitmap pages count; others are zeros.
//!
//! Invariants:
//! 1. A bitmap page that counts is durable, and so is every page of the object that it marks.
//! 2. A bit is set once and never cleared.

use crate::format::entry::{BITMAP_GROUP, Entry};
use crate::format::{LINE, PAGE};
use std::collections::BTreeMap;

const PAGES_A_PAGE: u64 = 8 * PAGE;
const PAGES_A_LINE: u64 = 8 * LINE;

type Bits = [u8; PAGE as usize];

#[derive(Clone, Default)]
pub(crate) struct Bitmap {
    start: u64,
    pages: Vec<Option<Box<Bits>>>,
}

pub(crate) type Writes = Vec<(u64, Vec<u8>)>;

impl Bitmap {
    pub(crate) fn read<E>(
        entry: &Entry,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Bitmap, E> {
        let (start, count) = (entry.bitmap_offset(), entry.based.get().div_ceil(PAGES_A_PAGE) as usize);
        let mut bitmap = Bitmap { start, pages: Vec::new() };
        bitmap.pages.resize(count, None);
        for group in 0..count.div_ceil(BITMAP_GROUP as usize) {
            let first = group * BITMAP_GROUP as usize;
            let told = (count - first).min(BITMAP_GROUP as usize);
            let mut summary = vec![0; told.div_ceil(8 * LINE as usize) * LINE as usize];
            read(bitmap.summary(first as u64).0, &mut summary)?;
            for nth in ones(&summary).take_while(|nth| *nth < told as u64) {
                let number = first as u64 + nth;
                let mut bits = Box::new([0; PAGE as usize]);
                read(bitmap.place(number), &mut bits[..])?;
                bitmap.pages[number as usize] = Some(bits);
            }
        }
        Ok(bitmap)
    }

    fn place(&self, number: u64) -> u64 {
        self.start + (number + number / BITMAP_GROUP + 1) * PAGE
    }

    /// Offset of its line, and bit.
    fn summary(&self, number: u64) -> (u64, u64) {
        let (group, bit) = (number / BITMAP_GROUP, number % BITMAP_GROUP);
        let line = self.start + group * (BITMAP_GROUP + 1) * PAGE + bit / PAGES_A_LINE * LINE;
        (line, bit % PAGES_A_LINE)
    }

    fn summary_line(&self, line: u64) -> Vec<u8> {
        let group = (line - self.start) / ((BITMAP_GROUP + 1) * PAGE);
        let first = group * BITMAP_GROUP + (line - self.summary(group * BITMAP_GROUP).0) * 8;
        let mut bytes = vec![0; LINE as usize];
        for (nth, page) in self.pages.iter().skip(first as usize).take(PAGES_A_LINE as usize).enumerate() {
            bytes[nth / 8] |= u8::from(page.is_some()) << (nth % 8);
        }
        bytes
    }

    /// The bitmap covers the page.
    pub(crate) fn has(&self, page: u64) -> bool {
        let bits = self.pages.get((page / PAGES_A_PAGE) as usize).and_then(Option::as_ref);
        bits.is_some_and(|bits| bits[(page % PAGES_A_PAGE / 8) as usize] >> (page % 8) & 1 == 1)
    }

    pub(crate) fn claim(&mut self, page: u64) {
        if let Some(bits) = self.pages.get_mut((page / PAGES_A_PAGE) as usize) {
            let bits = bits.get_or_insert_with(|| Box::new([0; PAGE as usize]));
            set(&mut bits[..], page % PAGES_A_PAGE);
        }
    }

    pub(crate) fn own(&self) -> impl Iterator<Item = u64> {
        let pages = self.pages.iter().zip((0_u64..).step_by(PAGES_A_PAGE as usize));
        let pages = pages.filter_map(|(bits, first)| Some((bits.as_deref()?, first)));
        pages.flat_map(|(bits, first)| ones(bits).map(move |nth| first + nth))
    }

    /// Writes that mark `pages`: the first are to parts that do not count; the second make these
    /// count, or change counting parts, once the first, and the pages, are durable, or in one step.
    pub(crate) fn claiming(&self, pages: impl IntoIterator<Item = u64>) -> (Writes, Writes) {
        let (mut fresh, mut lines) = (BTreeMap::new(), BTreeMap::new());
        for page in pages {
            let (number, nth) = (page / PAGES_A_PAGE, page % PAGES_A_PAGE);
            let counting = self.pages.get(number as usize).and_then(Option::as_deref);
            let (bytes, nth) = match counting {
                Some(bits) => {
                    let line = nth / PAGES_A_LINE * LINE;
                    let now = || bits[line as usize..(line + LINE) as usize].to_vec();
                    (lines.entry(self.place(number) + line).or_insert_with(now), nth % PAGES_A_LINE)
                }
                None => {
                    let (line, bit) = self.summary(number);
                    set(lines.entry(line).or_insert_with(|| self.summary_line(line)), bit);
                    (fresh.entry(self.place(number)).or_insert_with(|| vec![0; PAGE as usize]), nth)
                }
            };
            set(bytes, nth);
        }
        (fresh.into_iter().collect(), lines.into_iter().collect())
    }
}

fn set(bits: &mut [u8], nth: u64) {
    bits[(nth / 8) as usize] |= 1 << (nth % 8);
}

fn ones(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    words.zip((0_u64..).step_by(64)).filter(|(word, _)| *word != 0).flat_map(|(word, first)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let nth = first + u64::from(rest.trailing_zeros());
            (rest != 0).then(|| {
                rest &= rest - 1;
                nth
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use zerocopy::FromZeros;
    use zerocopy::little_endian::U64;

    fn entry(based: u64) -> Entry {
        let mut entry = Entry::new_zeroed();
        entry.set(crate::format::entry::FLAG_OVERLAY, true);
        (entry.based, entry.overlay) = (U64::new(based), U64::new(100));
        entry
    }

    #[derive(Default)]
    struct Pool(BTreeMap<u64, Vec<u8>>);

    impl Pool {
        fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ()> {
            for (at, line) in (offset..).step_by(LINE as usize).zip(bytes.chunks_mut(LINE as usize)) {
                match self.0.get(&at) {
                    Some(written) => line.copy_from_slice(written),
                    None => line.fill(0xff),
                }
            }
            Ok(())
        }

        fn write(&mut self, entry: &Entry, writes: Writes) {
            let region = entry.bitmap_offset()..entry.bitmap_offset() + entry.bitmap_pages() * PAGE;
            for (offset, bytes) in writes {
                assert!(
                    !bytes.is_empty() && region.start <= offset && offset + bytes.len() as u64 <= region.end
                );
                for (at, line) in (offset..).step_by(LINE as usize).zip(bytes.chunks(LINE as usize)) {
                    self.0.insert(at, line.to_vec());
                }
            }
        }
    }

    #[test]
    fn pages_that_were_claimed_are_found_again_among_bytes_of_no_account() {
        const T: u64 = BITMAP_GROUP * PAGES_A_PAGE;
        for based in [1, 64, 32_768, 32_769, 10 * PAGES_A_PAGE - 3, T, T + 1, 2 * T + 5] {
            let entry = entry(based);
            let mut pool = Pool::default();
            for group in 0..based.div_ceil(T) {
                let summary = entry.bitmap_offset() + group * (BITMAP_GROUP + 1) * PAGE;
                pool.write(&entry, vec![(summary, vec![0; PAGE as usize])]);
            }
            let mut expected = BTreeSet::new();
            for round in 0..6_u64 {
                let mut bitmap = Bitmap::read(&entry, |at, bytes| pool.read(at, bytes)).unwrap();
                assert_eq!(bitmap.own().collect::<BTreeSet<_>>(), expected, "{based} {round}");
                let edges = [0, based / 2, based - 1, T - 1, T, PAGES_A_PAGE, PAGES_A_PAGE - 1];
                let pages: BTreeSet<u64> = edges
                    .into_iter()
                    .map(|edge| edge.wrapping_add(round * 511) % based)
                    .filter(|page| !expected.contains(page))
                    .collect();
                let (first, then) = bitmap.claiming(pages.iter().copied());
                pages.iter().for_each(|page| bitmap.claim(*page));
                pool.write(&entry, first);
                let between = Bitmap::read(&entry, |at, bytes| pool.read(at, bytes)).unwrap();
                assert_eq!(between.own().collect::<BTreeSet<_>>(), expected, "{based} {round}");
                pool.write(&entry, then);
                expected.extend(pages);
                assert!(expected.iter().all(|page| bitmap.has(*page)));
            }
        }
    }
}
