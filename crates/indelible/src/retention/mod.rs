//! Data that survive changes of their types.
//!
//! A root keeps its type's description. A program with a changed type gets an error that names the
//! first difference, and decides root by root: [`Heap::root_from`](crate::Heap::root_from) converts
//! or resets a root. [`Heap::migrate_vec`](crate::Heap::migrate_vec) and
//! [`migrate_map`](crate::Heap::migrate_map) convert large containers in steps. An [`extendible`]
//! struct gains fields in place, when they are first stored to.

mod comparison;
mod declared;
mod definition;
mod layout_lock;
mod pairs;
mod reset;
mod root_from;
mod steps;
mod versions;

pub use crate::collections::Extensions;
#[doc(hidden)]
pub use crate::collections::{Extendible, Extension, ExtensionType, Identity, expect, initial};
pub use comparison::Comparison;
pub use definition::{FieldDefinition, TypeDefinition, VariantDefinition};
pub use indelible_derive::extendible;
pub use layout_lock::{LayoutError, LayoutLock};
pub use pairs::Pairs;
pub use reset::{Reclaimable, Reset};
pub use root_from::{OrReset, RootFrom};
pub use steps::{Migrating, Progress};
pub use versions::{Converted, First, Then, Versions};
