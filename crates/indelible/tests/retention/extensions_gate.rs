use crate::heaps::{again, made, sound};
use indelible::Persist;
use indelible::collections::PVec;
use indelible::retention::{Extensions, extendible};
use indelible_store::Selected;
use indelible_testing::sparse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Item<'h> {
    number: u64,
    #[extension(1, init = |item| [item.number; 512])]
    many: [u64; 512],
}

const ITEMS: usize = 300;
const CUTS: usize = 250;

#[test]
pub fn a_cut_has_an_extension_and_the_link_to_it_or_neither() {
    let (dir, mut heap) = made();
    let items = heap.root_or_default::<PVec<'_, Item<'_>>>("items").unwrap();
    items.extend((0..ITEMS as u64).map(|number| Item { number, extensions: Extensions::new() }));
    heap.psync().unwrap();
    let (mut among, mut rounds) = (0, 0);
    while among < CUTS / sparse(5) {
        let items = heap.root_ref::<PVec<'_, Item<'_>>>("items").unwrap();
        let (done, enough, rules) = (AtomicUsize::new(0), AtomicBool::new(false), Selected::here());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rules.run(|| {
                    for item in items.iter().take_while(|_| !enough.load(SeqCst)) {
                        item.extend().unwrap();
                        done.fetch_add(1, SeqCst);
                    }
                });
            });
            while done.load(SeqCst) < 3 + rounds % 60 {
                std::thread::yield_now();
            }
            heap.psync_cut().unwrap();
            among += usize::from(done.load(SeqCst) < ITEMS);
            enough.store(true, SeqCst);
        });
        heap = again(&dir, heap);
        let blocks = sound(&mut heap);
        let items = heap.root_mut::<PVec<'_, Item<'_>>>("items").unwrap();
        let extends = |item: &&Item<'_>| item.extensions.get::<ItemExtension1>().unwrap().is_some();
        let extended = items.iter().filter(extends).count() as u64;
        assert_eq!(blocks, 2 + extended);
        assert!(items.iter().all(|item| item.many() == [item.number; 512]));
        items.iter_mut().for_each(|item| item.extensions = Extensions::new());
        heap.psync().unwrap();
        rounds += 1;
        assert!(rounds < 40 * CUTS, "only {among} of {rounds} cuts were made among extensions");
    }
}
