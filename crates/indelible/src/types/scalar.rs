//! Numbers and the like.

/// Which bytes are a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Valid {
    Any,
    /// 0 or 1.
    Bool,
    /// A Unicode scalar value.
    Char,
}

impl Valid {
    /// Whether these bytes are a value.
    pub(crate) fn holds(self, bytes: &[u8]) -> bool {
        match self {
            Valid::Any => true,
            Valid::Bool => matches!(bytes, [0 | 1]),
            Valid::Char => <[u8; 4]>::try_from(bytes)
                .is_ok_and(|bytes| char::from_u32(u32::from_le_bytes(bytes)).is_some()),
        }
    }
}

/// Words, sizes, which are alignments too, and values.
const ALL: [(&str, u64, Valid); 28] = [
    ("u8", 1, Valid::Any),
    ("u16", 2, Valid::Any),
    ("u32", 4, Valid::Any),
    ("u64", 8, Valid::Any),
    ("u128", 16, Valid::Any),
    ("i8", 1, Valid::Any),
    ("i16", 2, Valid::Any),
    ("i32", 4, Valid::Any),
    ("i64", 8, Valid::Any),
    ("i128", 16, Valid::Any),
    ("usize", 8, Valid::Any),
    ("isize", 8, Valid::Any),
    ("f32", 4, Valid::Any),
    ("f64", 8, Valid::Any),
    ("bool", 1, Valid::Bool),
    ("char", 4, Valid::Char),
    ("()", 0, Valid::Any),
    ("atomic::AtomicU8", 1, Valid::Any),
    ("atomic::AtomicU16", 2, Valid::Any),
    ("atomic::AtomicU32", 4, Valid::Any),
    ("atomic::AtomicU64", 8, Valid::Any),
    ("atomic::AtomicUsize", 8, Valid::Any),
    ("atomic::AtomicI8", 1, Valid::Any),
    ("atomic::AtomicI16", 2, Valid::Any),
    ("atomic::AtomicI32", 4, Valid::Any),
    ("atomic::AtomicI64", 8, Valid::Any),
    ("atomic::AtomicIsize", 8, Valid::Any),
    ("atomic::AtomicBool", 1, Valid::Bool),
];

/// The scalar of this name: its name, size and values.
pub(super) fn find(word: &str) -> Option<(&'static str, u64, Valid)> {
    ALL.into_iter().find(|(name, ..)| *name == word)
}
