//! btree of order 8: up to seven entries and eight slots in a node. Entries move within and between
//! nodes.

use super::{Entry, Map, Space, node, set};
use std::marker::PhantomData;

const ORDER: usize = 8;
const MOST: usize = ORDER - 1;
const LEAST: usize = ORDER / 2 - 1;

#[repr(C)]
struct Node<E> {
    count: u64,
    items: [E; MOST],
    slots: [*mut Node<E>; ORDER],
}

pub struct BTree<E>(*mut *mut Node<E>, PhantomData<E>);

impl<E> Clone for BTree<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for BTree<E> {}

/// A step on a tree. All functions take nodes of the tree.
struct Step<'s, S, E>(&'s mut S, PhantomData<E>);

impl<S: Space, E: Entry<S>> Step<'_, S, E> {
    unsafe fn find(&mut self, at: *mut Node<E>, key: u64) -> (usize, bool) {
        // SAFETY: a node of the tree.
        unsafe {
            let count = (*at).count as usize;
            for index in 0..count {
                let here = E::key(&raw mut (*at).items[index], self.0);
                if here >= key {
                    return (index, here == key);
                }
            }
            (count, false)
        }
    }

    unsafe fn change(&mut self, at: *mut Node<E>) {
        self.0.change(at.cast(), size_of::<Node<E>>());
    }

    /// Moves entries by one place, with `slots` also the slots behind; both nodes may be one.
    unsafe fn shift(&mut self, at: *mut Node<E>, from: usize, to: usize, count: usize) {
        // SAFETY: within a node.
        unsafe {
            let items = (&raw mut (*at).items).cast::<E>();
            self.moved(items.add(from), items.add(to), count);
            let slots = (&raw mut (*at).slots).cast::<*mut Node<E>>();
            std::ptr::copy(slots.add(from + 1), slots.add(to + 1), count);
        }
    }

    #[inline]
    unsafe fn moved(&mut self, from: *mut E, to: *mut E, count: usize) {
        // SAFETY: places of entries, of which the first ones are not used any more.
        unsafe {
            std::ptr::copy(from, to, count);
            (0..count).for_each(|index| E::was_moved(to.add(index), self.0));
        }
    }

    unsafe fn split(&mut self, parent: *mut Node<E>, index: usize) {
        // SAFETY: nodes of the tree.
        unsafe {
            let left = (*parent).slots[index];
            let right = node::<S, Node<E>>(self.0);
            self.change(left);
            self.change(parent);
            for place in 0..LEAST {
                self.moved(&raw mut (*left).items[place + LEAST + 1], &raw mut (*right).items[place], 1);
            }
            for place in 0..=LEAST {
                (*right).slots[place] = (*left).slots[place + LEAST + 1];
            }
            ((*left).count, (*right).count) = (LEAST as u64, LEAST as u64);
            self.shift(parent, index, index + 1, (*parent).count as usize - index);
            self.moved(&raw mut (*left).items[LEAST], &raw mut (*parent).items[index], 1);
            (*parent).slots[index + 1] = right;
            (*parent).count += 1;
        }
    }

    unsafe fn insert(&mut self, root: *mut *mut Node<E>, key: u64, value: u64) {
        // SAFETY: nodes of the tree.
        unsafe {
            if (**root).count as usize == MOST {
                let above = node::<S, Node<E>>(self.0);
                (*above).slots[0] = *root;
                self.split(above, 0);
                set(root, above, self.0);
            }
            let mut at = *root;
            loop {
                let (mut index, _) = self.find(at, key);
                if (*at).slots[0].is_null() {
                    self.change(at);
                    self.shift(at, index, index + 1, (*at).count as usize - index);
                    (&raw mut (*at).items[index]).cast::<u8>().write_bytes(0, size_of::<E>());
                    E::put(&raw mut (*at).items[index], key, value, self.0);
                    (*at).count += 1;
                    return;
                }
                if (*(*at).slots[index]).count as usize == MOST {
                    self.split(at, index);
                    index += usize::from(key > E::key(&raw mut (*at).items[index], self.0));
                }
                at = (*at).slots[index];
            }
        }
    }

    unsafe fn join(&mut self, at: *mut Node<E>, index: usize) {
        // SAFETY: nodes of the tree.
        unsafe {
            let (left, right) = ((*at).slots[index], (*at).slots[index + 1]);
            self.change(left);
            self.change(at);
            let (own, more) = ((*left).count as usize, (*right).count as usize);
            self.moved(&raw mut (*at).items[index], &raw mut (*left).items[own], 1);
            for place in 0..more {
                self.moved(&raw mut (*right).items[place], &raw mut (*left).items[own + 1 + place], 1);
            }
            for place in 0..=more {
                (*left).slots[own + 1 + place] = (*right).slots[place];
            }
            (*left).count += 1 + more as u64;
            self.shift(at, index + 1, index, (*at).count as usize - index - 1);
            (*at).count -= 1;
            self.0.free(right.cast());
        }
    }

    /// Gives a slot one entry more than it needs; returns the slot that has its entries then.
    unsafe fn fill(&mut self, at: *mut Node<E>, index: usize) -> usize {
        // SAFETY: nodes of the tree.
        unsafe {
            let child = (*at).slots[index];
            if (*child).count as usize > LEAST {
                return index;
            }
            let many = |index: usize| (*(*at).slots[index]).count as usize > LEAST;
            if index > 0 && many(index - 1) {
                let left = (*at).slots[index - 1];
                [left, child, at].into_iter().for_each(|node| self.change(node));
                let (last, count) = ((*left).count as usize - 1, (*child).count as usize);
                (*child).slots.copy_within(0..=count, 1);
                let items = (&raw mut (*child).items).cast::<E>();
                self.moved(items, items.add(1), count);
                self.moved(&raw mut (*at).items[index - 1], items, 1);
                self.moved(&raw mut (*left).items[last], &raw mut (*at).items[index - 1], 1);
                (*child).slots[0] = (*left).slots[last + 1];
                (*left).count -= 1;
                (*child).count += 1;
                return index;
            }
            if index < (*at).count as usize && many(index + 1) {
                let right = (*at).slots[index + 1];
                [right, child, at].into_iter().for_each(|node| self.change(node));
                let (own, count) = ((*child).count as usize, (*right).count as usize);
                let items = (&raw mut (*right).items).cast::<E>();
                self.moved(&raw mut (*at).items[index], &raw mut (*child).items[own], 1);
                self.moved(items, &raw mut (*at).items[index], 1);
                (*child).slots[own + 1] = (*right).slots[0];
                self.moved(items.add(1), items, count - 1);
                (*right).slots.copy_within(1..=count, 0);
                (*right).count -= 1;
                (*child).count += 1;
                return index;
            }
            let first = if index == (*at).count as usize { index - 1 } else { index };
            self.join(at, first);
            first
        }
    }

    unsafe fn take(&mut self, mut at: *mut Node<E>, wanted: Wanted, to: *mut E) -> bool {
        // SAFETY: nodes of the tree.
        unsafe {
            loop {
                let count = (*at).count as usize;
                let is_leaf = (*at).slots[0].is_null();
                let (index, here) = match wanted {
                    Wanted::Key(key) => self.find(at, key),
                    Wanted::First => (0, is_leaf),
                    Wanted::Last => (count - usize::from(is_leaf), is_leaf),
                };
                if is_leaf {
                    if here {
                        self.change(at);
                        self.moved(&raw mut (*at).items[index], to, 1);
                        self.shift(at, index + 1, index, count - index - 1);
                        (*at).count -= 1;
                    }
                    return here;
                }
                if !here {
                    let next = self.fill(at, index);
                    at = (*at).slots[next];
                    continue;
                }
                let (left, right) = ((*at).slots[index], (*at).slots[index + 1]);
                let item = &raw mut (*at).items[index];
                if (*left).count as usize > LEAST || (*right).count as usize > LEAST {
                    self.change(at);
                    self.moved(item, to, 1);
                    return match (*left).count as usize > LEAST {
                        true => self.take(left, Wanted::Last, item),
                        false => self.take(right, Wanted::First, item),
                    };
                }
                self.join(at, index);
                at = left;
            }
        }
    }

    unsafe fn walk(&mut self, at: *mut Node<E>, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: nodes of the tree.
        unsafe {
            for index in 0..(*at).count as usize {
                let item = &raw mut (*at).items[index];
                each(E::key(item, self.0), E::value(item));
            }
            for index in 0..=(*at).count as usize {
                if !(*at).slots[index].is_null() {
                    self.walk((*at).slots[index], each);
                }
            }
        }
    }

    unsafe fn convert<F: Entry<S>>(&mut self, at: *mut Node<E>) -> *mut Node<F> {
        // SAFETY: nodes of the tree.
        unsafe {
            let new = node::<S, Node<F>>(self.0);
            (*new).count = (*at).count;
            for index in 0..(*at).count as usize {
                let item = &raw mut (*at).items[index];
                let key = E::key(item, self.0);
                F::put(&raw mut (*new).items[index], key, E::value(item), self.0);
                E::discard(item, self.0);
            }
            for index in 0..=(*at).count as usize {
                if !(*at).slots[index].is_null() {
                    (*new).slots[index] = self.convert((*at).slots[index]);
                }
            }
            self.0.free(at.cast());
            new
        }
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Key(u64),
    First,
    Last,
}

impl<S: Space, E: Entry<S>> Map<S, E> for BTree<E> {
    type Of<F: Entry<S>> = BTree<F>;
    const NAME: &'static str = "btree(8)";

    fn new(space: &mut S) -> Self {
        // SAFETY: new blocks.
        unsafe {
            let root = node::<S, *mut Node<E>>(space);
            root.write(node(space));
            BTree(root, PhantomData)
        }
    }

    unsafe fn insert(self, key: u64, value: u64, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { Step(space, PhantomData).insert(self.0, key, value) }
    }

    unsafe fn remove(self, key: u64, space: &mut S) -> bool {
        let mut taken = std::mem::MaybeUninit::<E>::uninit();
        // SAFETY: the caller's promise.
        unsafe {
            let mut step = Step(space, PhantomData);
            let found = step.take(*self.0, Wanted::Key(key), taken.as_mut_ptr());
            let first = *self.0;
            if (*first).count == 0 && !(*first).slots[0].is_null() {
                set(self.0, (*first).slots[0], step.0);
                step.0.free(first.cast());
            }
            if found {
                E::discard(taken.as_mut_ptr(), step.0);
            }
            found
        }
    }

    unsafe fn has(self, key: u64, space: &mut S) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let (mut at, mut step) = (*self.0, Step::<S, E>(space, PhantomData));
            loop {
                match step.find(at, key) {
                    (_, true) => return true,
                    (_, false) if (*at).slots[0].is_null() => return false,
                    (index, false) => at = (*at).slots[index],
                }
            }
        }
    }

    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: the caller's promise.
        unsafe { Step(space, PhantomData::<E>).walk(*self.0, each) }
    }

    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> BTree<F> {
        // SAFETY: nodes of the tree.
        unsafe {
            let new = Step(space, PhantomData::<E>).convert::<F>(*self.0);
            let root = node::<S, *mut Node<F>>(space);
            root.write(new);
            space.free(self.0.cast());
            BTree(root, PhantomData)
        }
    }

    unsafe fn recast<F: Entry<S>>(self) -> BTree<F> {
        BTree(self.0.cast(), PhantomData)
    }
}
