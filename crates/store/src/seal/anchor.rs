//! The record that an anchor keeps of an object, elsewhere: by it a complete older state of the object, which verifies, is told from the newest.
//!
//! The root's version is compared: it is authenticated, and no change of the object takes it back. While a process writes the object the anchor may be behind, by the psyncs
//! since it was last told; once the object is left it is exact.

use crate::error::{Result, SealError};
use crate::mutant::Mutant;
use std::fmt::Write;

const MAGIC: &str = "indelible-anchor";

/// A state of an object: what an anchor is told, or what the pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorRecord {
    /// The seal ID.
    pub id: [u8; 16],
    /// How often the object changed.
    pub version: u64,
    /// The tag of the root: of two states with the same number one at most is the one that was told.
    pub tag: [u8; 16],
    /// Whether the object was left in this state. If not, a process wrote it on, and may have died.
    pub left: bool,
}

impl std::fmt::Display for AnchorRecord {
    /// One line: `indelible-anchor 1`, seal ID, version, tag, and `left` or `open`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = if self.left { "left" } else { "open" };
        write!(f, "{MAGIC} 1 {} {} {} {state}", hex(&self.id), self.version, hex(&self.tag))
    }
}

impl AnchorRecord {
    /// Reads the line. Blanks at its end do not count.
    ///
    /// # Errors
    /// `BadAnchor`: it is none.
    pub fn parse(line: &str) -> Result<AnchorRecord> {
        let bad = || SealError::BadAnchor { why: "it has no record of this release" };
        let fields: Vec<&str> = line.trim_end().split(' ').collect();
        let [magic, number, id, version, tag, state] = fields[..] else { return Err(bad().into()) };
        if (magic, number) != (MAGIC, "1") || !["left", "open"].contains(&state) {
            return Err(bad().into());
        }
        let version = version.parse().map_err(|_| bad())?;
        let bytes = |text: &str| unhex(text).ok_or_else(bad);
        Ok(AnchorRecord { id: bytes(id)?, version, tag: bytes(tag)?, left: state == "left" })
    }

    /// Refuses a state of the pool that is not the one that the anchor was told, or a later one. `anchored`: whether the object says that it has an anchor.
    ///
    /// # Errors
    /// `AnchorEmpty`, `AnchorOfAnother`, `PoolBehind`, `AnchorBehind`.
    pub fn judge(pool: &AnchorRecord, anchored: bool, anchor: Option<&AnchorRecord>) -> Result<()> {
        let Some(anchor) = anchor else {
            return if anchored { Err(SealError::AnchorEmpty.into()) } else { Ok(()) };
        };
        if anchor.id != pool.id {
            return Err(SealError::AnchorOfAnother.into());
        }
        let (at, told) = (pool.version, anchor.version);
        if Mutant::AnchorIgnored.is_on() {
            return Ok(());
        }
        if at < told || at == told && pool.tag != anchor.tag {
            return Err(SealError::PoolBehind { pool: at, anchor: told }.into());
        }
        if anchor.left && at > told {
            return Err(SealError::AnchorBehind { pool: at, anchor: told }.into());
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 16]> {
    let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;

    const RECORD: AnchorRecord = AnchorRecord { id: [0xab; 16], version: 17, tag: [3; 16], left: true };

    #[test]
    fn records_are_read_as_they_are_written_and_others_are_refused() {
        let text = RECORD.to_string();
        assert_eq!(text, format!("indelible-anchor 1 {} 17 {} left", "ab".repeat(16), "03".repeat(16)));
        assert_eq!(AnchorRecord::parse(&format!("{text}\n")).unwrap(), RECORD);
        let open = AnchorRecord { left: false, ..RECORD };
        assert_eq!(AnchorRecord::parse(&open.to_string()).unwrap(), open);
        let others = [
            "",
            "x",
            &text[..text.len() - 1],
            &text.replace(" 1 ", " 2 "),
            &text.replace("17", "-1"),
            &text.replace("ab", "+b"),
        ];
        for other in others {
            assert!(AnchorRecord::parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_state_is_refused_that_is_not_the_one_that_was_told() {
        let judge = |version, tag, left: bool| {
            let pool = AnchorRecord { version, tag: [tag; 16], left: true, ..RECORD };
            match AnchorRecord::judge(&pool, true, Some(&AnchorRecord { left, ..RECORD })) {
                Ok(()) => None,
                Err(StoreError::Seal(error)) => Some(error),
                Err(error) => panic!("{error}"),
            }
        };
        for left in [true, false] {
            assert_eq!(judge(17, 3, left), None);
            assert_eq!(judge(16, 3, left), Some(SealError::PoolBehind { pool: 16, anchor: 17 }));
            assert_eq!(judge(17, 4, left), Some(SealError::PoolBehind { pool: 17, anchor: 17 }));
        }
        assert_eq!(judge(18, 9, false), None);
        assert_eq!(judge(18, 9, true), Some(SealError::AnchorBehind { pool: 18, anchor: 17 }));
        let other = AnchorRecord { id: [1; 16], ..RECORD };
        assert!(AnchorRecord::judge(&RECORD, true, Some(&other)).is_err());
        assert!(AnchorRecord::judge(&RECORD, true, None).is_err());
        assert!(AnchorRecord::judge(&RECORD, false, None).is_ok());
    }
}
