//! Persistent objects of blocks, attached by pmo/blocks.h. Compiled code names them by their own,
//! inaccessible addresses; blocks use another mapping.
//!
//! # Invariants
//!
//! 1. The table changes while the changing thread is alone: no block runs. A slot below the count
//!    has an attached object whose mapping may be loaded and stored.
//! 2. An object's functions are those of the library that attached it, which outlives the object.

use crate::blocks::{Thread, fatal};
use crate::heaps::WORDS;
use crate::tm_interface::{Line, Object, Runtime, Telling, VERSION};
use indelible_stm::WriteSet;
use indelible_stm::pairs::{self, halves};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

static RUNTIME: Runtime = Runtime { version: VERSION, reserved: 0, add, remove };

const MOST: usize = 64;

struct Slot {
    address: AtomicUsize,
    view: AtomicUsize,
    checked: AtomicUsize,
    len: AtomicUsize,
    demand: AtomicUsize,
}

impl Slot {
    const fn empty() -> Slot {
        let [address, view, checked, len, demand] = [const { AtomicUsize::new(0) }; 5];
        Slot { address, view, checked, len, demand }
    }
}

/// The log lacks `much` bytes for a block's changes, one of which is at `address`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    address: usize,
    much: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// It changes objects on demand: [`stored`] follows.
    on_demand: bool,
    awaited: bool,
}

static SLOTS: [Slot; MOST] = [const { Slot::empty() }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static DURABLE: AtomicUsize = AtomicUsize::new(0);
/// `SPAN` is the length from the first address of all objects to the last.
static LOW: AtomicUsize = AtomicUsize::new(0);
static SPAN: AtomicUsize = AtomicUsize::new(0);
static OBJECTS: Mutex<Vec<Object>> = Mutex::new(Vec::new());
/// Waiting threads hold it while they need the table.
static WAITS: RwLock<()> = RwLock::new(());
static TOLD: AtomicUsize = AtomicUsize::new(0);
static FUNCTIONS: AtomicPtr<Object> = AtomicPtr::new(std::ptr::null_mut());

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) at: usize,
    pub(crate) checked: bool,
    /// The number of commits on the object.
    demand: usize,
}

#[inline(always)]
pub(crate) fn may_have(address: usize) -> bool {
    address.wrapping_sub(LOW.load(Ordering::Relaxed)) < SPAN.load(Ordering::Relaxed)
}

/// The place of a word for blocks. `None`: its own address.
pub(crate) fn find(address: usize) -> Option<Place> {
    SLOTS[..COUNT.load(Ordering::Relaxed)].iter().find_map(|slot| {
        let offset = address.wrapping_sub(slot.address.load(Ordering::Relaxed));
        (offset < slot.len.load(Ordering::Relaxed)).then(|| {
            let checked = slot.checked.load(Ordering::Relaxed) != 0;
            let at = slot.view.load(Ordering::Relaxed) + if checked { 2 * offset } else { offset };
            Place { at, checked, demand: slot.demand.load(Ordering::Relaxed) }
        })
    })
}

#[inline(always)]
pub(crate) fn any() -> bool {
    SPAN.load(Ordering::Relaxed) != 0
}

/// Whether blocks use objects with durable commits.
#[inline(always)]
pub(crate) fn any_durable() -> bool {
    DURABLE.load(Ordering::Relaxed) != 0
}

pub(crate) fn functions() -> Option<&'static Object> {
    // SAFETY: null, or a leaked one.
    unsafe { FUNCTIONS.load(Ordering::Acquire).as_ref() }
}

pub(crate) fn expose() {
    if any()
        && let Some(functions) = functions()
    {
        (functions.expose)();
    }
}

/// The transaction stores the changed words, or they are dropped.
pub(crate) fn close(changed: bool) {
    if any()
        && let Some(functions) = functions()
    {
        must((functions.close)(if changed { &raw const WORDS } else { std::ptr::null() }));
    }
}

fn addresses(writes: &WriteSet) -> Vec<usize> {
    let mut addresses = Vec::new();
    for line in writes.lines().filter(|line| line.mask() != 0) {
        match find(line.address()) {
            None => {}
            Some(Place { checked: false, .. }) => addresses.push(line.address()),
            // As the lines of `tell`.
            Some(_) => {
                addresses.extend(halves(0, line.mask()).map(|at| line.address() + at as usize / 2));
            }
        }
    }
    addresses
}

/// `None`: the log has the room.
pub(crate) fn shortage(writes: &WriteSet) -> Option<Short> {
    let (changed, functions) = (addresses(writes), functions()?);
    let address = *changed.first()?;
    let much = (functions.shortage)(changed.as_ptr(), changed.len());
    (much > 0).then_some(Short { address, much })
}

pub(crate) fn make_room(short: Short) {
    if let Some(functions) = functions() {
        must((functions.make_room)(short.address, short.much));
    }
}

/// # Errors
/// There is no room: nothing is told.
#[cold]
pub(crate) fn tell(writes: &WriteSet) -> Result<Told, Short> {
    let Some(functions) = functions() else { return Ok(Told::default()) };
    let (mut lines, mut demand) = (Vec::new(), 0);
    for line in writes.lines().filter(|line| line.mask() != 0) {
        let Some(place) = find(line.address()) else { continue };
        if lines.is_empty() {
            demand = place.demand;
        }
        if place.checked {
            // SAFETY: words and check words of an attached object (1), whose line the block owns.
            let changed = unsafe { pairs::changed(place.at, 0, (line.mask(), line.words())) };
            lines.extend(changed.map(|half| Line {
                address: line.address() + half.offset as usize / 2,
                view: place.at + half.offset as usize,
                bytes: half.bytes(),
            }));
            continue;
        }
        let mut bytes = [0; 64];
        for (nth, (word, into)) in line.words().iter().zip(bytes.as_chunks_mut::<8>().0).enumerate() {
            let bits = line.word_bits(nth);
            // SAFETY: an aligned word of an attached object (1), whose line the block owns.
            let before = unsafe {
                AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(place.at + 8 * nth))
                    .load(Ordering::Relaxed)
            };
            *into = (before & !bits | word & bits).to_le_bytes();
        }
        lines.push(Line { address: line.address(), view: place.at, bytes });
    }
    let Some(first) = lines.first() else { return Ok(Told::default()) };
    let mut telling = Telling::default();
    must((functions.tell)(demand, lines.as_ptr(), lines.len(), &raw mut telling));
    if telling.short > 0 {
        return Err(Short { address: first.address, much: telling.short });
    }
    let awaited = telling.awaited != 0;
    if awaited {
        TOLD.fetch_add(1, Ordering::SeqCst);
    }
    Ok(Told { on_demand: demand != 0, awaited })
}

#[inline]
pub(crate) fn stored(told: Told) {
    if told.on_demand
        && let Some(functions) = functions()
    {
        (functions.stored)();
    }
}

/// Also waits for all commits told so far of objects with durable commits: the block may have seen
/// them.
#[inline]
pub(crate) fn wait(told: Told) {
    if told.awaited || any_durable() {
        wait_for_all(told.awaited);
    }
}

#[cold]
fn wait_for_all(awaited: bool) {
    let Some(functions) = functions() else { return };
    let table = WAITS.read().unwrap_or_else(PoisonError::into_inner);
    for slot in &SLOTS[..COUNT.load(Ordering::Relaxed)] {
        if awaited || slot.demand.load(Ordering::Relaxed) == 0 {
            must((functions.wait)(slot.address.load(Ordering::Relaxed)));
        }
    }
    drop(table);
    if awaited {
        TOLD.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Until its heap has room for so many bytes, while no other block runs.
pub(crate) fn grow(address: usize, needed: usize) -> bool {
    let Some(functions) = functions() else { return false };
    let len = (functions.grow)(address, needed);
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let within = |object: &&mut Object| address.wrapping_sub(object.address) < object.len;
    let Some(object) = objects.iter_mut().find(within) else { return false };
    let before = std::mem::replace(&mut object.len, len);
    fill(&objects);
    len > before
}

/// In a fork's child, which has no objects: an access is a SIGSEGV there.
pub(crate) fn forget() {
    COUNT.store(0, Ordering::Relaxed);
    DURABLE.store(0, Ordering::Relaxed);
    SPAN.store(0, Ordering::Relaxed);
}

pub(crate) fn lost(address: usize) {
    fatal(&format!(
        "a block loads a word of a persistent object that is damaged beyond repair, at {address:#x}: `pmo scrub` lists such words, and a \
         block that stores to all of it makes it whole again"
    ));
}

/// Compiled code has no errors: commits that are not durable must end the process.
fn must(text: *const c_char) {
    if !text.is_null() {
        // SAFETY: a text of the objects' library (2), valid until the next call.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        // A handler of the program could jump out and continue with volatile commits. SAFETY: the
        // default action of a signal.
        unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
        fatal(&format!("a block changed a persistent object, and cannot be made durable: {text}"));
    }
}

fn fill(objects: &[Object]) {
    for (slot, object) in SLOTS.iter().zip(objects) {
        slot.address.store(object.address, Ordering::Relaxed);
        slot.view.store(object.view, Ordering::Relaxed);
        slot.checked.store(object.checked, Ordering::Relaxed);
        slot.len.store(object.len, Ordering::Relaxed);
        slot.demand.store(object.demand, Ordering::Relaxed);
    }
    let low = objects.iter().map(|object| object.address).min().unwrap_or(0);
    let high = objects.iter().map(|object| object.address + object.len).max().unwrap_or(0);
    COUNT.store(objects.len(), Ordering::Relaxed);
    DURABLE.store(objects.iter().filter(|object| object.demand == 0).count(), Ordering::Relaxed);
    LOW.store(low, Ordering::Relaxed);
    SPAN.store(high - low, Ordering::Relaxed);
}

/// Changes the table: 0, or -1 if a block runs on this thread or there are too many.
fn change(with: impl FnOnce(&mut Vec<Object>)) -> c_int {
    let changed = Thread::alone(|| {
        // An object stays while threads wait for its commits.
        while TOLD.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        let _table = WAITS.write().unwrap_or_else(PoisonError::into_inner);
        let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
        let before = objects.clone();
        with(&mut objects);
        if objects.len() > MOST {
            *objects = before;
            return false;
        }
        if FUNCTIONS.load(Ordering::Relaxed).is_null()
            && let Some(first) = objects.first()
        {
            FUNCTIONS.store(Box::into_raw(Box::new(*first)), Ordering::Release);
        }
        fill(&objects);
        true
    });
    if changed == Some(true) { 0 } else { -1 }
}

extern "C" fn add(object: *const Object) -> c_int {
    // SAFETY: the attaching library passes a whole object (2).
    let object = unsafe { *object };
    change(|objects| objects.push(object))
}

extern "C" fn remove(address: usize) -> c_int {
    change(|objects| objects.retain(|object| object.address != address))
}

/// The functions that pmo/blocks.h gives to libpmo.
#[unsafe(no_mangle)]
pub extern "C" fn pmo_tm_runtime() -> *const Runtime {
    &raw const RUNTIME
}
