use crate::far::Far;
use crate::relative::Relative;
use std::ptr::NonNull;
use std::sync::atomic::AtomicPtr;

/// A raw pointer, or an array, vector or option of such, which `#[derive(Persist)]` can describe
/// with its target.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::Persist;
///
/// #[derive(Persist)]
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     #[persist(target)] // a Node: `target = Type` says which, if the pointer does not
///     next: *mut Node,
/// }
///
/// let node = heap.calloc(1, size_of::<Node>())?.as_ptr().cast::<Node>(); // only `next` leads there
/// heap.root_or_insert_with::<Node, _>("list", |_| Node { value: 1, next: node })?;
/// // SAFETY: a block of zeros, large enough; no other code has it.
/// unsafe { (*node).next = std::ptr::without_provenance_mut(3) };
/// assert_eq!(heap.audit()?.pointers[0].path, "list.next.next");
/// # Ok::<(), indelible::Error>(())
/// ```
pub trait PointsTo {
    /// The type of its target.
    type Target;
}

macro_rules! points_to {
    ($($ty:ty),*) => { $(impl<T> PointsTo for $ty { type Target = T; })* };
}

points_to!(*mut T, *const T, Option<NonNull<T>>, AtomicPtr<T>, Relative<T>, Far<T>);

impl<P: PointsTo, const N: usize> PointsTo for [P; N] {
    type Target = P::Target;
}
