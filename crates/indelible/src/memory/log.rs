//! A thread's log: the lines of the commit that it is storing to memory.
//!
//! Words: the commit's number, or zero if not valid; the number of lines; the last commit's number,
//! a figure; then each line: offset of the object's entry, place in the object, mask of changed
//! bytes, and the line. A process dies between two instructions, so memory has its stores in
//! program order; fences are for the compiler, and for threads on other processors that run a
//! moment longer.

use super::area::{WORD, Words};
use std::sync::atomic::{AtomicU64, Ordering, fence};

const HEAD: usize = 3;
pub(super) const LAST: usize = 2;
const LINE: usize = 3 + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Logged<W = [u64; 8]> {
    pub(crate) object: u64,
    pub(crate) offset: u64,
    pub(crate) mask: u64,
    pub(crate) words: W,
}

#[derive(Debug)]
pub(crate) struct Log(Words);

impl Log {
    pub(super) fn new(words: Words) -> Log {
        Log(words)
    }

    pub(super) fn bytes(lines: usize) -> usize {
        (HEAD + lines * LINE) * WORD
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        (self.0.all().len() - HEAD) / LINE
    }

    #[inline]
    pub(crate) fn begin(&self) {
        fence(Ordering::Release);
    }

    /// `false`: no room. The words are copied one by one, as a wider load of a just stored word
    /// would stall.
    #[inline]
    pub(crate) fn put(&self, nth: usize, line: &Logged<&[u64; 8]>) -> bool {
        let at = HEAD + nth * LINE;
        let Some(into) = self.0.all().get(at..at + LINE) else { return false };
        let words = [line.object, line.offset, line.mask].into_iter().chain(line.words.iter().copied());
        into.iter().zip(words).for_each(|(into, word)| into.store(word, Ordering::Relaxed));
        true
    }

    #[inline]
    pub(crate) fn validate(&self, sequence: u64, lines: usize) {
        let [number, count] = self.head();
        count.store(lines as u64, Ordering::Relaxed);
        self.0.all()[LAST].store(sequence, Ordering::Relaxed);
        number.store(sequence, Ordering::Release);
    }

    #[inline]
    pub(crate) fn clear(&self) {
        let [number, _] = self.head();
        number.store(0, Ordering::Release);
    }

    #[inline]
    fn head(&self) -> [&AtomicU64; 2] {
        let words = self.0.all();
        [&words[0], &words[1]]
    }

    pub(super) fn read(&self) -> Result<Option<(u64, Vec<Logged>)>, &'static str> {
        let [number, count] = self.head().map(|word| word.load(Ordering::Acquire));
        if number == 0 {
            return Ok(None);
        }
        if count > self.capacity() as u64 {
            return Err("it has more lines than it has room for");
        }
        let lines = self.0.all()[HEAD..].chunks_exact(LINE).take(count as usize).map(|line| {
            let word = |nth: usize| line[nth].load(Ordering::Relaxed);
            Logged {
                object: word(0),
                offset: word(1),
                mask: word(2),
                words: std::array::from_fn(|nth| word(3 + nth)),
            }
        });
        Ok(Some((number, lines.collect())))
    }
}
