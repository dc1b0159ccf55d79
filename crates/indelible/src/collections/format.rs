//! Layouts and constants for the test of FORMAT.md.

use super::extensions::HEADER;
use super::fields::Field;
use super::mutex::PMutex;
use super::option::POption;
use super::table::Table;
use super::tree::Tree;
use super::vec::PVec;
use super::vec_deque::PVecDeque;
use super::{group, node};

/// Constants by name.
pub const CONSTANTS: [(&str, u64); 9] = [
    ("VERSION", crate::types::VERSION as u64),
    ("BYTE_KEYS", crate::types::BYTE_KEYS as u64),
    ("GROUP", group::GROUP as u64),
    ("EMPTY", group::EMPTY as u64),
    ("REMOVED", group::REMOVED as u64),
    ("KEYS", node::KEYS as u64),
    ("LEAST", node::LEAST as u64),
    ("LEVELS", node::LEVELS as u64),
    ("EXTENSIONS", crate::types::EXTENSIONS as u64),
];

/// Structs by name, with fields and size, for 64-bit keys and values.
pub const STRUCTS: [(&str, &[Field], usize); 9] = [
    ("collections::PVec", PVec::<'static, u64>::FIELDS, size_of::<PVec<'static, u64>>()),
    ("collections::PVecDeque", PVecDeque::<'static, u64>::FIELDS, size_of::<PVecDeque<'static, u64>>()),
    ("collections::POption", POption::<u64>::FIELDS, size_of::<POption<u64>>()),
    ("collections::Table", Table::<'static, u64, u64>::FIELDS, size_of::<Table<'static, u64, u64>>()),
    ("collections::Tree", Tree::<'static, u64, u64>::FIELDS, size_of::<Tree<'static, u64, u64>>()),
    ("collections::Leaf", node::Node::<u64, u64>::LEAF, node::Node::<u64, u64>::size(0)),
    ("collections::Inner", node::Node::<u64, u64>::INNER, node::Node::<u64, u64>::size(1)),
    ("collections::Lock", PMutex::<'static, u64>::FIELDS, size_of::<PMutex<'static, u64>>()),
    ("collections::Extension", HEADER, size_of::<crate::heap::Header>()),
];
