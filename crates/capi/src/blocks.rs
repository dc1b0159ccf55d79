//! Transactional and on-demand objects for blocks that GCC compiles: libpmo-tm runs them, and
//! reports commits by the functions given here.

use crate::args::{array, borrow, bytes, fill, text};
use crate::block_heaps::{self as heaps, OfBlock};
use crate::guard::{Failure, Result, guarded, pmo_error_message};
use crate::handles::{pmo_pool, pool};
use crate::tm_interface::{Line, Object, Runtime, Telling, VERSION, Words};
use indelible::raw::{self, blocks};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

static ATTACHED: Mutex<BTreeMap<usize, extern "C" fn(usize) -> c_int>> = Mutex::new(BTreeMap::new());

extern "C" fn expose() {
    guarded((), || {
        blocks::expose();
        Ok(())
    });
}

extern "C" fn close(words: *const Words) -> *const c_char {
    said(|| {
        if words.is_null() {
            return Ok(blocks::close(None::<&mut OfBlock<'_>>)?);
        }
        // SAFETY: libpmo-tm gives the words of this thread's block.
        let words = unsafe { borrow(words, "block that runs on this thread") }?;
        Ok(blocks::close(Some(&mut OfBlock(words)))?)
    })
}

extern "C" fn shortage(addresses: *const usize, count: usize) -> u64 {
    // SAFETY: libpmo-tm has so many addresses.
    guarded(0, || Ok(blocks::shortage(unsafe { array(addresses, count, "list of lines") }?)?))
}

/// NULL, or the text of the error.
fn said(body: impl FnOnce() -> Result<()>) -> *const c_char {
    if guarded(false, || body().map(|()| true)) { null() } else { pmo_error_message() }
}

extern "C" fn make_room(address: usize, bytes: u64) -> *const c_char {
    said(|| Ok(blocks::make_room(address, bytes)?))
}

extern "C" fn tell(demand: usize, lines: *const Line, count: usize, telling: *mut Telling) -> *const c_char {
    said(|| {
        // SAFETY: libpmo-tm has so many lines.
        let lines = unsafe { array(lines, count, "list of lines") }?;
        let line = |line: &Line| blocks::Line { address: line.address, view: line.view, bytes: line.bytes };
        let told = match blocks::tell(demand, &lines.iter().map(line).collect::<Vec<_>>())? {
            blocks::Telling::Told(awaited) => Telling { awaited: u32::from(awaited), ..Telling::default() },
            blocks::Telling::Short(short) => Telling { short, ..Telling::default() },
        };
        // SAFETY: libpmo-tm has room for it.
        unsafe { fill(telling, told) }
    })
}

extern "C" fn stored() {
    guarded((), || {
        blocks::stored();
        Ok(())
    });
}

extern "C" fn wait(address: usize) -> *const c_char {
    said(|| Ok(blocks::wait(address)?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_for_blocks(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
    runtime: *const Runtime,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let runtime = unsafe { borrow(runtime, "run-time library") }?;
        if runtime.version != VERSION {
            return Err(Failure::argument("libpmo-tm is of another version than libpmo: install both anew"));
        }
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        let blocks::ForBlocks { address, view, checked, len, demand } =
            blocks::attach(&pool(handle)?, name, key)?;
        let (allocate, free, root, grow) = (heaps::allocate, heaps::free, heaps::root, heaps::grow);
        let object = Object {
            address,
            view,
            checked: usize::from(checked),
            len,
            demand,
            expose,
            close,
            shortage,
            make_room,
            tell,
            stored,
            wait,
            allocate,
            free,
            root,
            grow,
        };
        if (runtime.add)(&object) != 0 {
            raw::detach(std::ptr::without_provenance(address))?;
            return Err(Failure::argument("a block runs on this thread, or it has 64 objects already"));
        }
        ATTACHED.lock().unwrap_or_else(PoisonError::into_inner).insert(address, runtime.remove);
        Ok(std::ptr::with_exposed_provenance_mut(address))
    })
}

pub(crate) fn take_back(address: usize) -> Result<()> {
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(remove) = attached.get(&address) else { return Ok(()) };
    if remove(address) != 0 {
        return Err(Failure::argument("a block runs on this thread: detach its objects after it"));
    }
    attached.remove(&address);
    Ok(())
}
