//! Offsets of the fields of an enum's variants, and the bytes between fields, for
//! `#[derive(Persist)]`. With an integer as `repr`, the tag and a variant's fields are a `repr(C)`
//! struct; with `repr(C, …)` a union of structs of the variants' fields follows the tag.

pub use super::persist::clear_gaps;
use std::alloc::Layout;

/// Offsets of `fields` after `start`, as in C, and the layout of all.
#[must_use]
pub const fn extend<const N: usize>(start: Layout, fields: [Layout; N]) -> ([usize; N], Layout) {
    let (mut offsets, mut all, mut index) = ([0; N], start, 0);
    while index < N {
        let Ok((longer, offset)) = all.extend(fields[index]) else { panic!("larger than memory") };
        (all, offsets[index]) = (longer, offset);
        index += 1;
    }
    (offsets, all)
}

/// The tag, and the bytes before a union of structs of `fields`.
#[must_use]
pub const fn before_union(tag: Layout, fields: &[Layout]) -> Layout {
    let (mut align, mut index) = (1, 0);
    while index < fields.len() {
        if fields[index].align() > align {
            align = fields[index].align();
        }
        index += 1;
    }
    let Ok(start) = Layout::from_size_align(tag.size().next_multiple_of(align), tag.align()) else {
        panic!("larger than memory")
    };
    start
}

/// Fails unless `T` ends where its longest variant does.
pub const fn assert_size<T>(ends: &[usize]) {
    let (mut longest, mut index) = (0, 0);
    while index < ends.len() {
        if ends[index] > longest {
            longest = ends[index];
        }
        index += 1;
    }
    assert!(
        longest.next_multiple_of(align_of::<T>()) == size_of::<T>(),
        "the compiler lays out this enum in another way than the language promises"
    );
}
