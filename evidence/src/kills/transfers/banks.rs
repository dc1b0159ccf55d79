//! Banks, and the names of their objects.

/// Banks of a pool, each with so many objects, and a process of so many threads.
pub(super) const BANKS: usize = 2;
pub(super) const OBJECTS: usize = 3;
pub(super) const THREADS: usize = 4;
/// The object that comes and goes: its counter of leaves is that of the bank's first object.
pub(super) const GUEST: usize = OBJECTS;

pub(super) fn name(bank: usize, object: usize) -> String {
    format!("bank {bank}, {object}")
}

/// Every other bank has objects whose words have check words.
pub(super) fn has_check_words(bank: usize) -> bool {
    bank % 2 == 1
}
