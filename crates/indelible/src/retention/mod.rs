//! Data that survive a change of their types.
//!
//! A root keeps the description of its type. A program whose types have changed since gets an error
//! that names the first difference, until it decides about the data, root by root:
//! [`Heap::root_from`](crate::Heap::root_from) opens a root of any version that there are
//! converters for, and resets others on request. [`Heap::migrate_vec`](crate::Heap::migrate_vec)
//! and [`migrate_map`](crate::Heap::migrate_map) convert large containers in steps. A struct that
//! is [`extendible`] gets further fields without any of it: in place, when they are first stored
//! to.

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
