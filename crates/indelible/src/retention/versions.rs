//! Versions of a type, each converted from the one before. The chain is a type: a converter from
//! the wrong version does not compile. A root is matched against versions from the chain's end.

use crate::collections::{Described, Describing, HeapRef, OldValue, Persist, RootValue};
use crate::error::{Cause, Error, Result};
use crate::heap::{Heap, HeapError, Root};
use std::marker::PhantomData;

/// A converter's new value, or error.
pub type Converted<T> = std::result::Result<T, ConverterError>;

type ConverterError = Box<dyn std::error::Error + Send + Sync>;

/// Versions of a type: [`First`], or [`Then`].
pub trait Versions<'h>: Sized + sealed::Sealed {
    /// The version that the program uses.
    type Last: Persist<'h>;

    /// The root's value as the last version, if the root is of any version.
    #[doc(hidden)]
    fn take(self, root: &Opened<'_, 'h>) -> Result<Taken<'h, Self::Last>>;

    /// Names and fingerprints of the known versions.
    #[doc(hidden)]
    fn known() -> Vec<String>;
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for super::First<T> {}
    impl<B, F, T> Sealed for super::Then<B, F, T> {}
}

/// The oldest known version.
#[derive(Debug)]
pub struct First<T>(PhantomData<fn() -> T>);

/// A version converted from the one before.
#[derive(Debug)]
pub struct Then<B, F, T> {
    before: B,
    convert: F,
    to: PhantomData<fn() -> T>,
}

/// A root of an exclusively borrowed heap.
#[derive(Debug)]
pub struct Opened<'a, 'h> {
    pub(super) heap: &'a Heap,
    pub(super) place: HeapRef<'h>,
    pub(super) root: Root,
}

/// A root's value, as one version of its type.
pub enum Taken<'h, T> {
    /// The root is of that version.
    Stored(RootValue<'h, T>),
    /// Made from the root's value.
    Made(T, OldValue<'h>),
    /// The root is of no version up to this one.
    Unknown,
}

fn described<'h, T: Persist<'h>>() -> Described {
    Describing::of::<T>().describe()
}

fn known_as(described: &Described) -> String {
    let info = described.info();
    format!("{} (fingerprint {:032x})", info.name, info.fingerprint)
}

impl<'h> Opened<'_, 'h> {
    pub(super) fn stored<T: Persist<'h>>(&self) -> Result<Option<RootValue<'h, T>>> {
        match self.root.is(&described::<T>().info()) {
            true => self.heap.root_value(self.place, &self.root.name).map(Some),
            false => Ok(None),
        }
    }

    pub(super) fn error(&self, operation: &'static str, error: HeapError) -> Error {
        self.heap.attached().error(operation, Cause::Heap(error))
    }

    pub(super) fn unknown<C: Versions<'h>>(&self) -> Error {
        let mut difference = self.root.difference(&described::<C::Last>().info());
        let known = C::known();
        if !known.is_empty() {
            difference.push_str(&format!("The program converts from\n{}\n", known.join("\n")));
        }
        let name = self.root.name.clone();
        self.error("find a root in", HeapError::RootType { name, difference })
    }

    pub(super) fn converted<Old: Persist<'h>, New: Persist<'h>>(
        &self,
        result: Converted<New>,
    ) -> Result<New> {
        result.map_err(|error| self.failed::<Old, New>(error))
    }

    pub(super) fn failed<Old: Persist<'h>, New: Persist<'h>>(&self, error: ConverterError) -> Error {
        let error = match error.downcast::<Error>() {
            Ok(own) => return *own,
            Err(error) => error,
        };
        let (old, new) = (described::<Old>(), described::<New>());
        let step = format!("{} to {}", known_as(&old), known_as(&new));
        let (name, why) = (self.root.name.clone(), error.to_string());
        self.error("convert a root of", HeapError::Conversion { name, step, why })
    }
}

impl<T> First<T> {
    pub(super) fn new() -> First<T> {
        First(PhantomData)
    }
}

impl<B, F, T> Then<B, F, T> {
    pub(super) fn new(before: B, convert: F) -> Then<B, F, T> {
        Then { before, convert, to: PhantomData }
    }
}

impl<'h, T: Persist<'h>> Versions<'h> for First<T> {
    type Last = T;

    fn take(self, root: &Opened<'_, 'h>) -> Result<Taken<'h, T>> {
        Ok(root.stored()?.map_or(Taken::Unknown, Taken::Stored))
    }

    fn known() -> Vec<String> {
        Vec::new()
    }
}

impl<'h, B, F, T> Versions<'h> for Then<B, F, T>
where
    B: Versions<'h>,
    F: FnOnce(&B::Last, HeapRef<'h>) -> Converted<T>,
    T: Persist<'h>,
{
    type Last = T;

    fn take(self, root: &Opened<'_, 'h>) -> Result<Taken<'h, T>> {
        if let Some(value) = root.stored()? {
            return Ok(Taken::Stored(value));
        }
        let convert = |old: &B::Last| root.converted::<B::Last, T>((self.convert)(old, root.place));
        Ok(match self.before.take(root)? {
            Taken::Stored(value) => Taken::Made(convert(value.get())?, value.into_old()),
            // The version between is dropped, with its blocks.
            Taken::Made(value, old) => Taken::Made(convert(&value)?, old),
            Taken::Unknown => Taken::Unknown,
        })
    }

    fn known() -> Vec<String> {
        let mut known = B::known();
        known.push(known_as(&described::<B::Last>()));
        known
    }
}
