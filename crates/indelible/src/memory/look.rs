//! Reads the figures of pending commits, from any process.

use super::area::{HEAD as BEFORE, MARKED, WORD};
use super::figures::{FIGURES, HEAD, LOGS};
use super::log::LAST;
use super::place::MemoryLocation;
use crate::backing::{self, Identity};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) commits: u64,
    pub(crate) lines: u64,
    pub(crate) since: u64,
    pub(crate) at_once: u64,
}

/// `None`: no permission, or gone.
pub(crate) fn look(place: &MemoryLocation, number: u64, object: [u8; 16], len: usize) -> Option<Seen> {
    let peek = |identity: &Identity, len: usize, at: usize, words: &mut [u64]| {
        backing::peek(place.folders(), identity, len, at, words).then_some(())
    };
    let head = place.part(number, 0);
    let (mut figures, mut logs, mut lines) = ([0; 4], [0; 1], [0; 1]);
    let bytes = BEFORE + HEAD;
    peek(&head, bytes, BEFORE + FIGURES * WORD, &mut figures)?;
    peek(&head, bytes, BEFORE, &mut logs)?;
    peek(&place.object(number, object), BEFORE + len, MARKED * WORD, &mut lines)?;
    let count = usize::try_from(logs[0]).ok().filter(|count| *count < LOGS)?;
    let mut lengths = vec![0; count];
    peek(&head, bytes, BEFORE + WORD, &mut lengths)?;
    let (mut last, mut word) = (0, [0; 1]);
    for (part, length) in (1..).zip(lengths) {
        // A log being made has no commit yet.
        if peek(&place.part(number, part), usize::try_from(length).ok()?, LAST * WORD, &mut word).is_some() {
            last = word[0].max(last);
        }
    }
    let [durable, _, since, at_once] = figures;
    Some(Seen { commits: last.saturating_sub(durable), lines: lines[0], since, at_once })
}

#[cfg(test)]
mod tests {
    use super::super::{Group, now};
    use super::*;
    use crate::backing::Origin;
    use crate::sys::{PAGE, boot};
    use std::sync::atomic::Ordering;

    #[test]
    fn figures_are_seen_beside_the_process_and_gone_with_the_memory() {
        let beside = tempfile::tempdir().unwrap();
        let pool = std::array::from_fn(|nth| (now() >> (nth % 8)) as u8);
        let origin = Origin { file: Some((7, 8)), path: beside.path().join("p") };
        let place =
            MemoryLocation { pool, boot: boot::boot_id(), beside: Some(beside.path().to_owned()), origin };
        let group = Group::new(place.clone(), 77).unwrap();
        let area = group.memory_of([9; 16], (2 * PAGE, 2 * PAGE)).unwrap();
        let look = |number| look(&place, number, [9; 16], 2 * PAGE);
        assert_eq!((look(77), look(78)), (Some(Seen::default()), None));
        let copy = Origin { file: Some((7, 9)), path: beside.path().join("copy") };
        let copy = MemoryLocation { origin: copy, ..place.clone() };
        assert_eq!(super::look(&copy, 77, [9; 16], 2 * PAGE), None, "it is the original's");
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
