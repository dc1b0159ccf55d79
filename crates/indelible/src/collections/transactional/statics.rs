//! Persistent variables: found by name and type, with an initial value the first time (S1.2).

use super::Value;
use crate::collections::layout::Layout;
use crate::collections::persist::Persist;
use crate::error::{Error, Result, TransactionError};
use crate::heap::TypeInfo;
use crate::pool::Pool;
use crate::{Plain, Tx, TxCell, TxHeap, TxPtr};
use std::mem::offset_of;
use std::sync::OnceLock;

const OBJECT: &str = "statics";
const SIZE: u64 = 1 << 16;

/// A variable that outlives the program: see [`persistent!`](crate::persistent).
pub struct Persistent<T> {
    name: &'static str,
    initial: T,
    described: OnceLock<Described>,
}

struct Described {
    name: String,
    layout: String,
    fingerprint: u128,
}

#[derive(Plain)]
#[repr(C)]
struct Made<T> {
    value: TxCell<T>,
    /// 0: not yet initialized.
    made: TxCell<u64>,
}

impl<T: Value + Persist<'static>> Persistent<T> {
    /// A variable of this name, in any pool.
    #[must_use]
    pub const fn new(name: &'static str, initial: T) -> Self {
        Persistent { name, initial, described: OnceLock::new() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The variable in a pool's statics, set to its initial value at first use.
    ///
    /// # Errors
    /// `RootType` if there is one of this name and another type, with the first difference;
    /// `HeapFull`, `Damaged`; as for [`transaction`](TxHeap::transaction).
    pub fn of<'s>(&self, statics: &'s TxHeap) -> Result<&'s TxCell<T>> {
        let made: TxPtr<Made<T>> = statics.transaction(|tx| self.made(tx, statics))?;
        Ok(&statics.value(made)?.value)
    }

    /// As [`of`](Persistent::of), within a transaction, which makes it on commit.
    ///
    /// # Errors
    /// `Conflict`: to be passed on. As for [`of`](Persistent::of).
    pub fn within<'t>(&self, tx: &mut Tx<'t>, statics: &TxHeap) -> Result<&'t TxCell<T>> {
        let made = self.made(tx, statics)?;
        Ok(&tx.at(made)?.value)
    }

    fn made(&self, tx: &mut Tx<'_>, statics: &TxHeap) -> Result<TxPtr<Made<T>>> {
        let Described { name, layout, fingerprint } = self.described.get_or_init(|| self.describe());
        let ty = TypeInfo { name, layout, fingerprint: *fingerprint };
        let root = statics.root_or_zero::<Made<T>>(tx, self.name, &ty)?;
        let at = tx.at(root)?;
        if tx.read(&at.made)? == 0 {
            tx.write(&at.value, self.initial)?;
            tx.write(&at.made, 1)?;
        }
        Ok(root)
    }

    fn describe(&self) -> Described {
        let mut layout = Layout::default();
        layout.define::<Made<T>>(&format!("static_{}", self.name), |members| {
            members.field::<T>("value", offset_of!(Made<T>, value));
            members.field::<u64>("made", offset_of!(Made<T>, made));
        });
        layout.finish();
        let words: Vec<String> = layout.stream.split(' ').map(as_in_c).collect();
        let (name, layout) = (format!("static {}", self.name), words.join(" "));
        let fingerprint = TypeInfo::described(&name, &layout).fingerprint;
        Described { name, layout, fingerprint }
    }
}

fn as_in_c(word: &str) -> String {
    let (letter, bits) = word.split_at(word.len().min(1));
    match (letter, bits) {
        ("u", "8" | "16" | "32" | "64") => format!("uint{bits}_t~ {word}"),
        ("i", "8" | "16" | "32" | "64") => format!("int{bits}_t~ {word}"),
        ("f", "32") => "float~ f32".to_owned(),
        ("f", "64") => "double~ f64".to_owned(),
        _ => word.to_owned(),
    }
}

impl<T> std::fmt::Debug for Persistent<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Persistent").field(&self.name).finish()
    }
}

impl Pool {
    /// The pool's persistent variables: the heap of its object `statics`, made if missing.
    ///
    /// # Errors
    /// As for [`transactional_heap`](Pool::transactional_heap).
    pub fn statics(&self) -> Result<TxHeap> {
        self.transactional_heap(OBJECT, SIZE)
    }
}

/// The persistent variables of the pool in the environment variable `PMO_POOL`.
///
/// # Errors
/// `NotFound` without it, or without that pool; as for [`Pool::open`] and [`Pool::statics`].
pub fn statics() -> Result<TxHeap> {
    let Some(path) = std::env::var_os("PMO_POOL") else {
        return Err(Error::new("attach the statics of a pool", TransactionError::NoPool));
    };
    Pool::open(path)?.statics()
}

/// Declares variables that outlive the program.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("p");
/// use indelible::{Pool, persistent};
///
/// persistent! {
///     /// How often this program was started.
///     static STARTS: u64 = 0;
///     pub static LIMITS: [i64; 2] = [10, 99];
/// }
///
/// let pool = Pool::format(&path, 16 << 20)?; // or `indelible::statics()`, of the pool that `PMO_POOL` names
/// let statics = pool.statics()?;
/// let (starts, limits) = (STARTS.of(&statics)?, LIMITS.of(&statics)?);
/// let [now, most] = statics.transaction(|tx| {
///     let now = tx.read(starts)? + 1;
///     tx.write(starts, now)?; // durable with the transaction
///     Ok::<_, indelible::Error>([now as i64, tx.read(limits)?[1]])
/// })?;
/// assert_eq!([now, most], [1, 99]);
/// # Ok::<(), indelible::Error>(())
/// ```
///
/// A variable is a root of the object `statics`, of the variable's name, with whole words of 8
/// bytes, as in a [`TxCell`](crate::TxCell). The first committed transaction that uses it sets its
/// initial value. C variables (`PMO_STATIC`) of the same name and type are the same.
#[macro_export]
macro_rules! persistent {
    ($($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $initial:expr;)+) => {
        $(
            $(#[$attribute])*
            $visible static $name: $crate::Persistent<$type> =
                $crate::Persistent::new(::core::stringify!($name), $initial);
        )+
    };
}
