//! The four kinds of attachment, behind one interface.

use indelible::{Bystanders, Heap, Object, ReadHeap, ReadObject, Result};
use std::ops::Range;

/// An attached object, or the heap in it.
pub(crate) enum Held {
    Writer(Box<Object>),
    Reader(ReadObject),
    Heap(Box<Heap>),
    ReadHeap(ReadHeap),
}

impl Held {
    pub(crate) fn base(&self) -> *const u8 {
        match self {
            Held::Writer(object) => object.as_ptr(),
            Held::Reader(object) => object.as_ptr(),
            Held::Heap(heap) => heap.base(),
            Held::ReadHeap(heap) => heap.object().as_ptr(),
        }
    }

    /// First byte, for Python code that may store anywhere in the object: its bytes are foreign
    /// from then on.
    pub(crate) fn lend(&mut self) -> *const u8 {
        match self {
            Held::Writer(object) => object.as_mut_ptr(),
            other => other.base(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Held::Writer(object) => object.len(),
            Held::Reader(object) => object.len(),
            Held::Heap(heap) => heap.size(),
            Held::ReadHeap(heap) => heap.object().len(),
        }
    }

    pub(crate) fn writable(&self) -> bool {
        matches!(self, Held::Writer(_) | Held::Heap(_))
    }

    /// See `Object::prefault`.
    pub(crate) fn prefault(&mut self, range: Range<usize>) -> Result<usize> {
        match self {
            Held::Writer(object) => object.prefault(range),
            Held::Reader(object) => object.prefault(range),
            Held::Heap(heap) => heap.object().prefault(range),
            Held::ReadHeap(heap) => heap.object().prefault(range),
        }
    }

    pub(crate) fn object(&mut self) -> Option<&Object> {
        match self {
            Held::Writer(object) => Some(object),
            Held::Heap(heap) => Some(heap.object()),
            _ => None,
        }
    }

    /// Whether a fork of the process has the memory.
    pub(crate) fn is_inherited(&self) -> bool {
        match self {
            Held::Reader(object) => object.is_inherited(),
            Held::ReadHeap(heap) => heap.object().is_inherited(),
            Held::Writer(_) | Held::Heap(_) => false,
        }
    }

    /// Goes to the newest psync of an object read beside a writer; returns whether it was newer.
    /// `None`: it cannot be mapped, or holds no heap any more.
    pub(crate) fn refresh(self) -> (Option<Held>, Result<bool>) {
        match self {
            Held::Reader(mut object) => {
                let newer = object.refresh();
                let kept = (!object.is_empty()).then_some(Held::Reader(object));
                (kept, newer)
            }
            Held::ReadHeap(heap) => {
                let mut object = heap.into_object();
                let newer = object.refresh();
                if object.is_empty() {
                    return (None, newer);
                }
                match ReadHeap::open(object) {
                    Ok(heap) => (Some(Held::ReadHeap(heap)), newer),
                    Err(error) => (None, newer.and(Err(error))),
                }
            }
            writer => (Some(writer), Ok(false)),
        }
    }

    /// The newest psync, mapped elsewhere, if this reads an older state beside a writer.
    pub(crate) fn newer(&self) -> Result<Option<ReadObject>> {
        match self {
            Held::Reader(object) => object.newer(),
            Held::Writer(_) | Held::Heap(_) | Held::ReadHeap(_) => Ok(None),
        }
    }

    /// Waits for the pool's table, which a detach and a refresh need.
    pub(crate) fn await_table(&mut self) -> Result<()> {
        let looked = match self {
            Held::Writer(object) => object.stat(),
            Held::Reader(object) => object.stat(),
            Held::Heap(heap) => heap.object().stat(),
            Held::ReadHeap(heap) => heap.object().stat(),
        };
        looked.map(drop)
    }

    /// Whether a detach would lose stores; `false` if unknown.
    pub(crate) fn is_unsynced(&mut self) -> bool {
        let unsynced = match self {
            Held::Writer(object) => object.is_unsynced(),
            Held::Heap(heap) => heap.is_unsynced(),
            Held::Reader(_) | Held::ReadHeap(_) => Ok(false),
        };
        unsynced.unwrap_or(false)
    }

    /// Makes all stores durable; does nothing on objects attached for reading.
    pub(crate) fn psync(&mut self) -> Result<()> {
        match self {
            Held::Writer(object) => object.psync(),
            Held::Heap(heap) => heap.psync(),
            Held::Reader(_) | Held::ReadHeap(_) => Ok(()),
        }
    }

    /// The same beside storing threads.
    pub(crate) fn psync_cut(&mut self, others: &mut dyn Bystanders) -> Result<()> {
        match self {
            Held::Writer(object) => object.psync_cut_beside(others),
            Held::Heap(heap) => heap.psync_cut_beside(others),
            Held::Reader(_) | Held::ReadHeap(_) => Ok(()),
        }
    }

    /// Undoes all stores since the last psync; does nothing on objects attached for reading.
    pub(crate) fn revert(&mut self) -> Result<()> {
        match self {
            Held::Writer(object) => object.revert(),
            Held::Heap(heap) => heap.revert(),
            Held::Reader(_) | Held::ReadHeap(_) => Ok(()),
        }
    }

    pub(crate) fn detach(self) -> Result<()> {
        match self {
            Held::Writer(object) => object.detach(),
            Held::Reader(object) => object.detach(),
            Held::Heap(heap) => heap.into_object().detach(),
            // It ends when dropped.
            Held::ReadHeap(_) => Ok(()),
        }
    }
}
