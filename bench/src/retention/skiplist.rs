//! skiplist: four levels, each with half the nodes of the one below.

use super::{Entry, Map, Space, node, set};
use std::marker::PhantomData;

const LEVELS: usize = 4;

#[repr(C)]
struct Node<E> {
    entry: E,
    next: [*mut Node<E>; LEVELS],
}

pub struct SkipList<E>(*mut Node<E>, PhantomData<E>);

impl<E> Clone for SkipList<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for SkipList<E> {}

fn levels(key: u64) -> usize {
    let bits = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((bits.trailing_ones() as usize) + 1).min(LEVELS)
}

impl<E> SkipList<E> {
    unsafe fn path<S: Space>(self, key: u64, space: &mut S) -> [*mut Node<E>; LEVELS]
    where
        E: Entry<S>,
    {
        let (mut at, mut path) = (self.0, [self.0; LEVELS]);
        for level in (0..LEVELS).rev() {
            // SAFETY: nodes of the list.
            unsafe {
                let mut next = (*at).next[level];
                while !next.is_null() && E::key(&raw mut (*next).entry, space) < key {
                    at = next;
                    next = (*at).next[level];
                }
            }
            path[level] = at;
        }
        path
    }

    unsafe fn behind<S: Space>(path: &[*mut Node<E>; LEVELS], key: u64, space: &mut S) -> Option<*mut Node<E>>
    where
        E: Entry<S>,
    {
        // SAFETY: nodes of the list.
        unsafe {
            let next = (*path[0]).next[0];
            (!next.is_null() && E::key(&raw mut (*next).entry, space) == key).then_some(next)
        }
    }
}

impl<S: Space, E: Entry<S>> Map<S, E> for SkipList<E> {
    type Of<F: Entry<S>> = SkipList<F>;
    const NAME: &'static str = "skiplist(4)";

    fn new(space: &mut S) -> Self {
        // SAFETY: a new block.
        SkipList(unsafe { node(space) }, PhantomData)
    }

    unsafe fn insert(self, key: u64, value: u64, space: &mut S) {
        // SAFETY: nodes of the list.
        unsafe {
            let path = self.path(key, space);
            let new = node::<S, Node<E>>(space);
            E::put(&raw mut (*new).entry, key, value, space);
            for (level, before) in path.iter().enumerate().take(levels(key)) {
                (*new).next[level] = (**before).next[level];
                set(&raw mut (**before).next[level], new, space);
            }
        }
    }

    unsafe fn remove(self, key: u64, space: &mut S) -> bool {
        // SAFETY: nodes of the list.
        unsafe {
            let path = self.path(key, space);
            let Some(gone) = Self::behind(&path, key, space) else { return false };
            for (level, before) in path.iter().enumerate() {
                if (**before).next[level] == gone {
                    set(&raw mut (**before).next[level], (*gone).next[level], space);
                }
            }
            E::discard(&raw mut (*gone).entry, space);
            space.free(gone.cast());
            true
        }
    }

    unsafe fn has(self, key: u64, space: &mut S) -> bool {
        // SAFETY: nodes of the list.
        unsafe {
            let path = self.path(key, space);
            Self::behind(&path, key, space).is_some()
        }
    }

    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: nodes of the list.
        unsafe {
            let mut at = (*self.0).next[0];
            while !at.is_null() {
                each(E::key(&raw mut (*at).entry, space), E::value(&raw mut (*at).entry));
                at = (*at).next[0];
            }
        }
    }

    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> SkipList<F> {
        // SAFETY: nodes of the list, each of which is used once more.
        unsafe {
            let head = node::<S, Node<F>>(space);
            let (mut last, mut next) = ([head; LEVELS], (*self.0).next);
            while !next[0].is_null() {
                let old = next[0];
                let new = node::<S, Node<F>>(space);
                let entry = &raw mut (*old).entry;
                F::put(&raw mut (*new).entry, E::key(entry, space), E::value(entry), space);
                for level in 0..LEVELS {
                    if next[level] == old {
                        (*last[level]).next[level] = new;
                        (last[level], next[level]) = (new, (*old).next[level]);
                    }
                }
                E::discard(entry, space);
                space.free(old.cast());
            }
            space.free(self.0.cast());
            SkipList(head, PhantomData)
        }
    }

    unsafe fn recast<F: Entry<S>>(self) -> SkipList<F> {
        SkipList(self.0.cast(), PhantomData)
    }
}
