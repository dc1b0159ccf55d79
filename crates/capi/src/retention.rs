//! Roots whose types change between versions of a program: converted, or reset
//! (docs/decisions/0035-retention.md).

use crate::args::{array, borrow, text};
use crate::described::Described;
use crate::guard::{Failure, Result, forget_last, guarded, last_text};
use crate::types::Type;
use indelible::{ErrorKind, TypeInfo, raw};
use std::collections::HashSet;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// `struct pmo_converter`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Converter {
    pub from: *const Type,
    pub to: *const Type,
    pub convert: Option<extern "C" fn(*const c_void, *mut c_void, *mut c_void) -> c_int>,
    pub drop: Option<extern "C" fn(*mut c_void, *mut c_void)>,
    pub context: *mut c_void,
}

/// `struct pmo_reset`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Reset {
    pub root: *const c_char,
    pub old_type: *const c_char,
    pub new_type: *const c_char,
    pub blocks: u64,
    pub bytes: u64,
}

/// `struct pmo_root_options`.
#[repr(C)]
#[allow(missing_docs)]
pub struct RootOptions {
    pub converters: *const Converter,
    pub count: usize,
    pub make: Option<extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
    pub told: Option<extern "C" fn(*const Reset, *mut c_void)>,
    pub context: *mut c_void,
}

struct Step<'a> {
    converter: &'a Converter,
    from: Described,
    to: Described,
}

struct Opening<'a> {
    object: *const u8,
    name: &'a str,
    wanted: Described,
    options: &'a RootOptions,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_root_from(
    object: *mut c_void,
    name: *const c_char,
    ty: *const Type,
    options: *const RootOptions,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let opening = unsafe {
            let (name, wanted, options) =
                (text(name, "name")?, Described::of(ty)?, borrow(options, "options")?);
            Opening { object: object.cast(), name, wanted, options }
        };
        // SAFETY: the caller's promise.
        unsafe { opening.open() }.map(<*mut u8>::cast)
    })
}

impl Opening<'_> {
    unsafe fn open(&self) -> Result<*mut u8> {
        // SAFETY: the caller's promise.
        let error = match unsafe { raw::root(self.object, self.name, &self.wanted.info()) } {
            Ok(root) => return Ok(with_exposed_provenance_mut(root.address)),
            Err(error) => error,
        };
        match (error.kind(), self.options.make) {
            // SAFETY: the caller's promise.
            (ErrorKind::RootMissing, Some(_)) => unsafe { self.undone_if_it_fails(|| self.create()) },
            // SAFETY: the caller's promise.
            (ErrorKind::RootType, _) => unsafe { self.change(error) },
            _ => Err(error.into()),
        }
    }

    unsafe fn change(&self, error: indelible::Error) -> Result<*mut u8> {
        // SAFETY: the caller's promise.
        let (root, steps) = unsafe { (raw::root_any(self.object, self.name)?, self.steps()?) };
        match chain(&steps, root.info(), &self.wanted)? {
            // SAFETY: the caller's promise.
            Chain::Whole(chain) => unsafe { self.convert(&chain, with_exposed_provenance_mut(root.address)) },
            // SAFETY: the caller's promise.
            Chain::EndsAt(_) if self.options.told.is_some() => unsafe { self.reset(&root) },
            Chain::EndsAt(last) => Err(Failure::root_type(match last {
                Some(last) => format!("{error}\nthe converters end at {last}"),
                None => error.to_string(),
            })),
        }
    }

    unsafe fn steps(&self) -> Result<Vec<Step<'_>>> {
        // SAFETY: the caller's promise.
        let converters = unsafe { array(self.options.converters, self.options.count, "converters") }?;
        let read = |converter: &'_ Converter| {
            // SAFETY: the caller's promise.
            unsafe { Ok((Described::of(converter.from)?, Described::of(converter.to)?)) }
        };
        let step = |converter| read(converter).map(|(from, to)| Step { converter, from, to });
        converters.iter().map(step).collect()
    }

    /// Zeroed, for a value.
    unsafe fn block(&self, of: &Described) -> Result<*mut u8> {
        let (size, align) = (of.size, of.align.max(16));
        // SAFETY: the caller's promise; the block is as long.
        unsafe {
            let block = raw::aligned(self.object, align, size)?.as_ptr();
            block.write_bytes(0, size);
            raw::mark_dirty(block, size)?;
            Ok(block)
        }
    }

    unsafe fn made(&self) -> Result<*mut u8> {
        // SAFETY: the caller's promise.
        let value = unsafe { self.block(&self.wanted) }?;
        let make = self.options.make.ok_or_else(|| Failure::argument("no function makes the new value"))?;
        forget_last();
        match make(value.cast(), self.options.context) {
            0 => Ok(value),
            result => Err(self.failed("making its value", result)),
        }
    }

    unsafe fn create(&self) -> Result<*mut u8> {
        // SAFETY: the caller's promise.
        unsafe {
            let value = self.made()?;
            let size = self.wanted.size as u64;
            raw::create_root(self.object, self.name, value, size, &self.wanted.info())?;
            Ok(value)
        }
    }

    unsafe fn replace(&self, value: *mut u8) -> Result<()> {
        let size = self.wanted.size as u64;
        // SAFETY: the caller's promise.
        Ok(unsafe { raw::replace_root(self.object, self.name, value, size, &self.wanted.info()) }?)
    }

    unsafe fn convert(&self, chain: &[&Step<'_>], first: *mut u8) -> Result<*mut u8> {
        let mut old = Vec::with_capacity(chain.len());
        // SAFETY: the caller's promise.
        unsafe {
            let stays = self.is_in_block_of_another(first)?;
            let value = self.undone_if_it_fails(|| {
                let last = self.last_version(chain, first, &mut old)?;
                self.replace(last)?;
                Ok(last)
            })?;
            for (converter, value) in &old {
                converter.drop.iter().for_each(|drop| drop(value.cast(), converter.context));
            }
            let blocks = old.into_iter().map(|(_, value)| value);
            free_all(blocks.filter(|block| *block != first || !stays))?;
            Ok(value)
        }
    }

    unsafe fn last_version<'c>(
        &self,
        chain: &[&Step<'c>],
        first: *mut u8,
        old: &mut Vec<(&'c Converter, *mut u8)>,
    ) -> Result<*mut u8> {
        let mut value = first;
        for Step { converter, from, to } in chain {
            let convert = converter.convert.ok_or_else(|| Failure::argument("a converter is NULL"))?;
            // SAFETY: the caller's promise.
            let next = unsafe { self.block(to) }?;
            forget_last();
            let result = convert(value.cast(), next.cast(), converter.context);
            if result != 0 {
                let what = format!("converting {} to {}", version(from), version(to));
                return Err(self.failed(&what, result));
            }
            old.push((*converter, value));
            value = next;
        }
        Ok(value)
    }

    unsafe fn reset(&self, root: &indelible::Root) -> Result<*mut u8> {
        // SAFETY: the caller's promise.
        unsafe {
            let blocks = raw::value_blocks(self.object, self.name)?;
            let bytes = blocks.iter().map(|block| raw::usable_size(*block).map(|size| size as u64));
            let bytes = bytes.sum::<indelible::Result<u64>>()?;
            let value = self.undone_if_it_fails(|| {
                let value = self.made()?;
                self.replace(value)?;
                Ok(value)
            })?;
            let count = blocks.len() as u64;
            free_all(blocks)?;
            let string = |text: &str| CString::new(text).unwrap_or_default();
            let (name, old, new) = (string(self.name), string(&root.type_name), string(&self.wanted.name));
            let reset = Reset {
                root: name.as_ptr(),
                old_type: old.as_ptr(),
                new_type: new.as_ptr(),
                blocks: count,
                bytes,
            };
            self.options.told.iter().for_each(|told| told(&raw const reset, self.options.context));
            Ok(value)
        }
    }

    /// Whether the root's value lies inside a block, or another root shares the block: the block
    /// then stays.
    unsafe fn is_in_block_of_another(&self, value: *mut u8) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe {
            let Ok(size) = raw::usable_size(value) else { return Ok(true) };
            let block = value.addr()..value.addr() + size;
            let roots = raw::roots(self.object)?;
            Ok(roots.iter().any(|root| root.name != self.name && block.contains(&root.address)))
        }
    }

    /// If `body` fails, frees all blocks that it left: converters need not clean up.
    unsafe fn undone_if_it_fails(&self, body: impl FnOnce() -> Result<*mut u8>) -> Result<*mut u8> {
        // SAFETY: the caller's promise.
        let before: HashSet<usize> =
            unsafe { raw::blocks(self.object) }?.iter().map(|block| block.address).collect();
        let result = body();
        if result.is_err() {
            // SAFETY: no other thread uses the heap, by the caller's promise: the new blocks are
            // the converters'.
            unsafe {
                for block in raw::blocks(self.object)? {
                    if !before.contains(&block.address) {
                        raw::free(with_exposed_provenance_mut(block.address))?;
                    }
                }
            }
        }
        result
    }

    fn failed(&self, what: &str, result: c_int) -> Failure {
        let why = last_text().map_or(String::new(), |text| format!(": {text}"));
        Failure::root_type(format!(
            "root {:?}: {what} failed: its function returned {result}{why}",
            self.name
        ))
    }
}

/// # Errors
/// The first failure. The root keeps its new value.
///
/// # Safety
/// As for [`raw::free`].
unsafe fn free_all(blocks: impl IntoIterator<Item = *mut u8>) -> Result<()> {
    // SAFETY: the caller's promise.
    let results: Vec<_> = blocks.into_iter().map(|block| unsafe { raw::free(block) }).collect();
    Ok(results.into_iter().collect::<indelible::Result<()>>()?)
}

enum Chain<'a, 'b> {
    Whole(Vec<&'a Step<'b>>),
    EndsAt(Option<String>),
}

fn version(of: &Described) -> String {
    format!("{} (fingerprint {:032x})", of.name, of.fingerprint)
}

fn chain<'a, 'b>(steps: &'a [Step<'b>], from: TypeInfo<'a>, wanted: &Described) -> Result<Chain<'a, 'b>> {
    let (mut at, mut chain) = (from, Vec::new());
    while !at.is_that_of(&wanted.info()) {
        let Some(step) = steps.iter().find(|step| at.is_that_of(&step.from.info())) else {
            return Ok(Chain::EndsAt(chain.last().map(|step: &&Step<'_>| version(&step.to))));
        };
        if chain.len() == steps.len() {
            return Err(Failure::argument("the converters lead back to a version before"));
        }
        chain.push(step);
        at = step.to.info();
    }
    Ok(Chain::Whole(chain))
}
