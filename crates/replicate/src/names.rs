//! Names in the store, below the prefix. Numbers have twelve digits, so that lists are in order.

/// Folder of the records that begin epochs.
pub(crate) const EPOCHS: &str = "epoch";

/// A segment's place: its epoch, and its number there, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The epoch, from 1.
    pub epoch: u64,
    /// The number in the epoch, from 1; 0: before the first.
    pub seq: u64,
}

impl Position {
    /// The next place in the epoch.
    #[must_use]
    pub fn next(self) -> Position {
        Position { seq: self.seq + 1, ..self }
    }

    /// Name of the segment, or of the boundary record.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}/{:012}", segments(self.epoch), self.seq)
    }

    /// Reads `EPOCH.SEQ`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Position> {
        let (epoch, seq) = text.split_once('.')?;
        Some(Position { epoch: epoch.parse().ok()?, seq: seq.parse().ok()? })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.epoch, self.seq)
    }
}

pub(crate) fn segments(epoch: u64) -> String {
    format!("e{epoch:012}/L0")
}

/// The record that begins an epoch.
pub(crate) fn epoch(epoch: u64) -> String {
    format!("{EPOCHS}/{epoch:012}")
}

pub(crate) fn lease(epoch: u64) -> String {
    format!("e{epoch:012}/lease")
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let last = name.rsplit('/').next()?;
    (last.len() == 12).then(|| last.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_numbers() {
        let name = |epoch, seq| Position { epoch, seq }.name();
        assert_eq!(name(3, 17), "e000000000003/L0/000000000017");
        assert!(name(1, 9) < name(1, 10) && name(9, 1) < name(10, 1));
        assert_eq!(number(&name(3, 17)), Some(17));
        assert_eq!((number("e1/lease"), number("epoch/12")), (None, None));
        let text = Position { epoch: 2, seq: 5 }.to_string();
        assert_eq!(Position::parse(&text), Some(Position { epoch: 2, seq: 5 }));
        assert_eq!(Position::parse("5"), None);
    }
}
