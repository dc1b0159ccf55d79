//! The table of other objects in a heap: the objects that far pointers from this object lead to
//! (S2.10, S2.11; FORMAT.md, section 9).
//!
//! Entries are found by number in three steps: the table's page, a page of leaves, a leaf. The
//! pages are the heap's own, as those of roots are, so that no block of a program can be one of
//! them. All of it is under the heap's lock, so that a cut has an entry as a whole, or not at all;
//! and it is ordinary stores to the object, so that a psync makes an entry durable together with
//! the pointers that need it.
//!
//! Nothing in the object is trusted: numbers of pages are looked up before anything there is stored
//! to.

mod entries;
mod table;
#[cfg(test)]
mod tests;

pub(super) use entries::OtherObjects;
pub(super) use table::check;
