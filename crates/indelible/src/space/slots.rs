//! Values by number, at stable addresses: any thread adds them, and reads take no lock.

use std::sync::OnceLock;

/// Enough for most objects. Each further piece has twice as many.
pub(super) const NEAR: usize = 16;
pub(super) const PIECES: usize = 20;

pub(super) struct Slots<T> {
    near: Box<[OnceLock<T>; NEAR]>,
    pieces: [OnceLock<Box<[OnceLock<T>]>>; PIECES],
}

#[inline]
pub(super) fn place(index: usize) -> (usize, usize) {
    let piece = (index.ilog2() - NEAR.ilog2()) as usize;
    (piece, index - (NEAR << piece))
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Slots {
            near: Box::new([const { OnceLock::new() }; NEAR]),
            pieces: [const { OnceLock::new() }; PIECES],
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match self.near.get(index) {
            Some(slot) => slot.get(),
            None => self.get_far(index),
        }
    }

    fn get_far(&self, index: usize) -> Option<&T> {
        let (piece, slot) = place(index);
        self.pieces.get(piece)?.get()?.get(slot)?.get()
    }

    pub(super) fn set(&self, index: usize, value: T) -> Option<&T> {
        if let Some(slot) = self.near.get(index) {
            return Some(slot.get_or_init(|| value));
        }
        let (piece, slot) = place(index);
        let slots =
            self.pieces.get(piece)?.get_or_init(|| (0..NEAR << piece).map(|_| OnceLock::new()).collect());
        Some(slots[slot].get_or_init(|| value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let others = self.pieces.iter().filter_map(|piece| piece.get()).flatten();
        self.near.iter().chain(others).filter_map(|slot| slot.get())
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = T> {
        let others = self.pieces.into_iter().filter_map(OnceLock::into_inner).flatten();
        self.near.into_iter().chain(others).filter_map(OnceLock::into_inner)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index < NEAR {
            return self.near[index].get_mut();
        }
        let (piece, slot) = place(index);
        self.pieces.get_mut(piece)?.get_mut()?.get_mut(slot)?.get_mut()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let others = self.pieces.iter_mut().filter_map(|piece| piece.get_mut()).flatten();
        self.near.iter_mut().chain(others).filter_map(|slot| slot.get_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn values_are_found_by_their_numbers() {
        let mut slots = Slots::new();
        for index in [0, 15, 16, 31, 32, 47, 48, 63, 64, 100_000, (1 << 24) - 1] {
            assert!(slots.get(index).is_none());
            assert_eq!(slots.set(index, index), Some(&index));
            assert_eq!(slots.set(index, 7), Some(&index), "the first counts");
        }
        assert_eq!(slots.iter().count(), 11);
        *slots.get_mut(47).unwrap() = 1;
        assert_eq!((slots.get(47), slots.get(46)), (Some(&1), None));
        assert_eq!(slots.into_values().count(), 11);
        assert!(Slots::<u8>::new().set(1 << 60, 0).is_none());
    }
}
