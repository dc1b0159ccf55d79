//! Fields of a struct in objects, which the test compares with FORMAT.md.

/// (name, offset, size) of a field.
pub type Field = (&'static str, usize, usize);

macro_rules! fields {
    ($ty:ty { $($field:ident: $of:ty),* $(,)? }) => {
        &[$((stringify!($field), std::mem::offset_of!($ty, $field), size_of::<$of>())),*]
    };
}
pub(super) use fields;
