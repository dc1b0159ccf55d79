use super::transaction::{Set, Transaction};

pub(super) const CELLS: usize = 512;
pub(super) const PAGES: usize = 64;

pub(super) fn cell_of(number: usize) -> usize {
    8 + number * 5 % (CELLS - 8)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) there: Set,
    pub(super) last: u64,
}

impl Found {
    pub(super) fn look(
        object: usize,
        all: &[Transaction],
        mut cell: impl FnMut(usize) -> Result<u64, String>,
    ) -> Result<Found, String> {
        let mut there = 0;
        for (number, transaction) in all.iter().enumerate().skip(1) {
            let own = cell_of(number);
            let pages = if transaction.is_wide_in(object) { PAGES } else { 1 };
            let mut pages_with = Vec::with_capacity(pages);
            for page in 0..pages {
                pages_with.push(match cell(page * CELLS + own)? {
                    0 => false,
                    found if found == number as u64 && transaction.has(object) => true,
                    other => return Err(format!("object {object} has {other:#x} for transaction {number}")),
                });
            }
            let has = pages_with[0];
            if pages_with.iter().any(|other| *other != has) {
                return Err(format!("transaction {number} is torn within object {object}"));
            }
            there |= Set::from(has) << number;
        }
        let last = cell(0)?;
        let newest = u64::from(Set::BITS - there.leading_zeros()).saturating_sub(1);
        match last == newest {
            true => Ok(Found { there, last }),
            false => Err(format!("object {object} has {last} for the last of {}", numbers(there))),
        }
    }

    pub(super) fn in_bytes(object: usize, all: &[Transaction], bytes: &[u8]) -> Result<Found, String> {
        let words = bytes.as_chunks::<8>().0;
        Found::look(object, all, |cell| {
            let word = words.get(cell).ok_or_else(|| format!("object {object} has {} bytes", bytes.len()))?;
            Ok(u64::from_le_bytes(*word))
        })
    }
}

pub(super) fn numbers(set: Set) -> String {
    let all: Vec<_> = (0..Set::BITS).filter(|number| set >> number & 1 == 1).collect();
    format!("{all:?}")
}
