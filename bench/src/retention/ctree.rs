//! ctree: a crit-bit tree. A node has the bit in which the keys below differ, and two slots with
//! entries or nodes.

use super::{Entry, Map, Space, node, set};
use std::marker::PhantomData;

#[repr(C)]
struct Slot<E> {
    entry: E,
    inner: *mut Node<E>,
    full: u64,
}

#[repr(C)]
struct Node<E> {
    bit: u32,
    slots: [Slot<E>; 2],
}

pub struct CritBit<E>(*mut Slot<E>, PhantomData<E>);

impl<E> Clone for CritBit<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for CritBit<E> {}

impl<E> CritBit<E> {
    unsafe fn leaf(self, key: u64) -> (*mut Slot<E>, *mut Slot<E>) {
        let (mut above, mut slot) = (std::ptr::null_mut(), self.0);
        // SAFETY: nodes of the tree.
        unsafe {
            while !(*slot).inner.is_null() {
                above = slot;
                let inner = (*slot).inner;
                slot = &raw mut (*inner).slots[(key >> (*inner).bit & 1) as usize];
            }
        }
        (slot, above)
    }

    unsafe fn walk<S: Space>(slot: *mut Slot<E>, space: &mut S, each: &mut dyn FnMut(u64, u64))
    where
        E: Entry<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            if (*slot).inner.is_null() {
                if (*slot).full == 1 {
                    each(E::key(&raw mut (*slot).entry, space), E::value(&raw mut (*slot).entry));
                }
                return;
            }
            for side in 0..2 {
                Self::walk(&raw mut (*(*slot).inner).slots[side], space, each);
            }
        }
    }

    unsafe fn converted<S: Space, F: Entry<S>>(old: *mut Slot<E>, new: *mut Slot<F>, space: &mut S)
    where
        E: Entry<S>,
    {
        // SAFETY: nodes of the tree, each of which is used once more.
        unsafe {
            let inner = (*old).inner;
            if inner.is_null() {
                if (*old).full == 1 {
                    let entry = &raw mut (*old).entry;
                    F::put(&raw mut (*new).entry, E::key(entry, space), E::value(entry), space);
                    (*new).full = 1;
                    E::discard(entry, space);
                }
                return;
            }
            let made = node::<S, Node<F>>(space);
            (*made).bit = (*inner).bit;
            for side in 0..2 {
                Self::converted(&raw mut (*inner).slots[side], &raw mut (*made).slots[side], space);
            }
            (*new).inner = made;
            space.free(inner.cast());
        }
    }
}

unsafe fn moved<S: Space, E: Entry<S>>(from: *mut Slot<E>, to: *mut Slot<E>, space: &mut S) {
    space.change(to.cast(), size_of::<Slot<E>>());
    // SAFETY: slots, of which the first one is not used any more.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, 1);
        if (*to).full == 1 {
            E::was_moved(&raw mut (*to).entry, space);
        }
    }
}

impl<S: Space, E: Entry<S>> Map<S, E> for CritBit<E> {
    type Of<F: Entry<S>> = CritBit<F>;
    const NAME: &'static str = "ctree";

    fn new(space: &mut S) -> Self {
        // SAFETY: a new block.
        CritBit(unsafe { node(space) }, PhantomData)
    }

    unsafe fn insert(self, key: u64, value: u64, space: &mut S) {
        // SAFETY: nodes of the tree.
        unsafe {
            let (near, _) = self.leaf(key);
            if (*near).full == 0 {
                space.change(near.cast(), size_of::<Slot<E>>());
                E::put(&raw mut (*near).entry, key, value, space);
                (*near).full = 1;
                return;
            }
            let other = E::key(&raw mut (*near).entry, space);
            let bit = 63 - (key ^ other).leading_zeros();
            let mut slot = self.0;
            while !(*slot).inner.is_null() && (*(*slot).inner).bit > bit {
                let inner = (*slot).inner;
                slot = &raw mut (*inner).slots[(key >> (*inner).bit & 1) as usize];
            }
            let new = node::<S, Node<E>>(space);
            let side = (key >> bit & 1) as usize;
            (*new).bit = bit;
            let own = &raw mut (*new).slots[side];
            E::put(&raw mut (*own).entry, key, value, space);
            (*own).full = 1;
            std::ptr::copy_nonoverlapping(slot, &raw mut (*new).slots[1 - side], 1);
            set(&raw mut (*slot).inner, new, space);
        }
    }

    unsafe fn remove(self, key: u64, space: &mut S) -> bool {
        // SAFETY: nodes of the tree.
        unsafe {
            let (leaf, above) = self.leaf(key);
            if (*leaf).full == 0 || E::key(&raw mut (*leaf).entry, space) != key {
                return false;
            }
            E::discard(&raw mut (*leaf).entry, space);
            if above.is_null() {
                set(&raw mut (*leaf).full, 0, space);
                return true;
            }
            let gone = (*above).inner;
            let side = usize::from(leaf == &raw mut (*gone).slots[0]);
            moved(&raw mut (*gone).slots[side], above, space);
            space.free(gone.cast());
            true
        }
    }

    unsafe fn has(self, key: u64, space: &mut S) -> bool {
        // SAFETY: nodes of the tree.
        unsafe {
            let (leaf, _) = self.leaf(key);
            (*leaf).full == 1 && E::key(&raw mut (*leaf).entry, space) == key
        }
    }

    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: the caller's promise.
        unsafe { Self::walk(self.0, space, each) }
    }

    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> CritBit<F> {
        // SAFETY: nodes of the tree.
        unsafe {
            let first = node::<S, Slot<F>>(space);
            Self::converted(self.0, first, space);
            space.free(self.0.cast());
            CritBit(first, PhantomData)
        }
    }

    unsafe fn recast<F: Entry<S>>(self) -> CritBit<F> {
        CritBit(self.0.cast(), PhantomData)
    }
}
