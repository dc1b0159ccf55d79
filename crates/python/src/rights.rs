//! Rights and identities, as Python has them: words, and names.

use crate::options::choice;
use indelible::Rights;
use pyo3::prelude::*;

/// The rights that a word names.
pub(crate) fn rights(word: &str) -> PyResult<Rights> {
    choice("rights", &[("r", Rights::READ), ("rw", Rights::READ | Rights::WRITE)], word)
}

/// Rights that there may be none of: None.
pub(crate) fn asked(word: Option<&str>) -> PyResult<Option<Rights>> {
    word.map(rights).transpose()
}

/// The word for rights.
pub(crate) fn word(rights: Rights) -> &'static str {
    if rights.has(Rights::WRITE) { "rw" } else { "r" }
}

/// The name under which any call finds the object with an ID.
pub(crate) fn named(id: [u8; 16]) -> String {
    format!("id:{:032x}", u128::from_be_bytes(id))
}
