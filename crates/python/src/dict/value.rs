//! Values of a dict: as they lie in the heap, on their way in, and on their way out.

use indelible::collections::{HeapRef, IntoPersist, PString, PVec};
use indelible::{Error, Persist};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};
use std::ptr::from_ref;

/// The unit of blocks with arrays: elements are aligned to it.
#[derive(Clone, Copy, Persist)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; 64]);

pub(super) const LINE: usize = size_of::<Line>();

/// A block with an array. The vector's length is 0: its room holds header and elements, which
/// Python stores through a [`Block`](crate::block::Block).
pub(super) type Room<'h> = PVec<'h, Line>;

pub(super) fn extent(room: &Room<'_>) -> (usize, usize) {
    (room.as_ptr().addr(), room.capacity() * LINE)
}

#[derive(Persist)]
#[repr(C, u8)]
pub(super) enum Value<'h> {
    /// The key was deleted.
    Removed,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(PString<'h>),
    Bytes(PVec<'h, u8>),
    /// Any other value, encoded by `_tree.py`.
    Tree(PVec<'h, u8>),
    Array(Room<'h>),
}

impl Value<'_> {
    /// The assigned words, among which addresses may be: address and bytes. The rest of the entry
    /// is undefined.
    pub(super) fn words(&self) -> Option<(usize, usize)> {
        match self {
            Value::Int(value) => Some((from_ref(value).addr(), size_of::<i64>())),
            Value::Float(value) => Some((from_ref(value).addr(), size_of::<f64>())),
            Value::Bytes(bytes) => Some((bytes.as_ptr().addr(), bytes.len())),
            Value::Array(room) => Some(extent(room)),
            Value::Removed | Value::None | Value::Bool(_) | Value::Str(_) | Value::Tree(_) => None,
        }
    }

    /// The address of bytes that are no words, where four letters, or numbers at any byte, may look
    /// like addresses.
    pub(super) fn letters(&self) -> Option<usize> {
        match self {
            Value::Str(text) => Some(text.as_ptr().addr()),
            Value::Tree(bytes) => Some(bytes.as_ptr().addr()),
            _ => None,
        }
    }
}

/// A value on its way in.
pub(crate) enum New<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'a str),
    Bytes(&'a [u8]),
    Tree(&'a [u8]),
    /// The address of an unlinked block of the dict.
    Array(usize),
}

impl New<'_> {
    pub(super) fn size(&self) -> usize {
        match self {
            New::Str(text) => text.len(),
            New::Bytes(bytes) | New::Tree(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// The value with a block of its own; `None` for an array, which has one.
    pub(super) fn copy_into<'h>(&self, heap: HeapRef<'h>) -> Result<Option<Value<'h>>, Error> {
        let bytes = |bytes: &[u8]| {
            let mut copy = PVec::new_in(heap);
            copy.try_append(bytes)?;
            Ok(copy)
        };
        Ok(Some(match self {
            New::None => Value::None,
            New::Bool(value) => Value::Bool(*value),
            New::Int(value) => Value::Int(*value),
            New::Float(value) => Value::Float(*value),
            New::Str(text) => Value::Str(text.into_persist(heap)?),
            New::Bytes(value) => Value::Bytes(bytes(value)?),
            New::Tree(value) => Value::Tree(bytes(value)?),
            New::Array(_) => return Ok(None),
        }))
    }
}

/// A value on its way out: a Python object, or bytes that Python code converts.
pub(super) enum Found {
    Object(Py<PyAny>),
    Tree(Py<PyAny>),
    /// A block: address and bytes.
    Array(usize, usize),
}

impl Found {
    /// Makes only objects without references to others, for which Python runs no foreign code.
    pub(super) fn of(py: Python<'_>, value: &Value<'_>) -> Found {
        let object = match value {
            Value::Removed | Value::None => py.None(),
            Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any().unbind(),
            Value::Int(value) => PyInt::new(py, *value).into_any().unbind(),
            Value::Float(value) => PyFloat::new(py, *value).into_any().unbind(),
            Value::Str(text) => PyString::new(py, text).into_any().unbind(),
            Value::Bytes(bytes) => PyBytes::new(py, bytes.as_slice()).into_any().unbind(),
            Value::Tree(bytes) => return Found::Tree(PyBytes::new(py, bytes.as_slice()).into_any().unbind()),
            Value::Array(room) => {
                let (address, len) = extent(room);
                return Found::Array(address, len);
            }
        };
        Found::Object(object)
    }

    /// Its bytes, roughly.
    pub(super) fn weight(value: &Value<'_>) -> usize {
        match value {
            Value::Str(text) => text.len(),
            Value::Bytes(bytes) | Value::Tree(bytes) => bytes.len(),
            _ => 16,
        }
    }
}
