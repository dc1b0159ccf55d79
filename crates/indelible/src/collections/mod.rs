//! Data structures in an object's heap, like std's.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("words.pmo");
//! use indelible::collections::{PHashMap, PString};
//! use indelible::Pool;
//!
//! let mut heap = Pool::open_or_format(&path, 64 << 20)?.heap("words", 1 << 20)?;
//! let words = heap.root_or_default::<PHashMap<PString, u64>>("words")?;
//! *words.entry("hello").or_insert(0) += 1;
//! heap.psync()?; // the map, its table, its strings: one step
//! # assert_eq!(heap.root_mut::<PHashMap<PString, u64>>("words")?["hello"], 1);
//! # Ok::<(), indelible::Error>(())
//! ```
//!
//! In fields and signatures the lifetime is named, once for nested containers; an alias avoids it:
//!
//! ```
//! # use indelible::collections::{PHashMap, PString};
//! type Words<'h> = PHashMap<'h, PString<'h>, u64>;
//!
//! fn count(words: &mut Words<'_>, text: &str) {
//!     text.split_whitespace().for_each(|word| *words.entry(word).or_insert(0) += 1);
//! }
//! ```
//!
//! Types in an object are [`Persist`]; derive it for your own. Values have the lifetime of the
//! borrow of their [`Heap`](crate::Heap): they do not change during a psync, and one taken out of
//! an object is dropped, or stored again, before the psync that makes its absence durable.
//!
//! ```compile_fail,E0499
//! # use indelible::collections::PVec;
//! # fn example(heap: &mut indelible::Heap) -> indelible::Result<()> {
//! let list = heap.root_or_default::<PVec<u64>>("list")?;
//! heap.psync()?; // error: `heap` is borrowed
//! list.push(1);
//! # Ok(()) }
//! ```
//!
//! ```compile_fail,E0505
//! # use indelible::collections::PVec;
//! # fn example(mut heap: indelible::Heap) -> indelible::Result<()> {
//! let list = heap.root_or_default::<PVec<u64>>("list")?;
//! drop(heap); // error: `heap` is borrowed
//! list.push(1);
//! # Ok(()) }
//! ```
//!
//! ```compile_fail,E0499
//! # use indelible::collections::PVec;
//! # fn example(heap: &mut indelible::Heap) -> indelible::Result<()> {
//! let list = heap.root_or_default::<PVec<PVec<u64>>>("list")?;
//! let taken = list.pop();
//! heap.psync()?; // error: `taken` would be neither in the object nor freed
//! drop(taken);
//! # Ok(()) }
//! ```
//!
//! # When the heap is full
//! Methods that allocate panic; their `try_` versions return the error. Either way the container is
//! unchanged.
//!
//! # Explicit tracking
//! With [`Tracking::Explicit`](crate::Tracking::Explicit), collections mark their own stores, and
//! the targets of `&mut` references that they return. The program marks only stores through raw
//! pointers.
//!
//! # Damaged objects
//! Bytes are checked before they become a reference. `root_mut` and its like return damage as an
//! error of kind `Damaged`; damage found further inside is a panic that names it. SAFETY.md lists
//! damage that cannot be found.
//!
//! # Values of another heap
//! Storing a value of one borrowed heap in another panics. Assigning or swapping through `&mut`
//! goes unnoticed; the next access from a root calls the object damaged.

mod binary_heap;
mod boxed;
#[cfg(test)]
mod bulk;
mod duration;
mod extension;
mod extensions;
mod fields;
#[cfg(feature = "allocator-api2")]
mod foreign;
#[doc(hidden)]
pub mod format;
mod group;
mod hash_entry;
mod hash_iter;
mod hash_map;
mod hash_scan;
mod hash_set;
mod into_persist;
mod ip_addr;
mod key;
mod layout;
mod lock_word;
#[cfg(test)]
mod measured;
mod mutex;
mod node;
mod option;
mod ordered_entry;
mod ordered_map;
mod ordered_retain;
mod ordered_set;
mod parking;
mod persist;
mod place;
mod points_to;
mod rc;
mod record;
mod root_value;
mod roots;
mod search;
#[cfg(feature = "serde")]
mod serial;
mod set_algebra;
mod slots;
mod string;
mod table;
mod task_root;
pub mod transactional;
mod tree;
mod tree_iter;
mod tuples;
mod type_hash;
#[doc(hidden)]
pub mod variants;
mod vec;
mod vec_deque;
mod vec_deque_iter;
mod vec_deque_middle;
mod vec_drain;
mod vec_fill;
mod vec_iter;
mod vec_retain;
mod verify;

pub use binary_heap::PBinaryHeap;
pub use boxed::PBox;
pub use duration::PDuration;
#[doc(hidden)]
pub use extension::{Extendible, Extension, ExtensionType, Identity, expect, initial};
pub use extensions::Extensions;
#[doc(hidden)]
pub use extensions::{Expected, ExtensionList, Parts};
#[doc(hidden)]
pub use hash_entry::{Entry, OccupiedEntry, VacantEntry};
pub use hash_iter::{HashDrain, HashIntoIter, HashIter, HashIterMut, HashKeys, HashValues, HashValuesMut};
pub use hash_map::PHashMap;
pub use hash_set::PHashSet;
pub use into_persist::IntoPersist;
pub use ip_addr::PIpAddr;
pub use key::{Compare, KeyHash, Lookup, StableHash};
pub use layout::Layout;
pub use mutex::{PMutex, PMutexGuard, PReadGuard, PRwLock, PWriteGuard};
pub use option::POption;
pub use ordered_entry::{OrderedEntry, OrderedOccupied, OrderedVacant};
pub use ordered_map::PBTreeMap;
pub use ordered_set::PBTreeSet;
pub use persist::{Bounds, Persist};
pub use place::HeapRef;
pub use points_to::PointsTo;
pub use rc::PRc;
#[doc(hidden)]
pub use root_value::{OldValue, RootValue};
pub(crate) use roots::{Described, Describing};
#[doc(hidden)]
pub use search::Search;
#[cfg(feature = "serde")]
pub use serial::{DeserializeIn, InHeap};
pub use string::PString;
pub use task_root::TaskRoot;
pub use tree_iter::{TreeIntoIter, TreeIter, TreeIterMut, TreeKeys, TreeValues, TreeValuesMut};
pub use vec::PVec;
pub use vec_deque::PVecDeque;
pub use vec_deque_iter::{DequeIntoIter, DequeIter, DequeIterMut};
pub use vec_drain::{PDrain, PIntoIter};
pub use vec_iter::{PIter, PIterMut};
pub use verify::RootTypes;
