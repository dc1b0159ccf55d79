//! The table of other objects in a heap: targets of this object's far pointers (S2.10, S2.11;
//! FORMAT.md, section 9).
//!
//! An entry is found by number in three steps: the table's page, a page of leaves, a leaf. The
//! pages are the heap's own, never a program's block. All is under the heap's lock, so that a cut
//! has whole entries, and a psync makes an entry durable together with its pointers.
//!
//! Nothing in the object is trusted: page numbers are verified before a store.

mod entries;
mod table;
#[cfg(test)]
mod tests;

pub(super) use entries::OtherObjects;
pub(super) use table::check;
