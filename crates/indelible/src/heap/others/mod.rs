//! The table of other objects in a heap: targets of this object's far pointers (S2.10, S2.11;
//! FORMAT.md, section 9). All is under the heap's lock: a cut has whole entries. Nothing in the
//! object is trusted: page numbers are verified before a store.

mod entries;
mod table;
#[cfg(test)]
mod tests;

pub(super) use entries::OtherObjects;
pub(super) use table::check;
