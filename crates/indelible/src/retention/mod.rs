//! Data that survive a change of their types (docs/decisions/0035-retention.md).
//!
//! A root keeps the description of its type. A program whose types have changed since gets an error that names the first
//! difference, until it says what is to become of the data.

mod comparison;
mod declared;
mod definition;

pub use comparison::Comparison;
pub use definition::{FieldDefinition, TypeDefinition, VariantDefinition};
