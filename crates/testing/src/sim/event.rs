use std::fmt;
use std::sync::Arc;

#[derive(Clone)]
pub struct Event {
    pub kind: EventKind,
    pub holder: u64,
    pub(super) extents: Vec<Extent>,
}

/// Kind of event. Events are numbered from 0; a number in a variant is that of an earlier event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Write,
    Stream,
    WriteDurable,
    Zero,
    Discard,
    Persisted {
        write: u64,
        offset: u64,
        len: u64,
    },
    PersistFailed {
        offset: u64,
        len: u64,
    },
    Barrier {
        /// Writes with a smaller number are covered.
        before: u64,
    },
    BarrierFailed,
    WritebackFailed {
        offset: u64,
        len: u64,
    },
    /// Pages that are clean but lost were evicted, and read again.
    Evicted,
    Extended(u64),
    Damage,
    Mark(u64),
}

impl Event {
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.extents.iter().map(|extent| (extent.offset, extent.len()))
    }

    /// Whether a cut after this event may leave new images, or is judged differently.
    pub(super) fn is_point(&self) -> bool {
        !matches!(
            self.kind,
            EventKind::BarrierFailed | EventKind::PersistFailed { .. } | EventKind::WritebackFailed { .. }
        )
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {}", self.kind, self.holder)?;
        for (offset, len) in self.ranges() {
            write!(f, " {offset:#x}+{len:#x}")?;
        }
        Ok(())
    }
}

#[derive(Clone)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) fill: Fill,
}

#[derive(Clone)]
pub(super) enum Fill {
    Bytes(Arc<[u8]>),
    Zeros(u64),
}

impl Extent {
    pub(super) fn bytes(offset: u64, bytes: &[u8]) -> Self {
        Self { offset, fill: Fill::Bytes(bytes.into()) }
    }

    pub(super) fn zeros(offset: u64, len: u64) -> Self {
        Self { offset, fill: Fill::Zeros(len) }
    }

    pub(super) fn len(&self) -> u64 {
        match &self.fill {
            Fill::Bytes(bytes) => bytes.len() as u64,
            Fill::Zeros(len) => *len,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.offset + self.len()
    }
}
