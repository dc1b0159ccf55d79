use crate::args::{borrow, flags, text};
use crate::guard::{Failure, Result};
use indelible::{MediumKind, PoolOptions, Tracking};
use std::ffi::{c_char, c_uint};

const READ_ONLY: c_uint = 1;
const FORCE: c_uint = 2;
pub(crate) const ALLOW_REMOTE: c_uint = 4;
const UNTRUSTED: c_uint = 8;
const FAULT_IN: c_uint = 16;
const INHERIT_READS: c_uint = 32;

const MEDIA: [MediumKind; 5] =
    [MediumKind::Auto, MediumKind::File, MediumKind::Memory, MediumKind::Dax, MediumKind::DevDax];
const TRACKINGS: [Tracking; 5] =
    [Tracking::Auto, Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit, Tracking::FaultLog];

fn number<T: PartialEq>(kinds: &[T], kind: T) -> u32 {
    kinds.iter().position(|known| *known == kind).unwrap_or(0) as u32
}

pub(crate) fn medium_number(medium: MediumKind) -> u32 {
    number(&MEDIA, medium)
}

pub(crate) fn tracking_number(tracking: Tracking) -> u32 {
    number(&TRACKINGS, tracking)
}

fn unknown(what: &str, kind: u32) -> Failure {
    Failure::argument(format!("there is no {what} {kind}"))
}

pub(crate) fn tracking(kind: u32) -> Result<Tracking> {
    TRACKINGS.get(kind as usize).copied().ok_or_else(|| unknown("tracking", kind))
}

/// `struct pmo_pool_options`.
#[repr(C)]
#[allow(missing_docs)]
pub struct PoolWith {
    pub flags: u32,
    pub medium: u32,
    pub tracking: u32,
    pub reserved: u32,
    pub window_start: u64,
    pub window_len: u64,
    pub ahead_limit: u64,
    pub memory_limit: u64,
    pub label: *const c_char,
}

pub(crate) fn flagged(with: c_uint, known: c_uint) -> Result<PoolOptions> {
    flags(with & !known, [])?;
    let has = |flag: c_uint| with & flag != 0;
    let options =
        PoolOptions::new().read_only(has(READ_ONLY)).force(has(FORCE)).allow_remote(has(ALLOW_REMOTE));
    Ok(options.untrusted(has(UNTRUSTED)).fault_in(has(FAULT_IN)).inherit_reads(has(INHERIT_READS)))
}

/// # Safety
/// NULL, or valid options.
pub(crate) unsafe fn options(with: *const PoolWith, known: c_uint) -> Result<PoolOptions> {
    // SAFETY: the caller's promise.
    let with = unsafe { borrow(with, "struct of options") }?;
    if with.reserved != 0 {
        return Err(Failure::argument("the reserved field of the options is not 0"));
    }
    let medium = MEDIA.get(with.medium as usize).ok_or_else(|| unknown("medium", with.medium))?;
    let mut options = flagged(with.flags, known)?.medium(*medium).tracking(tracking(with.tracking)?);
    if (with.window_start, with.window_len) != (0, 0) {
        options = options.window(with.window_start, with.window_len);
    }
    if with.ahead_limit != 0 {
        options = options.ahead_limit(with.ahead_limit);
    }
    if with.memory_limit != 0 {
        options = options.memory_limit(with.memory_limit);
    }
    if !with.label.is_null() {
        // SAFETY: the caller's promise.
        options = options.label(unsafe { text(with.label, "label") }?);
    }
    Ok(options)
}

pub(crate) const OPEN: c_uint = READ_ONLY | ALLOW_REMOTE;
pub(crate) const FORMAT: c_uint = FORCE | ALLOW_REMOTE;
pub(crate) const LATER: c_uint = UNTRUSTED | FAULT_IN | INHERIT_READS;
