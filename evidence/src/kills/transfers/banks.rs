pub(super) const BANKS: usize = 2;
pub(super) const OBJECTS: usize = 3;
pub(super) const THREADS: usize = 4;
pub(super) const GUEST: usize = OBJECTS;

pub(super) fn name(bank: usize, object: usize) -> String {
    format!("bank {bank}, {object}")
}

pub(super) fn has_check_words(bank: usize) -> bool {
    bank % 2 == 1
}
