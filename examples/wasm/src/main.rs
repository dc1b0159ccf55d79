//! WebAssembly whose memory is an object: `durable-wasm POOL MODULE [FUNCTION]`.
//!
//! Calls the module's function (`step`, if none is named) until it returns 0. A step is one psync
//! of the memory and of the exported mutable globals: after a death the module goes on with the
//! interrupted step. State elsewhere, as in tables and in other globals, starts anew; the stack
//! pointer of compilers is such a global, at its start between steps.

use indelible::{Object, Plain, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasmtime::{
    Caller, Config, Engine, Extern, Global, Instance, LinearMemory, Linker, Memory, MemoryCreator,
    MemoryType, Module, Mutability, Result, Store, Val, ensure, format_err,
};

const POOL: u64 = 256 << 20;
/// The memory's offset in the object, and its size at most.
const OFFSET: usize = 4096;
const CAPACITY: usize = 64 << 20;
const GLOBALS: usize = 16;

/// At the start of the object.
#[derive(Plain)]
#[repr(C)]
struct State {
    /// 0 before the first step.
    module: u64,
    steps: u64,
    ended: u64,
    pages: u64,
    globals: [u64; GLOBALS],
}

/// Lends the object's bytes, once.
struct Creator {
    base: *mut u8,
    lent: AtomicBool,
}

// SAFETY: the bytes belong to the one memory that borrows them.
unsafe impl Send for Creator {}
// SAFETY: as above.
unsafe impl Sync for Creator {}

// SAFETY: the memory is as large as it says, stays in place, and the object outlives the store. No
// guard follows it: the engine is told so. After a death it holds the last bytes instead of zeros,
// until `revert` undoes what instantiation stored.
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        _: Option<usize>,
        _: Option<usize>,
        _: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        if minimum > CAPACITY || self.lent.swap(true, Ordering::Relaxed) {
            return Err(format!("the module needs one memory of at most {CAPACITY} bytes"));
        }
        Ok(Box::new(Lent { base: self.base, size: minimum }))
    }
}

struct Lent {
    base: *mut u8,
    size: usize,
}

// SAFETY: as for `Creator`.
unsafe impl Send for Lent {}
// SAFETY: as for `Creator`.
unsafe impl Sync for Lent {}

// SAFETY: as for `Creator`.
unsafe impl LinearMemory for Lent {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        CAPACITY
    }

    fn grow_to(&mut self, size: usize) -> Result<()> {
        ensure!(size <= CAPACITY, "the memory has at most {CAPACITY} bytes");
        self.size = size;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.base
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(pool), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err(format_err!("usage: durable-wasm POOL MODULE [FUNCTION]"));
    };
    let function = arguments.next().unwrap_or_else(|| "step".into());
    let bytes = std::fs::read(&path)?;
    let pool = Pool::open_or_format(&pool, POOL)?;
    if pool.stat("module").is_err() {
        pool.create("module", (OFFSET + CAPACITY) as u64)?;
    }
    let mut object = pool.attach("module")?;
    let known = object.root::<State>()?.module;
    ensure!(known == 0 || known == fingerprint(&bytes), "the pool belongs to another module than {path}");

    // SAFETY: the object has this many bytes.
    let base = unsafe { object.as_mut_ptr().add(OFFSET) };
    let mut config = Config::new();
    config.with_host_memory(Arc::new(Creator { base, lent: AtomicBool::new(false) }));
    // Initial bytes are copied, and the code checks bounds: no page is mapped over or beside these.
    config.memory_init_cow(false).memory_reservation(0).memory_reservation_for_growth(0);
    config.memory_guard_size(0).signals_based_traps(false);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, &bytes)?;
    let mut linker = Linker::new(&engine);
    linker.func_wrap("env", "print", |mut caller: Caller<'_, Vec<i64>>, number: i64| {
        caller.data_mut().push(number);
    })?;
    let mut store = Store::new(&engine, Vec::new());
    let instance = linker.instantiate(&mut store, &module)?;
    let step = instance.get_typed_func::<(), i32>(&mut store, &function)?;
    let memory =
        instance.get_memory(&mut store, "memory").ok_or_else(|| format_err!("{path} exports no memory"))?;
    let globals = mutable_globals(&instance, &mut store)?;
    if known != 0 {
        restore(&mut object, memory, &globals, &mut store)?;
    }
    while object.root::<State>()?.ended == 0 {
        let ended = step.call(&mut store, ())? == 0;
        let state = object.root_mut::<State>()?;
        state.module = fingerprint(&bytes);
        state.steps += 1;
        state.ended = ended.into();
        state.pages = memory.size(&store);
        for (slot, global) in state.globals.iter_mut().zip(&globals) {
            *slot = raw(global.get(&mut store))?;
        }
        let steps = state.steps;
        object.psync()?;
        // Told once it is durable.
        store.data_mut().drain(..).for_each(|number| println!("{steps} {number}"));
    }
    Ok(())
}

/// Brings memory and globals to the last step. Instantiation has stored the module's initial bytes.
fn restore(
    object: &mut Object,
    memory: Memory,
    globals: &[Global],
    store: &mut Store<Vec<i64>>,
) -> Result<()> {
    let grown = object.root::<State>()?.pages - memory.size(&*store);
    memory.grow(&mut *store, grown)?;
    object.revert()?;
    for (global, bits) in globals.iter().zip(object.root::<State>()?.globals) {
        let value = match global.get(&mut *store) {
            Val::I32(_) => Val::I32(bits as i32),
            Val::I64(_) => Val::I64(bits as i64),
            Val::F32(_) => Val::F32(bits as u32),
            _ => Val::F64(bits),
        };
        global.set(&mut *store, value)?;
    }
    store.data_mut().clear();
    Ok(())
}

fn mutable_globals(instance: &Instance, store: &mut Store<Vec<i64>>) -> Result<Vec<Global>> {
    let exported: Vec<Global> = instance
        .exports(&mut *store)
        .filter_map(|export| Extern::into_global(export.into_extern()))
        .collect();
    let mutable = exported.into_iter().filter(|global| global.ty(&*store).mutability() == Mutability::Var);
    let globals: Vec<Global> = mutable.collect();
    ensure!(globals.len() <= GLOBALS, "the module exports more than {GLOBALS} mutable globals");
    globals.iter().try_for_each(|global| raw(global.get(&mut *store)).map(drop))?;
    Ok(globals)
}

fn raw(value: Val) -> Result<u64> {
    Ok(match value {
        Val::I32(number) => number as u32 as u64,
        Val::I64(number) => number as u64,
        Val::F32(bits) => bits.into(),
        Val::F64(bits) => bits,
        _ => return Err(format_err!("an exported global holds a reference or a vector")),
    })
}

/// FNV-1a; never 0.
fn fingerprint(bytes: &[u8]) -> u64 {
    let mixed = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mixed).max(1)
}
