//! Commits on their way to the lane; `Commits` adds locks and waits.
//!
//! Invariants:
//! 1. Every number from `next` on is told at most once, and none below; those below `durable` are
//!    durable, those from there to `next` are being made durable.
//! 2. A group has the commits of successive numbers from `next` on: the durable ones are a prefix
//!    of all commits.

use crate::format::batch::{Run, Section};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::VecDeque;

/// A line's content after a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedLine {
    /// Offset of the object's entry in the pool.
    pub object: u64,
    /// Line-aligned offset in the object.
    pub offset: u64,
    /// Its content.
    pub bytes: [u8; LINE as usize],
}

const ONE: u64 = LINE + size_of::<Run>() as u64;
/// Lines of a base's page, and of its bits.
const WHOLE: u64 = (PAGE / LINE + 2) * ONE;

/// Most bytes.
pub(super) fn weight(lines: usize, objects: usize, pages: usize) -> u64 {
    let sections = lines.min(objects) as u64 * size_of::<Section>() as u64;
    // Header and padding.
    lines as u64 * ONE + pages as u64 * WHOLE + sections + 2 * LINE
}

/// Lines that fit `room`.
pub(super) fn fitting(room: u64, objects: usize, based: bool) -> u64 {
    let fixed = weight(0, 0, 0) + objects as u64 * size_of::<Section>() as u64;
    room.saturating_sub(fixed) / if based { ONE + WHOLE } else { ONE }
}

pub(super) fn pages(places: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut pages: Vec<_> = places.map(|(object, offset)| (object, offset / PAGE)).collect();
    pages.sort_unstable();
    pages.dedup();
    pages.len()
}

#[derive(Debug)]
struct Told {
    lines: Vec<ChangedLine>,
    weight: u64,
}

#[derive(Debug)]
pub(super) struct Queue {
    /// From `next` on; `None`: not told yet.
    told: VecDeque<Option<Told>>,
    next: u64,
    durable: u64,
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue { told: VecDeque::new(), next: 1, durable: 1 }
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    pub(super) fn is_durable(&self, sequence: u64) -> bool {
        sequence < self.durable
    }

    pub(super) fn is_taken(&self, sequence: u64) -> bool {
        sequence < self.next
    }

    pub(super) fn last(&self) -> u64 {
        self.next - 1 + self.told.iter().take_while(|told| told.is_some()).count() as u64
    }

    pub(super) fn tell(&mut self, sequence: u64, lines: Vec<ChangedLine>, weight: u64) {
        debug_assert!(sequence >= self.next, "number {sequence}, again");
        let at = sequence.saturating_sub(self.next) as usize;
        if at >= self.told.len() {
            self.told.resize_with(at + 1, || None);
        }
        debug_assert!(self.told[at].is_none(), "number {sequence}, again");
        self.told[at] = Some(Told { lines, weight });
    }

    pub(super) fn take(&mut self, room: u64) -> Option<Group> {
        let (mut count, mut used) = (0, 0_u64);
        while let Some(Some(told)) = self.told.get(count) {
            used = used.saturating_add(told.weight);
            if used > room && count > 0 {
                break;
            }
            count += 1;
        }
        self.next += count as u64;
        let mut told = self.told.drain(..count).flatten().map(|told| told.lines);
        let first = told.next()?;
        Some(Group { first, others: told.collect() })
    }

    pub(super) fn made_durable(&mut self) {
        self.durable = self.next;
    }
}

#[derive(Debug)]
pub(super) struct Group {
    first: Vec<ChangedLine>,
    others: Vec<Vec<ChangedLine>>,
}

impl Group {
    /// The newest of each line, of each object together and in order.
    pub(super) fn into_lines(self) -> Vec<ChangedLine> {
        let place = |line: &ChangedLine| (line.object, line.offset);
        let mut lines = self.first;
        if self.others.is_empty() {
            lines.sort_unstable_by_key(place);
            return lines;
        }
        if Mutant::CommitOlderLine.is_on() {
            lines.extend(self.others.into_iter().flatten());
        } else {
            let newest_first = self.others.into_iter().rev().flatten().collect::<Vec<_>>();
            lines.splice(0..0, newest_first);
        }
        // Equal ones keep their order.
        lines.sort_by_key(place);
        lines.dedup_by_key(|line| place(line));
        lines
    }

    pub(super) fn newest(&self) -> Option<Group> {
        self.others.last().map(|last| Group { first: last.clone(), others: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(object: u64, offset: u64, value: u8) -> ChangedLine {
        ChangedLine { object, offset, bytes: [value; LINE as usize] }
    }

    #[test]
    fn a_group_is_what_comes_next_without_a_gap() {
        let mut queue = Queue::new();
        queue.tell(2, vec![line(1, 0, 2)], 10);
        assert!(
            queue.take(100).is_none() && queue.last() == 0 && queue.is_durable(0) && !queue.is_durable(1)
        );
        queue.tell(4, vec![line(1, 0, 4)], 10);
        queue.tell(1, vec![line(1, 0, 1), line(2, 64, 1)], 10);
        assert_eq!(queue.last(), 2);
        let group = queue.take(100).unwrap();
        let lines = group.into_lines();
        assert_eq!(lines, [line(1, 0, 2), line(2, 64, 1)], "the newest of each line");
        assert!(!queue.is_durable(1) && queue.take(100).is_none());
        queue.made_durable();
        assert!(queue.is_durable(2) && !queue.is_durable(3));
        queue.tell(3, Vec::new(), 0);
        assert_eq!((queue.last(), queue.take(100).unwrap().into_lines().len()), (4, 1));
    }

    #[test]
    fn a_group_has_room_or_is_one_commit() {
        let mut queue = Queue::new();
        for number in 1..=4 {
            queue.tell(number, vec![line(number, 0, 0)], if number == 3 { 1000 } else { 40 });
        }
        let mut take = || {
            queue.take(100).map(|group| group.into_lines().iter().map(|line| line.object).collect::<Vec<_>>())
        };
        assert_eq!((take(), take(), take(), take()), (Some(vec![1, 2]), Some(vec![3]), Some(vec![4]), None));
    }

    #[test]
    fn a_page_of_a_base_weighs_as_a_whole() {
        let places = [(1, 0), (2, 0), (1, 64), (1, 4096)];
        assert_eq!(pages(places.into_iter()), 3);
        let own = weight(4, 2, 0);
        assert_eq!(own, 4 * 80 + 2 * size_of::<Section>() as u64 + 2 * 64);
        assert_eq!(weight(4, 2, 3) - own, 3 * 66 * 80);
        for (room, objects, based) in
            [(4096, 1, false), (100_000, 7, false), (1 << 20, 3, true), (10, 2, false)]
        {
            let lines = fitting(room, objects, based);
            let taken = |lines| weight(lines as usize, objects, if based { lines as usize } else { 0 });
            assert!(lines == 0 || taken(lines) <= room, "{lines} lines do not fit in {room}");
            assert!(
                taken(lines + 1) > room || lines < objects as u64,
                "more than {lines} lines fit in {room}"
            );
        }
        assert_eq!(weight(1, 5, 0), 80 + size_of::<Section>() as u64 + 2 * 64, "no more objects than lines");
    }
}
