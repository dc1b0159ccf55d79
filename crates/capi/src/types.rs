use crate::guard::{Failure, Result};
use std::ffi::{c_char, c_int};

/// `struct pmo_field`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Field {
    pub name: *const c_char,
    pub ty: *const c_char,
    pub offset: usize,
    pub size: usize,
    pub nested: Option<extern "C" fn() -> *const Type>,
    pub target: Option<extern "C" fn() -> *const Type>,
}

/// `struct pmo_type`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Type {
    pub name: *const c_char,
    pub size: usize,
    pub fields: *const Field,
    pub count: usize,
    pub kind: c_int,
    pub align: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Struct,
    Scalar,
    Pointer,
    Array,
    Opaque,
    Extensions,
    Far,
}

impl Type {
    pub(crate) fn kind(&self) -> Result<Kind> {
        Ok(match self.kind {
            0 => Kind::Struct,
            1 => Kind::Scalar,
            2 => Kind::Pointer,
            3 => Kind::Array,
            4 => Kind::Opaque,
            5 => Kind::Extensions,
            6 => Kind::Far,
            other => return Err(Failure::argument(format!("a type of kind {other}"))),
        })
    }
}
