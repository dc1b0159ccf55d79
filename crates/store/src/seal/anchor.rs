//! An anchor's record of an object, which tells an older state from the newest by the root's
//! authenticated version. While a process writes the object, the anchor may lag; once the object is
//! left, it is exact.
//!
//! An anchor with a monotonic counter numbers its records and proves them by the object's key, so
//! that they may lie anywhere.

use super::aead::PROOF;
use super::hex::{hex, unhex};
use crate::error::{Result, SealError};
use crate::mutant::Mutant;

const MAGIC: &str = "indelible-anchor";

/// A state of an object, from an anchor or the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorRecord {
    /// The seal ID.
    pub id: [u8; 16],
    /// Number of changes.
    pub version: u64,
    /// Tag of the root, which tells states of one version apart.
    pub tag: [u8; 16],
    /// Whether the object was left in this state.
    pub left: bool,
    /// Number in an anchor with a counter.
    pub count: Option<Count>,
}

/// Number of a record in an anchor with a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Value of the counter once the record is in place.
    pub value: u64,
    /// Proof of the record and the value by the object's key.
    pub proof: [u8; PROOF],
}

impl std::fmt::Display for AnchorRecord {
    /// One line: `indelible-anchor 1`, seal ID, version, tag, and `left` or `open`; counted:
    /// `indelible-anchor 2`, the same, count and proof.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.count {
            None => write!(f, "{MAGIC} 1 {}", self.state()),
            Some(count) => write!(f, "{MAGIC} 2 {} {}", self.counted(count.value), hex(&count.proof)),
        }
    }
}

const PLAIN: usize = 6;
const COUNTED: usize = 8;

impl AnchorRecord {
    /// Parses the line; ignores trailing blanks.
    ///
    /// # Errors
    /// `BadAnchor`.
    pub fn parse(line: &str) -> Result<AnchorRecord> {
        AnchorRecord::read(line)
            .ok_or(SealError::BadAnchor { why: "it has no record of this release" }.into())
    }

    fn read(line: &str) -> Option<AnchorRecord> {
        let fields: Vec<&str> = line.trim_end().split(' ').collect();
        let [magic, number, id, version, tag, state, ref count @ ..] = fields[..] else { return None };
        let left = match state {
            "left" => true,
            "open" => false,
            _ => return None,
        };
        let count = match (magic, number, fields.len(), count) {
            (MAGIC, "1", PLAIN, _) => None,
            (MAGIC, "2", COUNTED, [value, proof]) => {
                Some(Count { value: value.parse().ok()?, proof: unhex(proof)? })
            }
            _ => return None,
        };
        Some(AnchorRecord { id: unhex(id)?, version: version.parse().ok()?, tag: unhex(tag)?, left, count })
    }

    fn state(&self) -> String {
        let state = if self.left { "left" } else { "open" };
        format!("{} {} {} {state}", hex(&self.id), self.version, hex(&self.tag))
    }

    pub(super) fn counted(&self, value: u64) -> String {
        format!("{} {value}", self.state())
    }

    /// Refuses a record that is not the newest by `counter`. `is_proof` verifies a text's proof.
    pub(super) fn judge_count(
        &self,
        counter: u64,
        is_proof: impl FnOnce(&str, &[u8; PROOF]) -> bool,
    ) -> Result<()> {
        let bad = |why| Err(SealError::BadAnchor { why }.into());
        let Some(count) = &self.count else { return bad("its record was made without its counter") };
        if !is_proof(&self.counted(count.value), &count.proof) {
            return bad("its record was not made with the object's key");
        }
        let next = counter.saturating_add(1);
        if ![counter, next].contains(&count.value) && !Mutant::CountIgnored.is_on() {
            return Err(SealError::RecordBehind { record: count.value, counter }.into());
        }
        Ok(())
    }

    /// Refuses a state of the pool older than the anchor's. `anchored`: whether the object states
    /// that it has an anchor.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;

    const RECORD: AnchorRecord =
        AnchorRecord { id: [0xab; 16], version: 17, tag: [3; 16], left: true, count: None };
    const COUNT: Count = Count { value: 5, proof: [0xc4; PROOF] };

    #[test]
    fn records_are_read_as_they_are_written_and_others_are_refused() {
        let text = RECORD.to_string();
        assert_eq!(text, format!("indelible-anchor 1 {} 17 {} left", "ab".repeat(16), "03".repeat(16)));
        assert_eq!(AnchorRecord::parse(&format!("{text}\n")).unwrap(), RECORD);
        let open = AnchorRecord { left: false, ..RECORD };
        assert_eq!(AnchorRecord::parse(&open.to_string()).unwrap(), open);
        let counted = AnchorRecord { count: Some(COUNT), ..RECORD };
        let line = counted.to_string();
        assert_eq!(line, format!("{} 5 {}", text.replace(" 1 ", " 2 "), "c4".repeat(PROOF)));
        assert!(line.len() <= 250, "{}", line.len());
        assert_eq!(AnchorRecord::parse(&line).unwrap(), counted);
        let others = [
            "",
            "x",
            &line.replace(" 2 ", " 1 "),
            &line[..line.len() - 1],
            &line[..line.len() - 2],
            &format!("{line} x"),
            &format!("{text} 5"),
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

    #[test]
    fn a_counted_record_is_refused_that_is_not_the_newest_or_has_no_proof() {
        let counted = AnchorRecord { count: Some(COUNT), ..RECORD };
        let judge = |record: &AnchorRecord, counter, proved| match record.judge_count(counter, |_, _| proved)
        {
            Ok(()) => None,
            Err(StoreError::Seal(error)) => Some(error),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(judge(&counted, 5, true), None);
        assert_eq!(judge(&counted, 4, true), None);
        for counter in [0, 3, 6, u64::MAX] {
            assert_eq!(judge(&counted, counter, true), Some(SealError::RecordBehind { record: 5, counter }));
        }
        assert!(matches!(judge(&counted, 5, false), Some(SealError::BadAnchor { .. })));
        assert!(matches!(judge(&RECORD, 5, true), Some(SealError::BadAnchor { .. })));
    }
}
