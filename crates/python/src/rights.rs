//! Rights and identities, as Python has them: words, and names.

use crate::options::choice;
use indelible::Rights;
use pyo3::prelude::*;

pub(crate) fn rights(word: &str) -> PyResult<Rights> {
    choice("rights", &[("r", Rights::READ), ("rw", Rights::READ | Rights::WRITE)], word)
}

/// Rights, or `None` for none.
pub(crate) fn asked(word: Option<&str>) -> PyResult<Option<Rights>> {
    word.map(rights).transpose()
}

pub(crate) fn word(rights: Rights) -> &'static str {
    if rights.has(Rights::WRITE) { "rw" } else { "r" }
}

/// The name that finds an object by its ID.
pub(crate) fn named(id: [u8; 16]) -> String {
    format!("id:{:032x}", u128::from_be_bytes(id))
}
