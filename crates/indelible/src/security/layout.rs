//! The bytes of a security context (FORMAT.md, section 14): a header, and entries.

pub(super) use crate::entries::CONTEXT as ENTRIES;
use crate::entries::{HEADER, target};
use crate::error::SecurityError;
use crate::far::Rights;
use std::collections::BTreeSet;

const ENTRY: usize = ENTRIES.size;

const DEFAULT: usize = 16;

/// The kind of an entry of a security context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RuleKind {
    /// A capability: the rights to the object, instead of the default ones.
    Capability,
    /// A mask: limits this context's own and delegated rights to the object.
    Mask,
    /// A delegation: another security context's rights count here, limited to these.
    Delegation,
}

impl RuleKind {
    pub(super) const ALL: [RuleKind; 3] = [RuleKind::Capability, RuleKind::Mask, RuleKind::Delegation];

    fn bits(self) -> u8 {
        match self {
            RuleKind::Capability => 1,
            RuleKind::Mask => 2,
            RuleKind::Delegation => 3,
        }
    }
}

/// An entry of a security context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its kind.
    pub kind: RuleKind,
    /// ID of the object, or of the delegating security context.
    pub target: [u8; 16],
    /// The rights; `None`: none at all.
    pub rights: Option<Rights>,
}

/// The contents of a security context.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Rights to objects without a capability; `None`: none at all.
    pub default: Option<Rights>,
    /// The entries, in no meaningful order.
    pub rules: Vec<Rule>,
}

pub(super) fn default_rights(rights: Option<Rights>) -> (usize, u8) {
    (DEFAULT, bits(rights))
}

pub(super) fn entry(of: &Rule) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes[..16].copy_from_slice(&of.target);
    bytes[16] = bits(of.rights);
    bytes[17] = of.kind.bits();
    bytes
}

fn bits(rights: Option<Rights>) -> u8 {
    rights.map_or(0, Rights::bits)
}

pub(super) fn slots(bytes: &[u8]) -> Result<Vec<Option<Rule>>, SecurityError> {
    let mut seen = BTreeSet::new();
    let read = ENTRIES.all(bytes)?.map(|(number, entry)| {
        let Some(entry) = entry else { return Ok(None) };
        let rule = read(number, entry)?;
        match seen.insert((rule.target, rule.kind)) {
            true => Ok(Some(rule)),
            false => Err(damaged(number, "says something else of an object that an entry before is about")),
        }
    });
    read.collect()
}

/// # Errors
/// As for [`slots`]; damage of the header.
pub(super) fn parse(bytes: &[u8]) -> Result<Rules, SecurityError> {
    let rules = slots(bytes)?.into_iter().flatten().collect();
    let rest = bytes[DEFAULT + 1..HEADER].iter().any(|byte| *byte != 0);
    let default = possible(bytes[DEFAULT]).filter(|_| !rest);
    let wrong = || SecurityError::Damaged("its header has default rights that there are not".to_owned());
    Ok(Rules { default: default.ok_or_else(wrong)?, rules })
}

fn read(number: usize, entry: &[u8]) -> Result<Rule, SecurityError> {
    let target = target(entry).ok_or_else(|| damaged(number, "is about no object, and is not empty"))?;
    let rights = possible(entry[16]).ok_or_else(|| damaged(number, "has rights that there are not"))?;
    let kind = RuleKind::ALL.into_iter().find(|kind| kind.bits() == entry[17]);
    let kind = kind.ok_or_else(|| damaged(number, "is of a kind that this release does not know"))?;
    if entry[18..].iter().any(|byte| *byte != 0) {
        return Err(damaged(number, "is signed, or has what this release does not know"));
    }
    Ok(Rule { kind, target, rights })
}

fn damaged(number: usize, what: &str) -> SecurityError {
    SecurityError::Damaged(format!("entry {number} {what}"))
}

/// Objects are not executable, and no page is writable without being readable.
fn possible(bits: u8) -> Option<Option<Rights>> {
    let rights = Rights::from_bits(bits);
    (bits == 0 || rights.is_some_and(Rights::are_of_pages)).then_some(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(entries: usize, default: Option<Rights>, rules: &[Rule]) -> Vec<u8> {
        let mut bytes = vec![0; ENTRIES.len(entries)];
        bytes[..HEADER].copy_from_slice(&ENTRIES.header(entries));
        let (at, byte) = default_rights(default);
        bytes[at] = byte;
        for (number, of) in rules.iter().enumerate() {
            bytes[ENTRIES.place(number)].copy_from_slice(&entry(of));
        }
        bytes
    }

    fn rules() -> [Rule; 3] {
        let both = Some(Rights::READ | Rights::WRITE);
        [
            Rule { kind: RuleKind::Capability, target: [7; 16], rights: both },
            Rule { kind: RuleKind::Mask, target: [7; 16], rights: Some(Rights::READ) },
            Rule { kind: RuleKind::Delegation, target: [9; 16], rights: None },
        ]
    }

    #[test]
    fn written_rules_are_read_again() {
        let read = parse(&context(5, Some(Rights::READ), &rules())).unwrap();
        assert_eq!((read.default, &read.rules[..]), (Some(Rights::READ), &rules()[..]));
        assert_eq!(parse(&context(0, None, &[])).unwrap(), Rules { default: None, rules: Vec::new() });
    }

    #[test]
    fn damage_is_an_error_that_names_it() {
        let good = context(4, None, &rules());
        for len in 0..good.len() {
            assert!(parse(&good[..len]).is_err(), "{len} bytes");
        }
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match parse(&bytes) {
                // The number of entries, and another possible object, kind or right.
                Ok(found) => assert!(
                    found.rules != rules() || found.default.is_some() || (96..128).contains(&bit),
                    "bit {bit} is ignored"
                ),
                Err(SecurityError::NotAContext) => assert!(bit < 64, "bit {bit}"),
                Err(SecurityError::Version { .. }) => assert!((64..96).contains(&bit), "bit {bit}"),
                Err(error) => assert!(matches!(error, SecurityError::Damaged(_)), "bit {bit}: {error}"),
            }
        }
        let twice = context(4, None, &[rules()[0], rules()[0]]);
        assert!(parse(&twice).unwrap_err().to_string().contains("entry 1 says something else"));
        let mut blank = good.clone();
        blank[ENTRIES.place(1)][..16].fill(0);
        assert!(parse(&blank).unwrap_err().to_string().contains("entry 1 is about no object"));
        let mut signed = good;
        signed[ENTRIES.place(2)][127] = 1;
        assert!(parse(&signed).unwrap_err().to_string().contains("entry 2 is signed"));
    }
}
