//! Types of values that lie in objects: plain types, pointers between objects, descriptions.
//!
//! Programs use the crate `indelible`, which exports the public ones. The hidden modules are its
//! parts and have no stable interface. Nothing here knows pools, mappings or addresses of objects.

#![deny(unsafe_code)]

#[doc(hidden)]
pub mod entries;
#[doc(hidden)]
pub mod far;
#[doc(hidden)]
pub mod plain;
#[doc(hidden)]
pub mod relative;
#[doc(hidden)]
#[forbid(unsafe_code)]
pub mod types;

pub use far::{Far, FarEntry, FarTarget, Rights};
pub use indelible_derive::Plain;
pub use plain::Plain;
pub use relative::Relative;
