//! Names: found by hash, told apart by comparison.

use crate::error::{Result, StoreError};
use crate::format::entry::NAME_MAX;

/// Accepts what can name an object: 1 to 511 bytes of UTF-8 without control characters.
///
/// Names are not paths: `/` and `..` mean nothing in them, and are accepted.
///
/// # Errors
/// `BadName`, saying why.
pub fn check_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_MAX {
        "it is longer than 511 bytes"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.trim() != name {
        "it begins or ends with white space"
    } else {
        return Ok(());
    };
    Err(StoreError::BadName { why })
}
