use super::stripes::{LINE, State};
use std::ops::Range;

pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) address: usize,
    pub(crate) mask: u64,
    /// The changed bytes as they will be, or, `in_place`, as they were; others are zero.
    pub(crate) words: [u64; 8],
    pub(crate) stripe: usize,
    /// The stripe before this line made the transaction its owner. `None`: an earlier line did.
    pub(crate) before: Option<State>,
    pub(crate) next: u32,
    pub(crate) in_place: bool,
}

/// Expands `mask` from a bit per byte to all bits.
#[inline]
pub(crate) const fn bits(mask: u8) -> u64 {
    // Byte i keeps bit i alone; adding 0x7f carries any bit to the byte's highest.
    let single = (mask as u64 * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    let highest = (single + 0x7f7f_7f7f_7f7f_7f7f) & 0x8080_8080_8080_8080;
    (highest >> 7) * 0xff
}

impl Entry {
    #[inline]
    pub(crate) fn set(&mut self, word: usize, value: u64, mask: u8) {
        let bits = bits(mask);
        self.words[word] = self.words[word] & !bits | value & bits;
        self.mask |= u64::from(mask) << (8 * word);
    }

    #[inline]
    pub(crate) const fn changed(&self, word: usize) -> u8 {
        (self.mask >> (8 * word)) as u8
    }

    pub(crate) fn keep_alone(&mut self, kept: u64) {
        self.mask &= kept;
        for (word, value) in self.words.iter_mut().enumerate() {
            *value &= bits((self.mask >> (8 * word)) as u8);
        }
    }

    #[inline]
    pub(crate) fn changed_words(&self) -> impl Iterator<Item = (usize, u8)> + use<> {
        let mut rest = self.mask;
        std::iter::from_fn(move || {
            let word = rest.trailing_zeros() / 8;
            (rest != 0).then(|| {
                let changed = (rest >> (8 * word)) as u8;
                rest &= !(0xff << (8 * word));
                (word as usize, changed)
            })
        })
    }
}

/// All changes of a transaction: each line once, in the order of first stores.
#[derive(Debug, Default)]
pub struct WriteSet {
    pub(crate) lines: Vec<Entry>,
}

impl WriteSet {
    /// The lines.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> {
        self.lines.iter().map(Line)
    }

    /// The number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Number of changed bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.mask.count_ones() as usize).sum()
    }

    /// The line at `address` on the stripe whose newest line is `newest`.
    #[inline]
    pub(crate) fn find(&self, newest: u32, address: usize) -> Option<usize> {
        let mut at = newest;
        while let Some(line) = self.lines.get(at as usize) {
            if line.address == address {
                return Some(at as usize);
            }
            at = line.next;
        }
        None
    }

    pub(crate) fn before(&self, newest: u32) -> Option<State> {
        let mut at = newest;
        while let Some(line) = self.lines.get(at as usize) {
            if line.before.is_some() {
                return line.before;
            }
            at = line.next;
        }
        None
    }
}

/// A line of 64 bytes that a transaction changes.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a>(&'a Entry);

impl<'a> Line<'a> {
    /// Its address, a multiple of 64.
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.address
    }

    /// The changed bytes: bit i stands for byte i.
    #[must_use]
    pub fn mask(&self) -> u64 {
        self.0.mask
    }

    /// The line's words; unchanged bytes are zero. A line [changed in
    /// place](crate::Memory::in_place) has its former bytes here.
    #[must_use]
    pub fn words(&self) -> &'a [u64; 8] {
        &self.0.words
    }

    /// The changed bits of a word.
    ///
    /// # Panics
    ///
    /// `word` is 8 or more.
    #[must_use]
    pub fn word_bits(&self, word: usize) -> u64 {
        assert!(word < LINE / 8, "a line has 8 words, and no word {word}");
        bits(self.0.changed(word))
    }

    /// Runs of changed bytes, as ranges within the line.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (mask, mut at) = (self.0.mask, 0);
        std::iter::from_fn(move || {
            let rest = mask.checked_shr(at).unwrap_or(0);
            (rest != 0).then(|| {
                let begin = at + rest.trailing_zeros();
                let end = begin + (mask >> begin).trailing_ones();
                at = end;
                begin as usize..end as usize
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_all_masks() {
        for mask in 0..=u8::MAX {
            let bytes = std::array::from_fn(|i| if mask >> i & 1 == 1 { 0xff } else { 0 });
            assert_eq!(bits(mask), u64::from_le_bytes(bytes), "{mask:#x}");
        }
    }

    #[test]
    fn runs_of_changed_bytes() {
        let of = |mask| {
            let entry = Entry {
                address: 0,
                mask,
                words: [0; 8],
                stripe: 0,
                before: None,
                next: NONE,
                in_place: false,
            };
            Line(&entry).ranges().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(0), []);
        assert_eq!(of(u64::MAX), [(0, 64)]);
        assert_eq!(of(1 | 1 << 63), [(0, 1), (63, 64)]);
        assert_eq!(of(0xff00 | 0x6 << 40), [(8, 16), (41, 43)]);
    }
}
