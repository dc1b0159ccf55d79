//! rbtree: a red-black tree with parent links and one black node for all leaves.

use super::{Entry, Map, Space, node, set};
use std::marker::PhantomData;

type Link<E> = *mut Node<E>;

#[repr(C)]
struct Node<E> {
    entry: E,
    red: u64,
    parent: Link<E>,
    slots: [Link<E>; 2],
}

#[repr(C)]
struct Head<E> {
    leaf: Link<E>,
    /// Without an entry; the tree is its first slot.
    root: Link<E>,
}

pub struct RedBlack<E>(*mut Head<E>, PhantomData<E>);

impl<E> Clone for RedBlack<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for RedBlack<E> {}

struct Step<'s, S, E> {
    head: *mut Head<E>,
    space: &'s mut S,
}

impl<S: Space, E: Entry<S>> Step<'_, S, E> {
    unsafe fn leaf(&self) -> Link<E> {
        // SAFETY: of the map.
        unsafe { (*self.head).leaf }
    }

    unsafe fn root(&self) -> Link<E> {
        // SAFETY: of the map.
        unsafe { (*self.head).root }
    }

    unsafe fn side(at: Link<E>) -> usize {
        // SAFETY: nodes of the tree.
        unsafe { usize::from((*(*at).parent).slots[1] == at) }
    }

    unsafe fn paint(&mut self, at: Link<E>, red: u64) {
        // SAFETY: nodes of the tree.
        unsafe {
            if (*at).red != red {
                set(&raw mut (*at).red, red, self.space);
            }
        }
    }

    unsafe fn attach(&mut self, parent: Link<E>, side: usize, child: Link<E>) {
        // SAFETY: nodes of the tree.
        unsafe {
            set(&raw mut (*parent).slots[side], child, self.space);
            set(&raw mut (*child).parent, parent, self.space);
        }
    }

    unsafe fn rotate(&mut self, at: Link<E>, side: usize) {
        // SAFETY: nodes of the tree.
        unsafe {
            let (up, parent, own) = ((*at).slots[1 - side], (*at).parent, Self::side(at));
            let inner = (*up).slots[side];
            set(&raw mut (*at).slots[1 - side], inner, self.space);
            if inner != self.leaf() {
                set(&raw mut (*inner).parent, at, self.space);
            }
            self.attach(parent, own, up);
            self.attach(up, side, at);
        }
    }

    unsafe fn find(&mut self, key: u64) -> Link<E> {
        // SAFETY: nodes of the tree.
        unsafe {
            let (leaf, mut at) = (self.leaf(), (*self.root()).slots[0]);
            while at != leaf {
                let here = E::key(&raw mut (*at).entry, self.space);
                if here == key {
                    break;
                }
                at = (*at).slots[usize::from(key > here)];
            }
            at
        }
    }

    unsafe fn insert(&mut self, key: u64, value: u64) {
        // SAFETY: nodes of the tree.
        unsafe {
            let leaf = self.leaf();
            let new = node::<S, Node<E>>(self.space);
            E::put(&raw mut (*new).entry, key, value, self.space);
            ((*new).red, (*new).slots) = (1, [leaf; 2]);
            let (mut parent, mut side) = (self.root(), 0);
            while (*parent).slots[side] != leaf {
                parent = (*parent).slots[side];
                side = usize::from(key > E::key(&raw mut (*parent).entry, self.space));
            }
            self.attach(parent, side, new);
            let mut at = new;
            while (*(*at).parent).red == 1 {
                let parent = (*at).parent;
                let (side, above) = (Self::side(parent), (*parent).parent);
                let uncle = (*above).slots[1 - side];
                if (*uncle).red == 1 {
                    self.paint(parent, 0);
                    self.paint(uncle, 0);
                    self.paint(above, 1);
                    at = above;
                    continue;
                }
                if Self::side(at) != side {
                    at = parent;
                    self.rotate(at, side);
                }
                let parent = (*at).parent;
                self.paint(parent, 0);
                self.paint((*parent).parent, 1);
                self.rotate((*parent).parent, 1 - side);
            }
            let first = (*self.root()).slots[0];
            self.paint(first, 0);
        }
    }

    unsafe fn remove(&mut self, gone: Link<E>) {
        // SAFETY: nodes of the tree.
        unsafe {
            let leaf = self.leaf();
            // The node that leaves its place: this one, or the next, which replaces it.
            let mut out = gone;
            if (*gone).slots[0] != leaf && (*gone).slots[1] != leaf {
                out = (*gone).slots[1];
                while (*out).slots[0] != leaf {
                    out = (*out).slots[0];
                }
            }
            let child = (*out).slots[usize::from((*out).slots[0] == leaf)];
            let (parent, side, black) = ((*out).parent, Self::side(out), (*out).red == 0);
            self.attach(parent, side, child);
            if black {
                self.repair(child);
            }
            if out != gone {
                let (parent, side, red) = ((*gone).parent, Self::side(gone), (*gone).red);
                for side in 0..2 {
                    let slot = (*gone).slots[side];
                    set(&raw mut (*out).slots[side], slot, self.space);
                    if slot != leaf {
                        set(&raw mut (*slot).parent, out, self.space);
                    }
                }
                self.attach(parent, side, out);
                self.paint(out, red);
            }
            E::discard(&raw mut (*gone).entry, self.space);
            self.space.free(gone.cast());
        }
    }

    unsafe fn repair(&mut self, mut at: Link<E>) {
        // SAFETY: nodes of the tree.
        unsafe {
            while (*at).red == 0 && (*at).parent != self.root() {
                let (parent, side) = ((*at).parent, Self::side(at));
                let mut other = (*parent).slots[1 - side];
                if (*other).red == 1 {
                    self.paint(other, 0);
                    self.paint(parent, 1);
                    self.rotate(parent, side);
                    other = (*parent).slots[1 - side];
                }
                if (*(*other).slots[0]).red == 0 && (*(*other).slots[1]).red == 0 {
                    self.paint(other, 1);
                    at = parent;
                    continue;
                }
                if (*(*other).slots[1 - side]).red == 0 {
                    self.paint((*other).slots[side], 0);
                    self.paint(other, 1);
                    self.rotate(other, 1 - side);
                    other = (*parent).slots[1 - side];
                }
                self.paint(other, (*parent).red);
                self.paint(parent, 0);
                self.paint((*other).slots[1 - side], 0);
                self.rotate(parent, side);
                break;
            }
            self.paint(at, 0);
        }
    }

    unsafe fn walk(&mut self, at: Link<E>, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: nodes of the tree.
        unsafe {
            if at != self.leaf() {
                each(E::key(&raw mut (*at).entry, self.space), E::value(&raw mut (*at).entry));
                self.walk((*at).slots[0], each);
                self.walk((*at).slots[1], each);
            }
        }
    }

    unsafe fn convert<F: Entry<S>>(&mut self, at: Link<E>, parent: Link<F>, leaf: Link<F>) -> Link<F> {
        // SAFETY: nodes of the tree.
        unsafe {
            if at == self.leaf() {
                return leaf;
            }
            let (new, entry) = (node::<S, Node<F>>(self.space), &raw mut (*at).entry);
            let key = E::key(entry, self.space);
            F::put(&raw mut (*new).entry, key, E::value(entry), self.space);
            ((*new).red, (*new).parent) = ((*at).red, parent);
            for side in 0..2 {
                (*new).slots[side] = self.convert((*at).slots[side], new, leaf);
            }
            E::discard(entry, self.space);
            self.space.free(at.cast());
            new
        }
    }
}

unsafe fn empty<S: Space, E>(space: &mut S) -> *mut Head<E> {
    // SAFETY: new blocks.
    unsafe {
        let (head, leaf, root) =
            (node::<S, Head<E>>(space), node::<S, Node<E>>(space), node::<S, Node<E>>(space));
        (*leaf).slots = [leaf; 2];
        ((*root).slots, (*root).parent) = ([leaf; 2], leaf);
        (*leaf).parent = root;
        head.write(Head { leaf, root });
        head
    }
}

impl<S: Space, E: Entry<S>> Map<S, E> for RedBlack<E> {
    type Of<F: Entry<S>> = RedBlack<F>;
    const NAME: &'static str = "rbtree";

    fn new(space: &mut S) -> Self {
        // SAFETY: new blocks.
        RedBlack(unsafe { empty(space) }, PhantomData)
    }

    unsafe fn insert(self, key: u64, value: u64, space: &mut S) {
        // SAFETY: the caller's promise.
        unsafe { Step { head: self.0, space }.insert(key, value) }
    }

    unsafe fn remove(self, key: u64, space: &mut S) -> bool {
        let mut step = Step { head: self.0, space };
        // SAFETY: the caller's promise.
        unsafe {
            let found = step.find(key);
            if found == step.leaf() {
                return false;
            }
            step.remove(found);
            true
        }
    }

    unsafe fn has(self, key: u64, space: &mut S) -> bool {
        let mut step = Step { head: self.0, space };
        // SAFETY: the caller's promise.
        unsafe { step.find(key) != step.leaf() }
    }

    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64)) {
        // SAFETY: the caller's promise.
        unsafe { Step { head: self.0, space }.walk((*(*self.0).root).slots[0], each) }
    }

    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> RedBlack<F> {
        // SAFETY: nodes of the tree; those that are not of entries are freed at the end.
        unsafe {
            let new = empty::<S, F>(space);
            let mut step = Step { head: self.0, space };
            let (root, leaf) = ((*new).root, (*new).leaf);
            (*root).slots[0] = step.convert((*step.root()).slots[0], root, leaf);
            for block in [(*self.0).root, (*self.0).leaf] {
                step.space.free(block.cast());
            }
            step.space.free(self.0.cast());
            RedBlack(new, PhantomData)
        }
    }

    unsafe fn recast<F: Entry<S>>(self) -> RedBlack<F> {
        RedBlack(self.0.cast(), PhantomData)
    }
}
