//! Change `n` stores `n` into one of a few distant pages of a sparse object in turn, and into the
//! first page, which counts. A copy does it in the opposite order, in the pages' second word, so
//! that it shows its source's changes and its own.

use crate::workloads::journal::Journal;
use crate::workloads::world::Trouble;
use indelible::Object;
use std::path::Path;

pub(super) const PAGE: u64 = 4096;
pub(super) const SIZE: u64 = 64 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Object,
    Copy,
}

impl Side {
    fn word(self) -> usize {
        match self {
            Side::Object => 0,
            Side::Copy => 1,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Pages {
    pub(super) count: u64,
    size: u64,
}

impl Pages {
    pub(super) fn new(count: u64) -> Pages {
        Pages { count, size: SIZE }
    }

    fn at(self, page: u64) -> u64 {
        let apart = self.size / PAGE / (self.count + 1);
        (page + 1) * apart * PAGE
    }

    fn of(self, side: Side, change: u64) -> u64 {
        match side {
            Side::Object => change % self.count,
            Side::Copy => self.count - 1 - change % self.count,
        }
    }

    fn word(self, side: Side, page: u64, changes: u64) -> u64 {
        let of = match side {
            Side::Object => page,
            Side::Copy => self.count - 1 - page,
        };
        changes.saturating_sub((changes + self.count - of) % self.count)
    }

    pub(super) fn store(self, object: &mut Object, side: Side, change: u64) {
        for page in [0, self.at(self.of(side, change))] {
            let at = page as usize + side.word() * 8;
            object.range_mut(at..at + 8).copy_from_slice(&change.to_le_bytes());
        }
    }

    pub(super) fn compare(
        self,
        bytes: &[u8],
        (changes, of_copy): (u64, u64),
        (first, step): (u64, u64),
    ) -> Result<(), String> {
        let page_at = |at: u64| &bytes[at as usize..(at + PAGE) as usize];
        let expect = |at: u64, expected: [u64; 2], what: &str| {
            let (words, _) = page_at(at).as_chunks::<8>();
            let found = [0, 1].map(|word| u64::from_le_bytes(words[word]));
            let rest = words[2..].iter().all(|word| *word == [0; 8]);
            match found == expected && rest {
                true => Ok(()),
                false => Err(format!(
                    "{what} at {at} has {found:?} instead of {expected:?} after {changes} changes, {of_copy} of a copy; zeros behind: {rest}"
                )),
            }
        };
        expect(0, [changes, of_copy], "the page that counts")?;
        for page in (first % step..self.count).step_by(step as usize) {
            let words = [self.word(Side::Object, page, changes), self.word(Side::Copy, page, of_copy)];
            expect(self.at(page), words, "a page")?;
            if page % 64 == 0 {
                expect(self.at(page) + PAGE, [0, 0], "an unchanged page")?;
            }
        }
        Ok(())
    }
}

pub(super) fn count(bytes: &[u8]) -> (u64, u64) {
    let (words, _) = bytes[..16].as_chunks::<8>();
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
}

pub(super) struct Acknowledged(Journal);

impl Acknowledged {
    pub(super) fn open(folder: &Path, name: &str) -> Result<Acknowledged, Trouble> {
        let journal = Journal::open(&folder.join(name))?;
        if journal.last()? == 0 {
            journal.begin(&[0; 8])?;
        }
        Ok(Acknowledged(journal))
    }

    pub(super) fn get(&self) -> Result<u64, Trouble> {
        Ok(self.0.get(1)?[1])
    }

    pub(super) fn set(&self, changes: u64) -> Result<(), Trouble> {
        self.0.set(1, 1, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_last_change_of_a_page() {
        let pages = Pages::new(10);
        for side in [Side::Object, Side::Copy] {
            let mut words = [0; 10];
            for change in 1..100 {
                words[pages.of(side, change) as usize] = change;
                let known: Vec<u64> = (0..10).map(|page| pages.word(side, page, change)).collect();
                assert_eq!(known, words, "after {change} changes");
            }
            assert!((0..10).all(|page| pages.word(side, page, 0) == 0));
        }
    }

    #[test]
    fn wrong_bytes_are_noticed() {
        let pages = Pages { count: 3, size: 40 * PAGE };
        let mut bytes = vec![0_u8; 40 * PAGE as usize];
        for change in 1..=5_u64 {
            for at in [0, pages.at(pages.of(Side::Object, change))] {
                bytes[at as usize..at as usize + 8].copy_from_slice(&change.to_le_bytes());
            }
        }
        assert_eq!(pages.compare(&bytes, (5, 0), (0, 1)), Ok(()));
        assert!(pages.compare(&bytes, (4, 0), (0, 1)).is_err());
        bytes[pages.at(1) as usize + 100] = 1;
        assert!(pages.compare(&bytes, (5, 0), (0, 1)).is_err());
    }
}
