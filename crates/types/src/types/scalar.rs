#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    Any,
    Bool,
    Char,
    NonZero,
}

impl Valid {
    pub(super) fn holds(self, bytes: &[u8]) -> bool {
        match self {
            Valid::Any => true,
            Valid::NonZero => bytes.iter().any(|byte| *byte != 0),
            Valid::Bool => matches!(bytes, [0 | 1]),
            Valid::Char => <[u8; 4]>::try_from(bytes)
                .is_ok_and(|bytes| char::from_u32(u32::from_le_bytes(bytes)).is_some()),
        }
    }
}

const ALL: [(&str, u64, Valid); 40] = [
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
    ("NonZeroU8", 1, Valid::NonZero),
    ("NonZeroU16", 2, Valid::NonZero),
    ("NonZeroU32", 4, Valid::NonZero),
    ("NonZeroU64", 8, Valid::NonZero),
    ("NonZeroU128", 16, Valid::NonZero),
    ("NonZeroUsize", 8, Valid::NonZero),
    ("NonZeroI8", 1, Valid::NonZero),
    ("NonZeroI16", 2, Valid::NonZero),
    ("NonZeroI32", 4, Valid::NonZero),
    ("NonZeroI64", 8, Valid::NonZero),
    ("NonZeroI128", 16, Valid::NonZero),
    ("NonZeroIsize", 8, Valid::NonZero),
];

pub(super) fn find(word: &str) -> Option<(&'static str, u64, Valid)> {
    ALL.into_iter().find(|(name, ..)| *name == word)
}
