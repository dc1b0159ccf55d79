//! Data structures that transactions change, in the heap of a transactional object.
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
//! use indelible::collections::transactional::{TxHashMap, TxQueue};
//!
//! let heap = pool.transactional_heap("orders", 4 << 20)?;
//! let stock = heap.root_or_default::<TxHashMap<u64, u64>>("stock")?;
//! let sold = heap.root_or_default::<TxQueue<u64>>("sold")?;
//! heap.transaction(|tx| stock.insert(tx, 7, 100).map(drop))?;
//!
//! // Both or neither, and durable when it returns.
//! let left = heap.transaction(|tx| {
//!     let Some(left) = stock.get(tx, 7)?.and_then(|there| there.checked_sub(1)) else { return Ok(None) };
//!     stock.insert(tx, 7, left)?;
//!     sold.push(tx, 7)?;
//!     Ok::<_, indelible::Error>(Some(left))
//! })?;
//! assert_eq!(left, Some(99));
//! # Ok::<(), indelible::Error>(())
//! ```
//!
//! Values are [`Plain`] and `Copy`, and have whole words of 8 bytes, as in a
//! [`TxCell`](crate::TxCell): 64-bit numbers, [`TxPtr`](crate::TxPtr)s, arrays and structs of
//! these. A collection is a value of cells: a root, or a field of a struct of cells in a block,
//! empty if all zeros. [`clear`](TxList::clear) it before dropping its root or freeing its block,
//! which free nothing of it.
//!
//! Every method takes the transaction; the caller must pass its errors on. A full heap in the midst
//! of a change undoes the transaction, whatever its closure returns.

mod counted;
mod hash_map;
mod list;
mod ordered_map;
mod queue;
mod roots;
mod statics;
mod steps;
mod vec;

pub use counted::TxCountedMap;
pub use hash_map::TxHashMap;
pub use list::TxList;
pub use ordered_map::TxOrderedMap;
pub use queue::TxQueue;
pub use statics::{Persistent, statics};
pub use vec::TxVec;

use crate::plain::Plain;

/// Values of transactional collections.
pub trait Value: Plain + Copy + 'static {}

impl<T: Plain + Copy + 'static> Value for T {}
