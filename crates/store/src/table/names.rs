//! Names, found by hash. `id:` and 32 hexadecimal digits name the object with this ID (S2.1); no
//! object has such a name itself.

use crate::error::{Result, StoreError};
use crate::format::entry::NAME_MAX;

/// Accepts 1 to 511 bytes of UTF-8 without control characters. `/` and `..` mean nothing in names.
///
/// # Errors
/// `BadName`.
pub fn check_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_MAX {
        "it is longer than 511 bytes"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.trim() != name {
        "it begins or ends with white space"
    } else if parse_id(name).is_some() {
        "it stands for the object with that ID"
    } else {
        return Ok(());
    };
    Err(StoreError::BadName { why })
}

const BY_ID: &str = "id:";

/// The name for an ID.
#[must_use]
pub fn id_name(id: &[u8; 16]) -> String {
    format!("{BY_ID}{:032x}", u128::from_be_bytes(*id))
}

/// The ID in such a name.
#[must_use]
pub fn parse_id(name: &str) -> Option<[u8; 16]> {
    let digits = name.strip_prefix(BY_ID).filter(|digits| digits.len() == 32)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(digits, 16).ok().filter(|_| plain).map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::{check_name, id_name, parse_id};

    #[test]
    fn names_that_stand_for_ids_are_those_and_no_others() {
        let id = std::array::from_fn(|n| (n * 17) as u8);
        assert_eq!(id_name(&id), "id:00112233445566778899aabbccddeeff");
        assert_eq!(parse_id(&id_name(&id)), Some(id));
        for other in [
            "id:",
            "id:00112233445566778899aabbccddeef",
            "00112233445566778899aabbccddeeff",
            "id:+0112233445566778899aabbccddeeff",
        ] {
            assert_eq!((parse_id(other), check_name(other).is_ok()), (None, true), "{other}");
        }
        assert!(check_name(&id_name(&id)).is_err());
    }
}
