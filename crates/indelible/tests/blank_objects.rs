use crate::root_blocks::transaction;
use crate::support::{Ground, World, everywhere};
use indelible::raw::{self, blocks, transactions as calls};
use indelible::{Class, CreateOptions, Error, ErrorKind, Pool, Tracking, TxCell, TypeInfo};

const BYTES: TypeInfo = TypeInfo { name: "bytes", fingerprint: 7, layout: "bytes" };
const SIZE: u64 = 1 << 16;

fn create(pool: &Pool, name: &str, class: Class) {
    pool.create_with(name, &CreateOptions::new(SIZE).class(class)).unwrap();
}

fn holds(pool: &Pool, name: &str, word: u64) {
    let object = pool.attach_transactional::<[TxCell<u64>; 512]>(name).unwrap();
    let words = object
        .transaction(|tx| object.root().iter().map(|cell| tx.read(cell)).collect::<Result<Vec<_>, Error>>());
    assert_eq!(words.unwrap(), vec![word; 512]);
    object.detach().unwrap();
}

#[track_caller]
fn refused<T>(result: indelible::Result<T>, why: &str) {
    let error = result.err().expect("no heap");
    assert_eq!(error.kind(), ErrorKind::NotAHeap, "{error}");
    assert!(error.to_string().contains(why), "{error}");
}

const NOT_MADE: &str = "an allocation makes none (make a root first";

#[test]
pub fn an_allocation_makes_no_heap() {
    everywhere(|world| {
        let pool = world.format();
        for class in [Class::Transactional, Class::OnDemand] {
            create(&pool, "o", class);
            let own = calls::attach_transactional(&pool, "o", b"").unwrap().as_ptr();
            transaction(own, || {
                refused(calls::alloc(own, 100, 16), NOT_MADE);
                refused(calls::free(own), NOT_MADE);
                Ok(())
            });
            raw::detach(own).unwrap();
            holds(&pool, "o", 0);
            assert_eq!(calls::attach_transactional(&pool, "o", b"").unwrap().as_ptr(), own);
            transaction(own, || {
                calls::root(own, "r", (16, 16), &BYTES)?;
                calls::alloc(own, 100, 16)
            });
            transaction(own, || calls::alloc(own, 100, 16));
            raw::detach(own).unwrap();
            pool.destroy("o").unwrap();
        }
    });
}

#[test]
pub fn an_object_that_is_a_value_becomes_no_heap() {
    let world = World::new(Ground::Simulated, Tracking::Explicit, false);
    let pool = world.format();
    create(&pool, "o", Class::Transactional);
    let own = calls::attach_transactional(&pool, "o", b"").unwrap().as_ptr();
    let small = calls::begin_with(own, SIZE as usize + 1).unwrap_err();
    assert_eq!(small.kind(), ErrorKind::BadSize, "{small}");
    calls::begin_with(own, 64).unwrap();
    transaction(own, || {
        refused(calls::alloc(own, 100, 16), "as a value of 64 bytes");
        refused(calls::root(own, "r", (16, 16), &BYTES), "as a value of 64 bytes");
        Ok(())
    });
    raw::detach(own).unwrap();
    holds(&pool, "o", 0);
    let absent = calls::begin_with(own, 64).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotAttached, "{absent}");
}

struct Words(blocks::ForBlocks);

impl Words {
    fn at(&self, address: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0.view + (address - self.0.address))
    }
}

impl blocks::BlockWords for Words {
    fn load(&mut self, address: usize) -> Option<u64> {
        Some(self.peek(address))
    }

    fn store(&mut self, address: usize, value: u64) -> Option<()> {
        // SAFETY: a word of an object that this thread alone uses.
        unsafe { self.at(address).cast::<u64>().write(value) };
        Some(())
    }

    fn store_byte(&mut self, address: usize, value: u8) -> Option<()> {
        // SAFETY: as for `store`.
        unsafe { self.at(address).write(value) };
        Some(())
    }

    fn peek(&self, address: usize) -> u64 {
        // SAFETY: as for `store`.
        unsafe { self.at(address).cast::<u64>().read() }
    }
}

#[test]
pub fn an_allocation_of_a_block_makes_no_heap() {
    let world = World::new(Ground::Simulated, Tracking::Explicit, false);
    let pool = world.format();
    create(&pool, "o", Class::Transactional);
    let found = blocks::attach(&pool, "o", b"").unwrap();
    let own = std::ptr::with_exposed_provenance::<u8>(found.address);
    let mut words = Words(found);
    refused(blocks::alloc(&mut words, found.address, 100, 16), NOT_MADE);
    refused(blocks::free(&mut words, found.address + 4096), NOT_MADE);
    assert!((0..512).all(|word| blocks::BlockWords::peek(&words, found.address + 8 * word) == 0));
    calls::begin_with(own, 8).unwrap();
    let root = |words: &mut Words| blocks::root(words, found.address, "r", (16, 16), &BYTES);
    refused(root(&mut words), "as a value of 8 bytes");
    raw::detach(own.cast_mut()).unwrap();
    let found = blocks::attach(&pool, "o", b"").unwrap();
    let mut words = Words(found);
    assert!(matches!(root(&mut words).unwrap(), blocks::Step::Done(_)));
    assert!(matches!(blocks::alloc(&mut words, found.address, 100, 16).unwrap(), blocks::Step::Done(_)));
    raw::detach(own.cast_mut()).unwrap();
}
