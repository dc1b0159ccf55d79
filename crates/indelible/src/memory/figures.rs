//! Figures of commits that are not durable, in the memory that they are in: other processes look at them while the process runs, or once it is dead.
//!
//! They are words that one process stores and others load, and mean nothing to a recovery.

use super::area::{WORD, Words};
use super::group::{FIGURES, HEAD, LOGS};
use super::log::LAST;
use super::place::Place;
use crate::backing::{self, Identity};
use crate::sys::PAGE;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Those of a group, mapped: in the last page of its head.
#[derive(Debug)]
pub(crate) struct Figures(Words);

impl Figures {
    pub(super) fn of(head: Words) -> Figures {
        Figures(head)
    }

    #[inline]
    fn word(&self, nth: usize) -> &AtomicU64 {
        &self.0.all()[FIGURES + nth]
    }

    /// All commits up to this number are durable.
    #[inline]
    pub(crate) fn durable(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// Lines that are marked for the next epoch.
    #[inline]
    pub(crate) fn pending(&self) -> &AtomicU64 {
        self.word(1)
    }

    /// When the first of them was marked, in nanoseconds since 1970; 0: there are none.
    #[inline]
    pub(crate) fn since(&self) -> &AtomicU64 {
        self.word(2)
    }

    /// Commits that were made durable before they returned, as the bound of the guard said.
    #[inline]
    pub(crate) fn at_once(&self) -> &AtomicU64 {
        self.word(3)
    }
}

/// A word of an object's memory that counts its lines that are marked.
#[derive(Debug)]
pub(crate) struct Counter {
    words: Words,
    at: usize,
}

impl Counter {
    pub(super) fn new(words: Words, at: usize) -> Counter {
        Counter { words, at }
    }

    #[inline]
    pub(crate) fn get(&self) -> &AtomicU64 {
        &self.words.all()[self.at]
    }
}

/// The time, in nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The figures of an object, as [`look`] finds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) commits: u64,
    pub(crate) lines: u64,
    pub(crate) since: u64,
    pub(crate) at_once: u64,
}

/// Looks at the figures of an object of `len` bytes whose commits are in the memory of this number, whoever has it. `None`: this user may not, or it is gone.
pub(crate) fn look(place: &Place, number: u64, object: [u8; 16], len: usize) -> Option<Seen> {
    let peek = |identity: &Identity, len: usize, at: usize, words: &mut [u64]| {
        backing::peek(place.folders(), identity, len, at, words).then_some(())
    };
    let head = place.part(number, 0);
    let (mut figures, mut logs, mut lines) = ([0; 4], [0; 1], [0; 1]);
    let bytes = HEAD + PAGE;
    peek(&head, bytes, FIGURES * WORD, &mut figures)?;
    peek(&head, bytes, 0, &mut logs)?;
    peek(&place.object(number, object), len + PAGE, len + WORD, &mut lines)?;
    let count = usize::try_from(logs[0]).ok().filter(|count| *count < LOGS)?;
    let mut lengths = vec![0; count];
    peek(&head, bytes, WORD, &mut lengths)?;
    let (mut last, mut word) = (0, [0; 1]);
    for (part, length) in (1..).zip(lengths) {
        // One that is made just now has no commit yet.
        if peek(&place.part(number, part), usize::try_from(length).ok()?, LAST * WORD, &mut word).is_some() {
            last = word[0].max(last);
        }
    }
    let [durable, _, since, at_once] = figures;
    Some(Seen { commits: last.saturating_sub(durable), lines: lines[0], since, at_once })
}

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::*;
    use crate::sys::boot;
    use std::sync::atomic::Ordering;

    #[test]
    fn figures_are_seen_beside_the_process_and_gone_with_the_memory() {
        let beside = tempfile::tempdir().unwrap();
        let pool = std::array::from_fn(|nth| (now() >> (nth % 8)) as u8);
        let path = beside.path().join("p");
        let place = Place { pool, boot: boot::boot_id(), beside: Some(beside.path().to_owned()), path };
        let group = Group::new(place.clone(), 77).unwrap();
        let area = group.memory_of([9; 16], 2 * PAGE).unwrap();
        let look = |number| look(&place, number, [9; 16], 2 * PAGE);
        assert_eq!((look(77), look(78)), (Some(Seen::default()), None));
        let logs = [group.log(4).unwrap(), group.log(4).unwrap()];
        logs[1].validate(12, 0);
        logs[0].validate(11, 0);
        logs.iter().for_each(super::super::Log::clear);
        group.figures().durable().store(5, Ordering::Relaxed);
        group.figures().since().store(6, Ordering::Relaxed);
        group.figures().at_once().store(8, Ordering::Relaxed);
        area.pending().unwrap().get().store(3, Ordering::Relaxed);
        assert_eq!(look(77), Some(Seen { commits: 7, lines: 3, since: 6, at_once: 8 }));
        area.remove().unwrap();
        assert_eq!(look(77), None);
        group.end(false);
    }
}
