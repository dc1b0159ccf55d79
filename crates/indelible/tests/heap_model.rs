use crate::support::{Ground, World};
use indelible::{Heap, HeapOptions, Tracking};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Malloc(usize),
    Calloc(usize),
    Aligned(usize, u32),
    Realloc(usize, usize),
    Free(usize),
    Thin,
    Psync,
    Crash,
    Grow(u64),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0_usize..300,
        4 => 0_usize..40_000,
        2 => 30_000_usize..300_000,
        1 => 1_500_000_usize..7_000_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => size().prop_map(Step::Malloc),
        2 => size().prop_map(Step::Calloc),
        3 => (size(), 0_u32..=14).prop_map(|(size, log)| Step::Aligned(size, log)),
        4 => (any::<usize>(), size()).prop_map(|(which, size)| Step::Realloc(which, size)),
        10 => any::<usize>().prop_map(Step::Free),
        1 => Just(Step::Thin),
        2 => Just(Step::Psync),
        1 => Just(Step::Crash),
        1 => (0_u64..2 << 20).prop_map(Step::Grow),
    ]
}

type Model = BTreeMap<usize, (usize, u8)>;

struct Run<'a> {
    world: &'a World,
    options: HeapOptions,
    heap: Option<Heap>,
    live: Model,
    psynced: Model,
    next: u8,
}

impl Run<'_> {
    fn heap(&mut self) -> &mut Heap {
        self.heap.as_mut().expect("open")
    }

    fn given(&mut self, address: usize, size: usize, align: usize) {
        let room = self.heap().usable_size(address as *const u8).expect("a live block");
        assert!(room >= size && address.is_multiple_of(align), "{room} bytes at {address:#x}");
        let base = self.heap().base().addr();
        assert!(address >= base && address + room <= base + self.heap().size());
        if let Some((before, (len, _))) = self.live.range(..address).next_back() {
            assert!(before + len <= address, "overlaps the block before");
        }
        if let Some((after, _)) = self.live.range(address..).next() {
            assert!(address + size <= *after, "overlaps the block behind");
        }
        self.next = self.next.wrapping_add(1);
        // SAFETY: a live block of ours of `size` bytes.
        unsafe { (address as *mut u8).write_bytes(self.next, size) };
        if self.heap().object().needs_marks() {
            self.heap().object().mark_dirty(address - base..address - base + size);
        }
        self.live.insert(address, (size, self.next));
    }

    fn contents(&self, model: &Model) {
        for (address, (size, byte)) in model {
            // SAFETY: a live block of ours of `size` bytes.
            let bytes = unsafe { std::slice::from_raw_parts(*address as *const u8, *size) };
            let changed: Vec<_> = bytes.iter().enumerate().filter(|(_, found)| *found != byte).collect();
            let ends = (changed.first(), changed.last());
            assert!(
                changed.is_empty(),
                "block {address:#x} of {size} times {byte}: {} changed, {ends:?}",
                changed.len()
            );
        }
    }

    fn pick(&self, which: usize) -> Option<usize> {
        let count = self.live.len();
        (count > 0).then(|| *self.live.keys().nth(which % count).expect("counted"))
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Malloc(size) => {
                if let Ok(block) = self.heap().malloc(size) {
                    self.given(block.addr().get(), size, 16);
                }
            }
            Step::Calloc(size) => {
                if let Ok(block) = self.heap().calloc(size, 1) {
                    // SAFETY: a new block of that size.
                    let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), size) };
                    assert!(bytes.iter().all(|byte| *byte == 0), "not zero");
                    self.given(block.addr().get(), size, 16);
                }
            }
            Step::Aligned(size, log) => {
                if let Ok(block) = self.heap().aligned(1 << log, size) {
                    self.given(block.addr().get(), size, 1 << log);
                }
            }
            Step::Realloc(which, size) => {
                let Some(address) = self.pick(which) else { return };
                let (old, byte) = self.live[&address];
                // SAFETY: a live block of ours.
                if let Ok(block) = unsafe { self.heap().realloc(address as *mut u8, size) } {
                    self.live.remove(&address);
                    // SAFETY: the kept bytes, up to the smaller size.
                    let kept = unsafe { std::slice::from_raw_parts(block.as_ptr(), old.min(size)) };
                    assert!(kept.iter().all(|found| *found == byte), "realloc lost bytes");
                    self.given(block.addr().get(), size, 16);
                }
            }
            Step::Free(which) => {
                let Some(address) = self.pick(which) else { return };
                self.live.remove(&address);
                // SAFETY: a live block that the model forgot.
                unsafe { self.heap().free(address as *mut u8) }.expect("a live block");
            }
            Step::Thin => {
                let gone: Vec<usize> = self.live.keys().copied().step_by(2).collect();
                for address in gone {
                    self.live.remove(&address);
                    // SAFETY: as above.
                    unsafe { self.heap().free(address as *mut u8) }.expect("a live block");
                }
            }
            Step::Psync => {
                self.heap().psync().expect("psync");
                self.psynced = self.live.clone();
            }
            Step::Crash => {
                self.heap = None;
                self.open();
                self.live = self.psynced.clone();
            }
            Step::Grow(more) => {
                let size = self.heap().size() as u64 + more;
                let _ = self.heap().grow(size);
            }
        }
    }

    fn open(&mut self) {
        let object = self.world.open().attach("heap").expect("attach");
        self.heap = Some(Heap::open_with(object, self.options).expect("a heap"));
    }

    fn verify(&mut self) {
        assert_eq!(self.heap().check(), []);
        let blocks: Vec<usize> =
            self.heap().blocks().map(|block| block.expect("undamaged").address).collect();
        assert_eq!(blocks, self.live.keys().copied().collect::<Vec<_>>());
        let stats = self.heap().stats().expect("undamaged");
        assert_eq!(stats.blocks as usize, self.live.len());
        self.contents(&self.live);
    }
}

fn run(world: &World, size: u64, options: HeapOptions, steps: &[Step]) {
    let pool = world.format();
    pool.create("heap", size).expect("create");
    let mut heap = Heap::format_with(pool.attach("heap").expect("attach"), options).expect("format");
    heap.psync().expect("psync");
    drop(pool);
    let mut run =
        Run { world, options, heap: Some(heap), live: Model::new(), psynced: Model::new(), next: 0 };
    for (number, step) in steps.iter().enumerate() {
        run.step(step);
        if number % 16 == 15 {
            run.verify();
        }
    }
    run.verify();
    for address in std::mem::take(&mut run.live).into_keys() {
        // SAFETY: live blocks of ours.
        unsafe { run.heap().free(address as *mut u8) }.expect("a live block");
    }
    run.verify();
}

fn random(ground: Ground, tracking: Tracking, cases: u32, sizes: &[u64], options: HeapOptions) {
    if !tracking.is_available() {
        indelible_testing::not_tested(format_args!("heaps with tracking by {tracking:?}"));
        return;
    }
    for size in sizes {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        TestRunner::new_with_rng(config, seeded())
            .run(&prop::collection::vec(step(), 1..160), |steps| {
                let world = World::new(ground, tracking, false);
                run(&world, *size, options, &steps);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("object of {size} bytes: {failure}"));
    }
}

fn seeded() -> proptest::test_runner::TestRng {
    let seed = indelible_testing::Seeded::new(7).seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &bytes)
}

const SIZES: [u64; 4] = [12 << 10, 300 << 10, 5 << 20, 16 << 20];

#[test]
fn random_programs_agree_with_a_model() {
    random(Ground::Memory, Tracking::Auto, 24, &SIZES, HeapOptions::new());
}

#[test]
fn random_programs_agree_with_a_model_in_debug_mode() {
    random(Ground::Memory, Tracking::Auto, 12, &SIZES, HeapOptions::new().debug(true));
}

#[test]
fn random_programs_agree_with_a_model_while_the_object_grows() {
    random(Ground::Memory, Tracking::Auto, 12, &SIZES[1..3], HeapOptions::new().grow(true));
}

#[test]
fn random_programs_agree_with_a_model_with_explicit_tracking() {
    random(Ground::Memory, Tracking::Explicit, 16, &SIZES, HeapOptions::new());
    random(Ground::File, Tracking::Explicit, 4, &SIZES[..3], HeapOptions::new());
}

#[test]
fn random_programs_agree_with_a_model_on_a_disk() {
    random(Ground::File, Tracking::Auto, 6, &SIZES, HeapOptions::new());
    random(Ground::File, Tracking::Mprotect, 6, &SIZES[..3], HeapOptions::new());
}
