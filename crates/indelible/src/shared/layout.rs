//! The layout of a queue in a shared object. It is not in FORMAT.md, as it does not outlive the
//! boot; processes of another version are refused.
//!
//! In words of 8 bytes: a line of description; a line each for tail, head, and the two bells; from
//! [`STATES`] a word per slot; then the messages, each in lines of its own. The description is read
//! once: later scribbles there do no harm.

use crate::error::{Error, QueueMisfit, Result, SharedError};

const MAGIC: u64 = u64::from_le_bytes(*b"pmoqueue");
const VERSION: u64 = 1;
const LINE: usize = 8;
const STATES: usize = 8 * LINE;
const MOST_SLOTS: usize = 1 << 28;
const MOST_BYTES: usize = 1 << 28;

/// Producers that a queue may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// One at a time: the fastest.
    OneProducer,
    /// Any number, of any processes.
    #[default]
    ManyProducers,
}

/// How a queue is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Its producers.
    pub kind: QueueKind,
    /// Messages at most: a power of two.
    pub slots: usize,
    /// Bytes of the longest message. Each slot reserves as many, in lines of 64.
    pub most: usize,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { kind: QueueKind::default(), slots: 1024, most: 64 }
    }
}

impl QueueOptions {
    /// Bytes of such a queue, for sizing its object.
    ///
    /// # Errors
    /// `BadSize`: there can be no such queue.
    pub fn bytes(&self) -> Result<usize> {
        let layout = Layout::new(0, self, usize::MAX);
        layout.map(|layout| layout.bytes()).map_err(|cause| Error::new("lay out", cause))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) offset: usize,
    pub(super) kind: QueueKind,
    pub(super) slots: usize,
    pub(super) most: usize,
    first: usize,
}

impl Layout {
    pub(super) fn new(offset: usize, options: &QueueOptions, size: usize) -> Result<Layout, SharedError> {
        let bad = |why| Err(SharedError::NoQueue { offset, why });
        let &QueueOptions { kind, slots, most } = options;
        if !offset.is_multiple_of(64) {
            return bad(QueueMisfit::Offset);
        }
        if !slots.is_power_of_two() || !(2..=MOST_SLOTS).contains(&slots) {
            return bad(QueueMisfit::Slots(slots));
        }
        if !(1..=MOST_BYTES).contains(&most) {
            return bad(QueueMisfit::Bytes(most));
        }
        let layout = Layout { offset, kind, slots, most, first: offset / 8 };
        match size.checked_sub(offset) {
            Some(left) if layout.bytes() <= left => Ok(layout),
            left => bad(QueueMisfit::Room { needed: layout.bytes(), left: left.unwrap_or(0) }),
        }
    }

    pub(super) fn compare(offset: usize, options: &QueueOptions, found: [u64; 4]) -> Result<(), SharedError> {
        let [magic, version, slots, most] = found;
        let kind = match version ^ (VERSION << 8) {
            _ if magic != MAGIC => return Err(SharedError::NotAQueue { offset }),
            0 => QueueKind::OneProducer,
            1 => QueueKind::ManyProducers,
            _ => return Err(SharedError::NotAQueue { offset }),
        };
        let said = |kind: QueueKind, slots: u64, most: u64| {
            let producers = match kind {
                QueueKind::OneProducer => "one producer",
                QueueKind::ManyProducers => "many producers",
            };
            format!("one of {slots} slots, messages of up to {most} bytes, and {producers}")
        };
        let (found, expected) =
            (said(kind, slots, most), said(options.kind, options.slots as u64, options.most as u64));
        if found == expected { Ok(()) } else { Err(SharedError::OtherQueue { offset, found, expected }) }
    }

    pub(super) fn bytes(&self) -> usize {
        (self.messages() - self.first + self.slots * self.stride()) * 8
    }

    fn stride(&self) -> usize {
        self.most.div_ceil(8).next_multiple_of(LINE)
    }

    pub(super) fn says(&self) -> [(usize, u64); 4] {
        let kind = match self.kind {
            QueueKind::OneProducer => 0,
            QueueKind::ManyProducers => 1,
        };
        let said = [(1, VERSION << 8 | kind), (2, self.slots as u64), (3, self.most as u64), (0, MAGIC)];
        said.map(|(word, value)| (self.first + word, value))
    }

    pub(super) fn id(&self) -> usize {
        self.first + 4
    }

    pub(super) fn tail(&self) -> usize {
        self.first + LINE
    }

    pub(super) fn head(&self) -> usize {
        self.first + 2 * LINE
    }

    pub(super) fn filled(&self) -> usize {
        self.offset + 3 * 64
    }

    pub(super) fn taken(&self) -> usize {
        self.offset + 4 * 64
    }

    pub(super) fn skipped(&self) -> usize {
        self.first + 5 * LINE
    }

    pub(super) fn states(&self) -> usize {
        self.first + STATES
    }

    fn messages(&self) -> usize {
        self.states() + self.slots.next_multiple_of(LINE)
    }

    pub(super) fn message(&self, slot: usize) -> usize {
        self.messages() + slot * self.stride()
    }

    pub(super) fn claim(&self, role: Role) -> u64 {
        // Higher than those of lives, which have 32 bits.
        ((role as u64 + 1) << 44) | (self.offset as u64 / 64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Maker,
    Consumer,
    Producer,
}
