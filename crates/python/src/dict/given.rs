//! Keys and values as callers give them.

use super::table::KEY_MAX;
use super::value::New;
use super::{Dict, values};
use crate::block::Block;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};
use std::sync::Arc;

/// Keeps what a [`New`] borrows from.
pub(super) enum Given<'py> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Bound<'py, PyString>),
    Bytes(Bound<'py, PyBytes>),
    Tree(Bound<'py, PyBytes>),
    Array(Bound<'py, Block>),
}

impl Given<'_> {
    pub(super) fn as_new(&self) -> PyResult<New<'_>> {
        Ok(match self {
            Given::None => New::None,
            Given::Bool(value) => New::Bool(*value),
            Given::Int(value) => New::Int(*value),
            Given::Float(value) => New::Float(*value),
            Given::Str(text) => New::Str(text.to_str()?),
            Given::Bytes(bytes) => New::Bytes(bytes.as_bytes()),
            Given::Tree(bytes) => New::Tree(bytes.as_bytes()),
            Given::Array(block) => New::Array(block.get().address),
        })
    }
}

/// A value of exactly a type with a kind of its own.
fn plain<'py>(value: &Bound<'py, PyAny>) -> Option<Given<'py>> {
    if value.is_none() {
        return Some(Given::None);
    }
    if let Ok(number) = value.cast_exact::<PyInt>() {
        return number.extract().ok().map(Given::Int);
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Some(Given::Float(number.value()));
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Some(Given::Str(text.clone()));
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return Some(Given::Bytes(bytes.clone()));
    }
    value.cast_exact::<PyBool>().ok().map(|truth| Given::Bool(truth.is_true()))
}

/// A key; fails if it is not valid text.
pub(super) fn text<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    let Ok(key) = key.cast::<PyString>() else {
        let kind = key.get_type().name()?;
        return Err(PyTypeError::new_err(format!("keys are str, not {kind}")));
    };
    let text = key.to_str()?;
    if text.len() > KEY_MAX {
        let message = format!("a key of {} bytes; at most {KEY_MAX} can be kept", text.len());
        return Err(PyValueError::new_err(message));
    }
    Ok(text)
}

impl Dict {
    /// The value to store; `None` if the key has this very value.
    pub(super) fn given<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Given<'py>>> {
        // A text of numpy is stored as Python's.
        if key.cast_exact::<PyString>().is_err() && key.get_type().module()? != "numpy" {
            let kind = key.get_type().fully_qualified_name()?;
            return Err(PyTypeError::new_err(format!(
                "a key of type {kind} cannot be kept: it is a subclass and would come back as str (use str(key))"
            )));
        }
        if let Some(given) = plain(value) {
            return Ok(Some(given));
        }
        let py = slf.py();
        let prepared = values(py)?.getattr(intern!(py, "prepare"))?.call1((slf, key, value))?;
        if prepared.is(slf) {
            return Ok(None);
        }
        if let Ok(block) = prepared.cast::<Block>() {
            if !Arc::ptr_eq(&block.get().attachment, &slf.get().attachment) {
                return Err(PyValueError::new_err("a block of another object"));
            }
            return Ok(Some(Given::Array(block.clone())));
        }
        if let Ok(tree) = prepared.cast::<PyTuple>() {
            return Ok(Some(Given::Tree(tree.get_item(0)?.cast_into::<PyBytes>()?)));
        }
        plain(&prepared).map(Some).ok_or_else(|| PyTypeError::new_err("a value that was not prepared"))
    }
}
