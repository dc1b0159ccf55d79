//! hashmap_tx: chained buckets, ten at first, doubled at five entries per bucket.

use super::{Entry, Map, Space, node, set};
use std::marker::PhantomData;

const BUCKETS: u64 = 10;
const LONGEST: u64 = 5;

#[repr(C)]
struct Head<E> {
    buckets: *mut *mut Node<E>,
    count: u64,
    entries: u64,
}

#[repr(C)]
struct Node<E> {
    entry: E,
    next: *mut Node<E>,
}

pub struct HashMap<E>(*mut Head<E>, PhantomData<E>);

impl<E> Clone for HashMap<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for HashMap<E> {}

fn bucket(key: u64, count: u64) -> usize {
    ((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % count) as usize
}

impl<E> HashMap<E> {
    unsafe fn find<S: Space>(self, key: u64, space: &mut S) -> *mut *mut Node<E>
    where
        E: Entry<S>,
    {
        // SAFETY: nodes of the map.
        unsafe {
            let mut link = (*self.0).buckets.add(bucket(key, (*self.0).count));
            while !(*link).is_null() && E::key(&raw mut (**link).entry, space) != key {
                link = &raw mut (**link).next;
            }
            link
        }
    }

    unsafe fn rebuild<S: Space>(self, space: &mut S)
    where
        E: Entry<S>,
    {
        // SAFETY: nodes of the map.
        unsafe {
            let (old, old_count) = ((*self.0).buckets, (*self.0).count);
            let count = old_count * 2;
            let buckets = space.alloc(count as usize * 8).cast::<*mut Node<E>>();
            for index in 0..old_count as usize {
                let mut node = *old.add(index);
                while !node.is_null() {
                    let next = (*node).next;
                    let key = E::key(&raw mut (*node).entry, space);
                    let first = buckets.add(bucket(key, count));
                    set(&raw mut (*node).next, *first, space);
                    *first = node;
                    node = next;
                }
            }
            set(&raw mut (*self.0).buckets, buckets, space);
            set(&raw mut (*self.0).count, count, space);
            space.free(old.cast());
        }
    }
}

impl<S: Space, E: Entry<S>> Map<S, E> for HashMap<E> {
    type Of<F: Entry<S>> = HashMap<F>;
    const NAME: &'static str = "hashmap(10)";

    fn new(space: &mut S) -> Self {
        // SAFETY: new blocks.
        unsafe {
            let head = node::<S, Head<E>>(space);
            let buckets = space.alloc(BUCKETS as usize * 8).cast();
            head.write(Head { buckets, count: BUCKETS, entries: 0 });
            HashMap(head, PhantomData)
        }
    }

    unsafe fn insert(self, key: u64, value: u64, space: &mut S) {
        // SAFETY: nodes of the map.
        unsafe {
            let new = node::<S, Node<E>>(space);
            E::put(&raw mut (*new).entry, key, value, space);
            let first = (*self.0).buckets.add(bucket(key, (*self.0).count));
            (*new).next = *first;
            set(first, new, space);
            set(&raw mut (*self.0).entries, (*self.0).entries + 1, space);
            if (*self.0).entries > LONGEST * (*self.0).count {
                self.rebuild(space);
            }
        }
    }

    unsafe fn remove(self, key: u64, space: &mut S) -> bool {
        // SAFETY: nodes of the map.
        unsafe {
            let link = self.find(key, space);
            let node = *link;
            if node.is_null() {
                return false;
            }
            set(link, (*node).next, space);
            set(&raw mut (*self.0).entries, (*self.0).entries - 1, space);
            E::discard(&raw mut (*node).entry, space);
            space.free(node.cast());
            true
        }
    }

    unsafe fn has(self, key: u64, space: &mut S) -> bool {
        // SAFETY: nodes of the map.
        unsafe { !(*self.find(key, space)).is_null() }
    }

    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: nodes of the map.
        unsafe {
            for index in 0..(*self.0).count as usize {
                let mut node = *(*self.0).buckets.add(index);
                while !node.is_null() {
                    each(E::key(&raw mut (*node).entry, space), E::value(&raw mut (*node).entry));
                    node = (*node).next;
                }
            }
        }
    }

    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> HashMap<F> {
        // SAFETY: nodes of the map, each of which is used once more.
        unsafe {
            let count = (*self.0).count;
            let head = node::<S, Head<F>>(space);
            let buckets = space.alloc(count as usize * 8).cast::<*mut Node<F>>();
            head.write(Head { buckets, count, entries: (*self.0).entries });
            for index in 0..count as usize {
                let (mut old, mut last) = (*(*self.0).buckets.add(index), buckets.add(index));
                while !old.is_null() {
                    let new = node::<S, Node<F>>(space);
                    let entry = &raw mut (*old).entry;
                    F::put(&raw mut (*new).entry, E::key(entry, space), E::value(entry), space);
                    *last = new;
                    last = &raw mut (*new).next;
                    let next = (*old).next;
                    E::discard(entry, space);
                    space.free(old.cast());
                    old = next;
                }
            }
            space.free((*self.0).buckets.cast());
            space.free(self.0.cast());
            HashMap(head, PhantomData)
        }
    }

    unsafe fn recast<F: Entry<S>>(self) -> HashMap<F> {
        HashMap(self.0.cast(), PhantomData)
    }
}
