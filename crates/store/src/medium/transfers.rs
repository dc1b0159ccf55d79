//! Sizes of transfers, stated by a medium ([`Medium::transfers`](super::Medium::transfers)); they
//! never change the resulting bytes.

use crate::format::LINE;

/// Sizes in bytes, above zero, fixed while a medium is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfers {
    append: u64,
    scan: usize,
    direct: usize,
    combine: usize,
}

impl Transfers {
    /// The sizes of real media.
    pub const SHIPPED: Transfers =
        Transfers { append: 32 << 10, scan: 256 << 10, direct: 32 << 10, combine: 64 << 20 };

    /// Piece of a borrowed batch that is written or applied: fits the nearest caches.
    #[must_use]
    pub const fn append(&self) -> u64 {
        self.append
    }

    /// Piece of a lane that is read: fits a cache.
    #[must_use]
    pub const fn scan(&self) -> usize {
        self.scan
    }

    /// Redo of this length bypasses the write combiner.
    #[must_use]
    pub const fn direct(&self) -> usize {
        self.direct
    }

    /// Memory of the write combiner that requires a flush.
    #[must_use]
    pub const fn combine(&self) -> usize {
        self.combine
    }

    /// These sizes with another [`append`](Transfers::append).
    ///
    /// # Panics
    /// If `bytes` is zero, or not whole lines.
    #[must_use]
    pub const fn with_append(self, bytes: u64) -> Self {
        assert!(bytes > 0 && bytes.is_multiple_of(LINE), "a piece of a batch is one line or more");
        Transfers { append: bytes, ..self }
    }

    /// These sizes with another [`scan`](Transfers::scan).
    ///
    /// # Panics
    /// If `bytes` is zero, or not whole lines.
    #[must_use]
    pub const fn with_scan(self, bytes: usize) -> Self {
        assert!(bytes > 0 && bytes.is_multiple_of(LINE as usize), "a lane is read by one line or more");
        Transfers { scan: bytes, ..self }
    }

    /// These sizes with another [`direct`](Transfers::direct).
    ///
    /// # Panics
    /// If `bytes` is zero.
    #[must_use]
    pub const fn with_direct(self, bytes: usize) -> Self {
        assert!(bytes > 0, "redo of no bytes is not a piece");
        Transfers { direct: bytes, ..self }
    }

    /// These sizes with another [`combine`](Transfers::combine).
    ///
    /// # Panics
    /// If `bytes` is zero.
    #[must_use]
    pub const fn with_combine(self, bytes: usize) -> Self {
        assert!(bytes > 0, "a write combiner takes memory");
        Transfers { combine: bytes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_would_move_nothing_are_refused() {
        let sizes = Transfers::SHIPPED;
        let made: [fn(Transfers); 6] = [
            |sizes| _ = sizes.with_append(0),
            |sizes| _ = sizes.with_append(100),
            |sizes| _ = sizes.with_scan(0),
            |sizes| _ = sizes.with_scan(100),
            |sizes| _ = sizes.with_direct(0),
            |sizes| _ = sizes.with_combine(0),
        ];
        for make in made {
            std::panic::catch_unwind(|| make(sizes)).expect_err("the size is refused");
        }
        let small = sizes.with_append(64).with_scan(64).with_direct(1).with_combine(1);
        assert_eq!((small.append(), small.scan(), small.direct(), small.combine()), (64, 64, 1, 1));
    }
}
