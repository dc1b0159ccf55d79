use super::persist::Persist;
use super::place;
use super::roots::{Described, Describing};
use crate::error::Result;
use crate::heap::{HeapError, nested};
use crate::types::fingerprints_are_broken;
use std::sync::OnceLock;

/// One extension of a struct. It owns nothing.
pub trait Extension: Copy + Persist<'static> {
    /// The struct's name.
    const OF: &'static str;
    /// Place in the chain, from 1.
    const NUMBER: usize;

    /// The type's identity while the program runs.
    fn identity() -> &'static Identity;
}

/// A struct that has extensions.
pub trait Extendible<'h>: Persist<'h> {
    /// Its extensions' types, in order.
    fn extension_types() -> Vec<ExtensionType>;
}

/// The number of an extension type, once requested.
#[derive(Debug)]
pub struct Identity(OnceLock<u64>);

/// Describes an extension.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionType(Describing);

impl Identity {
    /// Not known yet.
    #[must_use]
    pub const fn new() -> Identity {
        Identity(OnceLock::new())
    }
}

impl Default for Identity {
    fn default() -> Self {
        Identity::new()
    }
}

impl ExtensionType {
    /// The description of `E`.
    #[must_use]
    pub fn of<E: Extension>() -> ExtensionType {
        ExtensionType(Describing::of::<E>())
    }

    pub(crate) fn describe(self) -> Described {
        self.0.describe()
    }
}

#[inline]
pub(super) fn identity<E: Extension>() -> u64 {
    let compute = || Describing::of::<E>().describe().info().fingerprint as u64;
    if fingerprints_are_broken() { compute() } else { *E::identity().0.get_or_init(compute) }
}

#[cold]
pub(super) fn differs<E: Extension>(own: usize, size: u64, found: u64) -> HeapError {
    let described = Describing::of::<E>().describe();
    let lines = described.read().map(|of| of.lines()).unwrap_or_default();
    let (of, number, own, known) = (E::OF.to_owned(), E::NUMBER, own as u64, identity::<E>());
    HeapError::ExtensionType { of, number, size, found, own, known, lines }
}

/// A field's initial value, computed from the extended struct.
///
/// # Panics
/// If initial values are computed from each other.
pub fn initial<B, T>(init: impl FnOnce(&B) -> T, base: &B) -> T {
    match nested(|| init(base)) {
        Ok(value) => value,
        Err(_) => panic!("initial values of extensions are computed from each other, without an end"),
    }
}

/// The result; panics with the error's text.
#[inline]
pub fn expect<T>(result: Result<T>) -> T {
    place::expect(result)
}
