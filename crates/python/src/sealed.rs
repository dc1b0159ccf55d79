//! Changes of detached sealed objects: methods of `indelible.Pool`.

use crate::keys::Keys;
use crate::pool::Pool;
use crate::seal_key::{SealKey, sign_key};
use pyo3::prelude::*;
use std::path::PathBuf;

/// See `Pool.resize`.
#[pyfunction]
pub(crate) fn _resize(
    pool: &Bound<'_, Pool>,
    name: &str,
    size: u64,
    key: Option<&[u8]>,
    seal: Option<&Bound<'_, SealKey>>,
) -> PyResult<()> {
    let keys = Keys::new(key, seal);
    pool.get().with(pool.py(), "resize", |pool| {
        keys.with(|key| pool.resize(name, size, key), |key, seal| pool.resize_sealed(name, size, key, seal))
    })
}

/// See `Pool.rename`.
#[pyfunction]
pub(crate) fn _rename(
    pool: &Bound<'_, Pool>,
    name: &str,
    new: &str,
    key: Option<&[u8]>,
    seal: Option<&Bound<'_, SealKey>>,
) -> PyResult<()> {
    let keys = Keys::new(key, seal);
    pool.get().with(pool.py(), "rename", |pool| {
        keys.with(|key| pool.rename(name, new, key), |key, seal| pool.rename_sealed(name, new, key, seal))
    })
}

/// See `Pool.reencrypt`.
#[pyfunction]
pub(crate) fn _reencrypt(
    pool: &Bound<'_, Pool>,
    name: &str,
    seals: Vec<Bound<'_, SealKey>>,
    key: Option<&[u8]>,
) -> PyResult<()> {
    let seals: Vec<&indelible::SealKey> = seals.iter().map(|seal| &seal.get().key).collect();
    let key = key.unwrap_or_default();
    pool.get().with(pool.py(), "give another key to", |pool| pool.reencrypt(name, key, &seals, |_, _| {}))
}

/// See `Pool.renew_key`.
#[pyfunction]
pub(crate) fn _renew_key(
    pool: &Bound<'_, Pool>,
    name: &str,
    new: &Bound<'_, SealKey>,
    seal: &Bound<'_, SealKey>,
    key: Option<&[u8]>,
) -> PyResult<()> {
    let (seal, new, key) = (&seal.get().key, &new.get().key, key.unwrap_or_default());
    pool.get().with(pool.py(), "give another key to", |pool| pool.renew_key(name, key, seal, new, |_, _| {}))
}

/// See `Pool.bind_name`.
#[pyfunction]
pub(crate) fn _bind_name(
    pool: &Bound<'_, Pool>,
    name: &str,
    seal: &Bound<'_, SealKey>,
    key: Option<&[u8]>,
) -> PyResult<()> {
    let (key, seal) = (key.unwrap_or_default(), &seal.get().key);
    pool.get().with(pool.py(), "bind the name of", |pool| pool.bind_name(name, key, seal))
}

/// See `Pool.set_anchor`.
#[pyfunction]
pub(crate) fn _set_anchor(
    pool: &Bound<'_, Pool>,
    name: &str,
    seal: &Bound<'_, SealKey>,
    key: Option<&[u8]>,
) -> PyResult<()> {
    let (key, seal) = (key.unwrap_or_default(), &seal.get().key);
    pool.get().with(pool.py(), "set the anchor of", |pool| pool.set_anchor(name, key, seal))
}

/// See `Pool.change_signer`.
#[pyfunction]
pub(crate) fn _change_signer(
    pool: &Bound<'_, Pool>,
    name: &str,
    path: PathBuf,
    seal: &Bound<'_, SealKey>,
    key: Option<&[u8]>,
) -> PyResult<()> {
    let (key, seal, new) = (key.unwrap_or_default(), &seal.get().key, sign_key(pool.py(), &path)?);
    pool.get().with(pool.py(), "change the sign key of", |pool| pool.change_signer(name, key, seal, &new))
}
