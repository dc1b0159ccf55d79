//! The bytes of a view (FORMAT.md, section 12): a header, and an entry per slot.

pub(super) use crate::entries::VIEW as SLOTS;
use crate::entries::target;
use crate::error::ViewError;
use crate::far::Rights;

const ENTRY: usize = SLOTS.size;

const AT_ONCE: u8 = 1;

/// A set slot of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewSlot {
    /// Its number.
    pub slot: usize,
    /// The object's ID.
    pub target: [u8; 16],
    /// The requested rights; the object's own decide.
    pub rights: Rights,
    /// Whether the object is attached with the view rather than on first touch.
    pub at_once: bool,
}

pub(super) fn entry(of: &ViewSlot) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes[..16].copy_from_slice(&of.target);
    bytes[16] = of.rights.bits();
    bytes[17] = if of.at_once { AT_ONCE } else { 0 };
    bytes
}

pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ViewSlot>, ViewError> {
    SLOTS.all(bytes)?.filter_map(|(slot, entry)| entry.map(|entry| read(slot, entry))).collect()
}

fn read(slot: usize, entry: &[u8]) -> Result<ViewSlot, ViewError> {
    let damaged = |what: &str| ViewError::Damaged(format!("slot {slot} {what}"));
    let target = target(entry).ok_or_else(|| damaged("has no object, and is not empty"))?;
    let rights = Rights::from_bits(entry[16]).filter(|rights| rights.are_of_pages());
    let rights = rights.ok_or_else(|| damaged("asks for rights that there are not"))?;
    if entry[17] & !AT_ONCE != 0 || entry[18..].iter().any(|byte| *byte != 0) {
        return Err(damaged("has flags that this release does not know"));
    }
    Ok(ViewSlot { slot, target, rights, at_once: entry[17] & AT_ONCE != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::HEADER;

    fn view(slots: usize, set: &[ViewSlot]) -> Vec<u8> {
        let mut bytes = vec![0; SLOTS.len(slots)];
        bytes[..HEADER].copy_from_slice(&SLOTS.header(slots));
        for of in set {
            bytes[SLOTS.place(of.slot)].copy_from_slice(&entry(of));
        }
        bytes
    }

    #[test]
    fn a_written_view_is_read_again() {
        let set = [
            ViewSlot { slot: 0, target: [7; 16], rights: Rights::READ, at_once: false },
            ViewSlot { slot: 9, target: [1; 16], rights: Rights::READ | Rights::WRITE, at_once: true },
        ];
        assert_eq!(parse(&view(10, &set)).unwrap(), set);
        assert_eq!(parse(&view(0, &[])).unwrap(), []);
    }

    #[test]
    fn damage_is_an_error_that_names_it() {
        let set = [ViewSlot { slot: 1, target: [7; 16], rights: Rights::READ, at_once: false }];
        let good = view(2, &set);
        for len in 0..good.len() {
            assert!(parse(&good[..len]).is_err(), "{len} bytes");
        }
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match parse(&bytes) {
                Ok(found) => {
                    let (at, known) = (
                        bit / 8,
                        found.first().is_some_and(|slot| slot.target != [7; 16] || *slot != set[0]),
                    );
                    assert!(known || (12..HEADER).contains(&at), "bit {bit} is ignored");
                }
                Err(ViewError::NotAView) => assert!(bit < 64, "bit {bit}"),
                Err(ViewError::Version { .. }) => assert!((64..96).contains(&bit), "bit {bit}"),
                Err(error) => assert!(matches!(error, ViewError::Damaged(_)), "bit {bit}: {error}"),
            }
        }
        let mut blank = view(2, &set);
        blank[SLOTS.place(1)][..16].fill(0);
        assert!(parse(&blank).unwrap_err().to_string().contains("slot 1 has no object"));
    }
}
