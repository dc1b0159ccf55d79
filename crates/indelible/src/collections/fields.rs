//! Fields of a struct that lies in objects, as the test compares them with FORMAT.md.

/// (name, offset, size) of a field.
pub type Field = (&'static str, usize, usize);

/// Fields of a struct, as (name, offset, size).
macro_rules! fields {
    ($ty:ty { $($field:ident: $of:ty),* $(,)? }) => {
        &[$((stringify!($field), std::mem::offset_of!($ty, $field), size_of::<$of>())),*]
    };
}
pub(super) use fields;
