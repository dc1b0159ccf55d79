use indelible::raw::{self, ExtensionOf, Permission};
use indelible::{Error, Pool};
use indelible_store::Selected;
use indelible_testing::sparse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

const ITEMS: usize = 300;
/// Cuts of a complete run, a fifth of them on each change. Without the gate, some would have an
/// allocation without a link.
const CUTS: usize = 250;
const WORDS: usize = 512;
const MANY: ExtensionOf<'static> =
    ExtensionOf { of: "item", number: 1, size: WORDS * 8, align: 8, identity: 7 };

#[repr(C)]
struct Item {
    number: u64,
    link: u64,
}

#[derive(Clone, Copy)]
struct Items(*mut Item);

// SAFETY: threads extend them, which any number of threads may do at once.
unsafe impl Send for Items {}

impl Items {
    fn at(self, number: usize) -> *mut Item {
        // SAFETY: one of them.
        unsafe { self.0.add(number) }
    }

    fn extend(self, number: usize) {
        let write = |fields: *mut u8| {
            // SAFETY: room for the fields.
            unsafe { std::slice::from_raw_parts_mut(fields.cast::<u64>(), WORDS) }.fill(number as u64);
            Ok::<(), Error>(())
        };
        // SAFETY: a link of an object that stays attached.
        unsafe { raw::extend(&raw const (*self.at(number)).link, &MANY, String::new, write) }.unwrap();
    }

    fn many(self, number: usize) -> Option<Vec<u64>> {
        // SAFETY: as above.
        let found =
            unsafe { raw::extension(&raw const (*self.at(number)).link, &MANY, String::new) }.unwrap();
        // SAFETY: all fields of an extension.
        found.map(|at| unsafe { std::slice::from_raw_parts(at.as_ptr().cast::<u64>(), WORDS) }.to_vec())
    }

    fn free(self, number: usize) {
        // SAFETY: the block of an extension, to which nothing leads afterwards.
        unsafe {
            let link = std::mem::take(&mut (*self.at(number)).link);
            raw::free(std::ptr::with_exposed_provenance_mut(link as usize)).unwrap();
        }
    }
}

#[test]
pub fn a_cut_by_address_has_an_extension_and_the_link_to_it_or_neither() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("p"), 64 << 20).unwrap();
    pool.create("o", 8 << 20).unwrap();
    let attach = || raw::attach(&pool, "o", Permission::Write, &[]).unwrap().as_ptr().cast_const();
    let base = attach();
    // SAFETY: no other thread uses the object.
    let items = unsafe {
        raw::format_heap(base, indelible::HeapOptions::new()).unwrap();
        Items(raw::calloc(base, ITEMS, size_of::<Item>()).unwrap().as_ptr().cast())
    };
    // SAFETY: no other thread stores to the object.
    unsafe { raw::psync(base) }.unwrap();
    let (mut among, mut rounds) = (0, 0);
    while among < CUTS / sparse(5) {
        let (done, enough, rules) = (AtomicUsize::new(0), AtomicBool::new(false), Selected::here());
        std::thread::scope(|scope| {
            let (done, enough) = (&done, &enough);
            scope.spawn(move || {
                let all = items;
                rules.run(|| {
                    for number in (0..ITEMS).take_while(|_| !enough.load(SeqCst)) {
                        all.extend(number);
                        done.fetch_add(1, SeqCst);
                    }
                });
            });
            while done.load(SeqCst) < 3 + rounds % 60 {
                std::thread::yield_now();
            }
            raw::psync_cut(base).unwrap();
            among += usize::from(done.load(SeqCst) < ITEMS);
            enough.store(true, SeqCst);
        });
        raw::detach(base).unwrap();
        assert_eq!(attach(), base);
        let extended: Vec<usize> = (0..ITEMS).filter(|number| items.many(*number).is_some()).collect();
        for number in &extended {
            assert_eq!(items.many(*number), Some(vec![*number as u64; WORDS]));
        }
        // SAFETY: the object stays attached.
        let blocks = unsafe { raw::heap_stats(base) }.unwrap().blocks;
        assert_eq!(blocks, 1 + extended.len() as u64);
        extended.iter().for_each(|number| items.free(*number));
        // SAFETY: no other thread stores to the object.
        unsafe { raw::psync(base) }.unwrap();
        rounds += 1;
        assert!(rounds < 40 * CUTS, "only {among} of {rounds} cuts were made among extensions");
    }
    raw::detach(base).unwrap();
}
