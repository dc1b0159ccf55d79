//! Data in the object: keys, their values, and when they end.

use indelible::collections::{PBTreeSet, PHashMap, PVec};
use indelible::{Composite, Persist, StableHash};

/// Name of the root.
pub(crate) const ROOT: &str = "database";

/// Bytes of any kind.
pub(crate) type Bytes<'h> = PVec<'h, u8>;

#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Database<'h> {
    pub(crate) items: PHashMap<'h, Bytes<'h>, Item<'h>>,
}

#[derive(Persist)]
#[repr(C)]
pub(crate) struct Item<'h> {
    /// Milliseconds since 1970 at which the key ends; 0: never.
    pub(crate) expires: u64,
    pub(crate) value: Value<'h>,
}

#[derive(Persist)]
#[repr(C, u8)]
pub(crate) enum Value<'h> {
    Text(Bytes<'h>),
    Hash(PHashMap<'h, Bytes<'h>, Bytes<'h>>),
    Sorted(Sorted<'h>),
}

/// Members by name, and in their order.
#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Sorted<'h> {
    /// The ranks' scores.
    pub(crate) scores: PHashMap<'h, Bytes<'h>, u64>,
    pub(crate) order: PBTreeSet<'h, Rank<'h>>,
}

#[derive(Persist, Composite, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Rank<'h> {
    /// As `ordered` has it.
    pub(crate) score: u64,
    pub(crate) member: Bytes<'h>,
}

/// A number that is ordered as the scores are.
pub(crate) fn ordered(score: f64) -> u64 {
    // Zero has one number, whichever its sign.
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The score of such a number.
pub(crate) fn score(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

impl<'h> Item<'h> {
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.expires != 0 && self.expires <= now
    }
}

impl<'h> Database<'h> {
    /// The item of a key that is not over.
    pub(crate) fn get(&self, key: &[u8], now: u64) -> Option<&Item<'h>> {
        self.items.get(key).filter(|item| !item.is_over(now))
    }

    /// Removes a key that is over. Whether it is there.
    pub(crate) fn is_there(&mut self, key: &[u8], now: u64) -> bool {
        let over = self.items.get(key).map(|item| item.is_over(now));
        if over == Some(true) {
            self.items.remove(key);
        }
        over == Some(false)
    }

    /// Changes the item of a key that is not over. A reference to it would have every later cut look at it again.
    pub(crate) fn update<R>(
        &mut self,
        key: &[u8],
        now: u64,
        change: impl FnOnce(&mut Item<'h>) -> R,
    ) -> Option<R> {
        if self.is_there(key, now) { self.items.update(key, change) } else { None }
    }
}

/// Gives a text new bytes, in place if it has room for them: no reference to its bytes is given out.
///
/// # Errors
/// The heap is full: the text is as it was.
pub(crate) fn assign(text: &mut Bytes<'_>, bytes: &[u8]) -> indelible::Result<()> {
    text.try_reserve(bytes.len().saturating_sub(text.len()))?;
    text.clear();
    text.try_extend_from_slice(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_as_their_scores() {
        let scores = [f64::NEG_INFINITY, -1e300, -2.5, -1e-300, 0.0, 1e-300, 1.0, 1e300, f64::INFINITY];
        for pair in scores.windows(2) {
            assert!(ordered(pair[0]) < ordered(pair[1]), "{pair:?}");
        }
        assert!(scores.iter().all(|value| score(ordered(*value)) == *value));
        assert_eq!(ordered(-0.0), ordered(0.0));
    }
}
