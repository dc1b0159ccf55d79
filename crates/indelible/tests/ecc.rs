use crate::support::{Ground, World, everywhere};
use crate::transactional_heap::{Node, blocks, simulated};
use indelible::raw::transactions as calls;
use indelible::{
    Class, CreateOptions, EpochBounds, Error, ErrorKind, Plain, Pool, ReadHeap, Tracking, TxCell, TxHeap,
    TxObject, TxPtr,
};
use indelible_stm::ecc::{Beyond, check_word, is_whole, repair};
use indelible_store::medium::Medium;
use indelible_testing::{CrashImage, Fault, Limits, OpKind, Seeded, SimConfig, SimMedium, for_each_crash};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

pub type Cells = [TxCell<u64>; 1024];

pub const KEY: &[u8] = b"";

const CLASSES: [Class; 2] = [Class::Transactional, Class::OnDemand];

pub fn create(pool: &Pool, name: &str, size: u64, class: Class) {
    pool.create_with(name, &CreateOptions::new(size).class(class).ecc(true)).unwrap();
}

fn in_each_class(test: impl Fn(&World, Class)) {
    CLASSES.into_iter().for_each(|class| everywhere(|world| test(world, class)));
}

pub fn attach(pool: &Pool) -> TxObject<Cells> {
    pool.attach_transactional("a").unwrap()
}

pub fn get(object: &TxObject<Cells>, nth: usize) -> indelible::Result<u64> {
    object.transaction(|tx| tx.read(&object.root()[nth]))
}

pub fn set(object: &TxObject<Cells>, nth: usize, value: u64) {
    object.transaction(|tx| tx.write(&object.root()[nth], value)).unwrap();
}

pub fn value(nth: usize) -> u64 {
    (nth as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub fn filled(world: &World, class: Class) -> Pool {
    let pool = world.format();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: u64::MAX });
    create(&pool, "a", 8192, class);
    let a = attach(&pool);
    a.transaction(|tx| (0..1024).try_for_each(|nth| tx.write(&a.root()[nth], value(nth)))).unwrap();
    a.detach().unwrap();
    pool
}

fn change(world: &World, at: u64, what: impl FnOnce(u128) -> u128) {
    let mut bytes = [0; 16];
    let changed = |bytes: [u8; 16]| {
        let (word, check) = (u64::from_le_bytes(bytes[..8].try_into().unwrap()), &bytes[8..]);
        let check = u64::from_le_bytes(check.try_into().unwrap());
        let new = what(u128::from(word) << 64 | u128::from(check));
        [((new >> 64) as u64).to_le_bytes(), (new as u64).to_le_bytes()].concat()
    };
    if let Some(sim) = world.sim() {
        sim.read(at, &mut bytes).unwrap();
        sim.write(at, &changed(bytes)).unwrap();
        return sim.settle();
    }
    let file = std::fs::File::options().read(true).write(true).open(world.path()).unwrap();
    file.read_exact_at(&mut bytes, at).unwrap();
    file.write_all_at(&changed(bytes), at).unwrap();
}

pub fn damage(world: &World, pool: &Pool, name: &str, nth: usize, bits: u128) {
    change(world, pool.stat(name).unwrap().offset + 16 * nth as u64, |pair| pair ^ bits);
}

fn damage_each(world: &World, pool: &Pool, name: &str, mut bits: impl FnMut(usize) -> u128) {
    let (sim, stat) = (world.sim().unwrap(), pool.stat(name).unwrap());
    let mut bytes = vec![0; stat.extent as usize];
    sim.read(stat.offset, &mut bytes).unwrap();
    for (nth, pair) in bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let bits = bits(nth);
        for (half, bits) in [((bits >> 64) as u64), bits as u64].into_iter().enumerate() {
            let place = &mut pair[8 * half..8 * half + 8];
            place.iter_mut().zip(bits.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
        }
    }
    sim.write(stat.offset, &bytes).unwrap();
    sim.settle();
}

pub fn stored(world: &World, pool: &Pool, nth: usize) -> (u64, u64) {
    let mut found = 0;
    change(world, pool.stat("a").unwrap().offset + 16 * nth as u64, |pair| {
        found = pair;
        pair
    });
    ((found >> 64) as u64, found as u64)
}

pub fn some_bits(random: &mut Seeded, count: u32) -> u128 {
    let mut bits = 0_u128;
    while bits.count_ones() < count {
        bits |= 1 << random.u32(..128);
    }
    bits
}

/// 14 wrong bits that no check notices, as `pmo-evidence ecc` finds them: half may be either half.
const CODEWORD: u128 = 0x0000_0202_0008_0200 << 64 | 0x4000_3001_4008_3003;

fn beyond_repair() -> Vec<u128> {
    assert_eq!((CODEWORD.count_ones(), check_word((CODEWORD >> 64) as u64)), (14, CODEWORD as u64));
    let mut half = CODEWORD;
    while half.count_ones() > 7 {
        half &= half - 1;
    }
    let why = |bits: &u128| repair((*bits >> 64) as u64, *bits as u64).err();
    assert_eq!(why(&half), Some(Beyond::Ambiguous));
    let many = (0_u64..).map(|seed| some_bits(&mut Seeded::new(seed), 30));
    [half].into_iter().chain(many.filter(|bits| why(bits) == Some(Beyond::TooManyFlips)).take(3)).collect()
}

#[test]
pub fn s1_12_words_and_check_words_take_turns_in_the_pool() {
    in_each_class(|world, class| {
        let pool = filled(world, class);
        let stat = pool.stat("a").unwrap();
        assert_eq!((stat.size, stat.extent, stat.ecc, stat.class), (8192, 16384, true, Some(class)));
        for nth in [0, 1, 7, 511, 1023] {
            assert_eq!(stored(world, &pool, nth), (value(nth), check_word(value(nth))));
        }
        let a = attach(&pool);
        assert_eq!((a.size(), a.root().len()), (8192, 1024));
        set(&a, 5, 1);
        drop((a, pool));
        let pool = world.open();
        let a = attach(&pool);
        assert_eq!((get(&a, 5).unwrap(), get(&a, 1023).unwrap()), (1, value(1023)));
        assert_eq!(a.repairs(), indelible::Repairs::default());
        drop(a);
        assert_eq!(stored(world, &pool, 5), (1, check_word(1)));
        create(&pool, "small", 1, class);
        let small = pool.stat("small").unwrap();
        assert_eq!((small.size, small.extent), (4096, 8192));
        pool.create_with("large", &CreateOptions::new(u64::MAX / 2).ecc(true)).unwrap_err();
    });
}

#[test]
pub fn s1_13_a_transaction_that_reads_a_damaged_word_repairs_it() {
    let everything = [u128::from(u64::MAX) << 64, u128::from(u64::MAX), u128::MAX];
    let grounds = [Ground::File, Ground::Memory, Ground::Simulated];
    for (ground, class) in grounds.into_iter().flat_map(|ground| CLASSES.map(|class| (ground, class))) {
        let world = World::new(ground, Tracking::Explicit, false);
        let pool = filled(&world, class);
        let mut random = Seeded::new(13);
        let mut damaged = Vec::new();
        for nth in (0..1024).step_by(17) {
            let (part, flips) = (everything[nth % 3], random.u32(1..=6));
            let mut bits = some_bits(&mut random, flips) & part;
            bits = if bits == 0 { part & part.wrapping_neg() } else { bits };
            damage(&world, &pool, "a", nth, bits);
            damaged.push(nth);
        }
        let a = attach(&pool);
        for nth in 0..1024 {
            assert_eq!(get(&a, nth).unwrap(), value(nth), "word {nth}");
        }
        assert_eq!((a.repairs().repaired, a.repairs().lost), (damaged.len() as u64, 0));
        assert_eq!(a.scrub(&mut |_, _| {}).unwrap().repaired, 0);
        drop(a);
        for nth in damaged {
            assert_eq!(stored(&world, &pool, nth), (value(nth), check_word(value(nth))), "word {nth}");
        }
    }
}

#[test]
pub fn s1_14_a_word_beyond_repair_is_named_and_never_read() {
    let damages = beyond_repair().into_iter().enumerate();
    for ((round, bits), class) in damages.flat_map(|damage| CLASSES.map(|class| (damage, class))) {
        let world = simulated();
        let pool = filled(&world, class);
        damage(&world, &pool, "a", 20 + round, bits);
        let a = attach(&pool);
        let nth = 20 + round;
        let error = get(&a, nth).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{text}");
        assert!(text.contains(&format!("offset {:#x}", 8 * nth)) && text.contains("\"a\""), "{text}");
        let swallowed = a.transaction(|tx| {
            let read = tx.read(&a.root()[nth]);
            tx.write(&a.root()[0], 1).ok();
            Ok::<_, Error>(read.unwrap_or(0))
        });
        assert_eq!(swallowed.unwrap_err().kind(), ErrorKind::Damaged);
        assert_eq!(get(&a, 0).unwrap(), value(0));
        set(&a, nth + 1, 3);
        assert_eq!(get(&a, nth).unwrap_err().kind(), ErrorKind::Damaged);
        assert!(a.repairs().lost >= 3);
        set(&a, nth, 4);
        assert_eq!((get(&a, nth).unwrap(), get(&a, nth + 1).unwrap()), (4, 3));
    }
}

struct Running;

impl Running {
    fn begin(own: *mut u8) -> Running {
        indelible::raw::begin_transaction(&[own]).unwrap();
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        calls::abort();
    }
}

#[test]
pub fn s1_14_a_part_of_a_damaged_word_is_stored_with_the_whole_word_repaired() {
    CLASSES.into_iter().for_each(parts_are_stored_with_the_whole);
}

fn parts_are_stored_with_the_whole(class: Class) {
    let world = simulated();
    let pool = filled(&world, class);
    damage(&world, &pool, "a", 3, 1 << 127 | 1 << 120);
    damage(&world, &pool, "a", 4, beyond_repair()[1]);
    let own = calls::attach_transactional(&pool, "a", KEY).unwrap().as_ptr();
    let at = |offset: usize| own.wrapping_add(offset);
    let running = Running::begin(own);
    calls::write(at(24), &7_u32.to_le_bytes()).unwrap();
    let lost = calls::write(at(36), &7_u32.to_le_bytes()).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Damaged, "{lost}");
    assert_eq!(calls::commit().unwrap_err().kind(), ErrorKind::Damaged);
    drop(running);
    let running = Running::begin(own);
    calls::write(at(24), &7_u32.to_le_bytes()).unwrap();
    let mut word = [0; 8];
    calls::read(at(24), &mut word).unwrap();
    assert!(calls::commit().unwrap());
    drop(running);
    let expected = value(3) >> 32 << 32 | 7;
    assert_eq!(u64::from_le_bytes(word), expected);
    let running = Running::begin(own);
    assert_eq!(calls::read(at(32), &mut word).unwrap_err().kind(), ErrorKind::Damaged);
    drop(running);
    indelible::raw::detach(own).unwrap();
    assert_eq!(stored(&world, &pool, 3), (expected, check_word(expected)));
}

#[test]
pub fn s1_14_bytes_in_two_damaged_words_are_stored_with_both_repaired() {
    CLASSES.into_iter().for_each(bytes_in_two_words_are_stored_with_both);
}

fn bytes_in_two_words_are_stored_with_both(class: Class) {
    let world = simulated();
    let pool = filled(&world, class);
    [40, 41].into_iter().for_each(|nth| damage(&world, &pool, "a", nth, 0b11_0001 << 90 | 1 << 65));
    let own = calls::attach_transactional(&pool, "a", KEY).unwrap().as_ptr();
    let running = Running::begin(own);
    calls::write(own.wrapping_add(8 * 40 + 6), &[0xaa; 4]).unwrap();
    assert!(calls::commit().unwrap());
    drop(running);
    indelible::raw::detach(own).unwrap();
    assert_eq!(pool.scrub("a", KEY, &mut |_, _| {}).unwrap().repaired, 0);
    let expected = [value(40) & !(0xffff << 48) | 0xaaaa << 48, value(41) & !0xffff | 0xaaaa];
    assert_eq!([40, 41].map(|nth| stored(&world, &pool, nth).0), expected);
}

fn list(heap: &TxHeap, count: u64) -> Vec<u64> {
    let top = heap.root_or_default::<TxCell<TxPtr<Node>>>("top").unwrap();
    let push = |tx: &mut indelible::Tx<'_>, value| {
        let next = tx.read(top)?;
        let node = tx.alloc(heap, Node { next: TxCell::new(next), value: TxCell::new(value) })?;
        tx.write(top, node)
    };
    heap.transaction(|tx| (0..count).try_for_each(|value| push(tx, value))).unwrap();
    (0..count).rev().collect()
}

fn values(heap: &TxHeap) -> indelible::Result<Vec<u64>> {
    let top = heap.root::<TxCell<TxPtr<Node>>>("top")?;
    heap.transaction(|tx| {
        let (mut values, mut at) = (Vec::new(), tx.read(top)?);
        while let Some(node) = at.some() {
            let node = tx.at(node)?;
            values.push(tx.read(&node.value)?);
            at = tx.read(&node.next)?;
        }
        Ok::<_, Error>(values)
    })
}

/// Header, directory, spans, allocation bytes, roots: any of the heap's words may be damaged, and
/// no block is lost.
#[test]
pub fn s1_15_the_heap_s_own_words_are_protected() {
    CLASSES.into_iter().for_each(words_of_the_heap_are_protected);
}

fn heap(pool: &Pool, class: Class) -> TxHeap {
    match class {
        Class::OnDemand => pool.heap_on_demand("h", 0),
        _ => pool.transactional_heap("h", 0),
    }
    .unwrap()
}

fn words_of_the_heap_are_protected(class: Class) {
    let world = simulated();
    let pool = world.format();
    create(&pool, "h", 256 << 10, class);
    let attached = || heap(&pool, class);
    let heap = attached();
    let expected = list(&heap, 300);
    let before = blocks(&heap);
    heap.detach().unwrap();
    let mut random = Seeded::new(15);
    damage_each(&world, &pool, "h", |nth| some_bits(&mut random, 1 + nth as u32 % 5));
    let read = ReadHeap::open(pool.attach_read("h").unwrap()).unwrap();
    assert_eq!((read.check(), read.stats().unwrap().blocks), (vec![], before));
    drop(read);
    let heap = attached();
    assert_eq!(values(&heap).unwrap(), expected);
    assert_eq!(blocks(&heap), before);
    let more = heap.root::<TxCell<TxPtr<Node>>>("top").unwrap();
    let pop = |tx: &mut indelible::Tx<'_>| {
        let first = tx.read(more)?;
        let next = tx.read(&tx.at(first)?.next)?;
        tx.free(first)?;
        tx.write(more, next)
    };
    heap.transaction(|tx| (0..200).try_for_each(|_| pop(tx))).unwrap();
    assert_eq!((values(&heap).unwrap(), blocks(&heap)), (expected[200..].to_vec(), before - 200));
    let found = heap.scrub(&mut |_, _| {}).unwrap();
    assert!(found.repaired > 1000 && found.lost.is_empty(), "{found:?}");
    assert_eq!(heap.scrub(&mut |_, _| {}).unwrap().repaired, 0);
    heap.detach().unwrap();
}

#[test]
fn s1_16_the_address_of_a_cell_is_closed_outside_transactions() {
    let world = simulated();
    let pool = filled(&world, Class::Transactional);
    let a = attach(&pool);
    let address = std::ptr::from_ref(&a.root()[5]);
    assert_eq!(address.addr() as u64, pool.stat("a").unwrap().address + 40);
    let (_reader, writer) = std::io::pipe().unwrap();
    // SAFETY: the kernel looks whether it may read there.
    let written = unsafe { libc::write(std::os::fd::AsRawFd::as_raw_fd(&writer), address.cast(), 8) };
    let error = std::io::Error::last_os_error();
    assert_eq!((written, error.raw_os_error()), (-1, Some(libc::EFAULT)));
    assert_eq!(get(&a, 5).unwrap(), value(5));
}

#[test]
pub fn a_scrub_repairs_what_can_be_and_names_the_others() {
    in_each_class(|world, class| {
        let pool = filled(world, class);
        let lost = beyond_repair();
        let mut random = Seeded::new(1);
        for nth in [0, 3, 4, 5, 600, 1022] {
            damage(world, &pool, "a", nth, some_bits(&mut random, 4));
        }
        for (nth, bits) in [1, 2, 511, 1023].into_iter().zip(&lost) {
            damage(world, &pool, "a", nth, *bits);
        }
        let mut told = Vec::new();
        let found = pool.scrub("a", KEY, &mut |done, total| told.push((done, total))).unwrap();
        assert_eq!((found.words, found.repaired, &found.lost[..]), (1024, 6, &[8, 16, 4088, 8184][..]));
        assert_eq!(told, [(4096, 8192), (8192, 8192)]);
        assert_eq!(stored(world, &pool, 600), (value(600), check_word(value(600))));
        let again = pool.scrub("a", KEY, &mut |_, _| {}).unwrap();
        assert_eq!((again.repaired, again.lost), (0, found.lost));
        let a = attach(&pool);
        [1, 2, 511, 1023].into_iter().for_each(|nth| set(&a, nth, value(nth)));
        assert_eq!(a.scrub(&mut |_, _| {}).unwrap().lost, Vec::<u64>::new());
        assert!((0..1024).all(|nth| get(&a, nth).unwrap() == value(nth)));
        drop(a);
        pool.create_with("plain", &CreateOptions::new(4096).class(Class::Transactional)).unwrap();
        let refused = pool.scrub("plain", KEY, &mut |_, _| {}).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ClassMismatch, "{refused}");
    });
}

#[test]
fn words_that_others_store_meanwhile_are_not_damaged() {
    CLASSES.into_iter().for_each(nobody_damages_words);
}

fn nobody_damages_words(class: Class) {
    let world = simulated();
    let pool = world.format();
    create(&pool, "a", 8192, class);
    let a = attach(&pool);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let a = &a;
            scope.spawn(move || {
                (0..400).for_each(|round| set(a, (round * 3 + thread) % 64, round as u64));
            });
        }
        for _ in 0..60 {
            let found = a.scrub(&mut |_, _| {}).unwrap();
            assert_eq!((found.repaired, found.lost), (0, vec![]));
        }
    });
    assert_eq!(a.repairs(), indelible::Repairs::default());
}

#[derive(Plain)]
#[repr(C)]
struct WithNumber {
    number: u64,
    cell: TxCell<u64>,
}

#[test]
fn uses_that_know_no_check_words_are_refused() {
    let world = simulated();
    let pool = filled(&world, Class::Transactional);
    let because = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::ClassMismatch, "{error}");
        assert!(
            error.to_string().contains("check words") || error.to_string().contains("transactional"),
            "{error}"
        );
    };
    because(pool.attach("a").unwrap_err());
    because(pool.set_class("a", KEY, Class::Psync).unwrap_err());
    because(pool.attach_transactional::<WithNumber>("a").unwrap_err());
    because(pool.create_with("b", &CreateOptions::new(4096).ecc(true).class(Class::Psync)).unwrap_err());
    because(pool.create_with("b", &CreateOptions::new(4096).ecc(true).sparse(true)).unwrap_err());
    let key = crate::support::seal_key();
    pool.create_with("b", &CreateOptions::new(4096).ecc(true).sealed(&key, "")).unwrap_err();
    assert_eq!(pool.list().count(), 1);
    let a = attach(&pool);
    because(pool.attach_snapshot("a").unwrap_err());
    drop(a);
    let other = World::new(Ground::Simulated, Tracking::Explicit, false);
    let other = other.format();
    because(pool.copy_rebased("a", KEY, &other, "a", &mut |_, _| {}).unwrap_err());
    pool.create("plain", 8192).unwrap();
    because(pool.diff("plain", "a", KEY).unwrap_err());
    because(pool.diff("a", "plain", KEY).unwrap_err());
    let a = attach(&pool);
    assert!((0..1024).all(|nth| get(&a, nth).unwrap() == value(nth)));
}

#[test]
fn readers_copies_and_snapshots_have_the_words() {
    in_each_class(|world, class| {
        let pool = filled(world, class);
        let words = |name: &str| {
            let read = pool.attach_read(name).unwrap();
            let bytes = read.as_slice().to_vec();
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()
        };
        let expected: Vec<u64> = (0..1024).map(value).collect();
        damage(world, &pool, "a", 9, 0b101 << 70);
        assert_eq!(words("a"), expected);
        pool.snapshot("a", "then", KEY).unwrap();
        let a = attach(&pool);
        assert_eq!(get(&a, 9).unwrap(), value(9));
        set(&a, 600, 1);
        drop(a);
        assert_eq!(pool.diff("then", "a", KEY).unwrap().pages, vec![0..2; 1]);
        assert_eq!((words("a")[600], words("then")), (1, expected.clone()));
        pool.create_from("then", "copy", KEY, &CreateOptions::default()).unwrap();
        let copy = pool.attach_transactional::<Cells>("copy").unwrap();
        assert_eq!((get(&copy, 9).unwrap(), get(&copy, 600).unwrap()), (value(9), value(600)));
        copy.transaction(|tx| tx.write(&copy.root()[1], 8)).unwrap();
        drop(copy);
        assert_eq!((words("copy")[1], words("a")[1]), (8, value(1)));
        let stat = pool.stat("copy").unwrap();
        assert_eq!((stat.size, stat.ecc, stat.class), (8192, true, Some(class)));
        pool.rollback("a", "then", KEY).unwrap();
        assert_eq!(words("a"), expected);
        pool.resize("a", 12_288, KEY).unwrap();
        assert_eq!((pool.stat("a").unwrap().size, words("a").len()), (12_288, 1536));
        assert_eq!((&words("a")[..1024], &words("a")[1024..]), (&expected[..], &[0; 512][..]));
        pool.resize("a", 4096, KEY).unwrap();
        assert_eq!(words("a"), expected[..512]);
    });
}

#[test]
fn an_object_in_another_pool_has_its_check_words() {
    let (world, there) = (simulated(), simulated());
    let (pool, other) = (filled(&world, Class::Transactional), there.format());
    pool.copy_to("a", KEY, &other, "a", &mut |_, _| {}).unwrap();
    let a = other.attach_transactional::<Cells>("a").unwrap();
    assert!((0..1024).all(|nth| get(&a, nth).unwrap() == value(nth)));
    assert!(other.stat("a").unwrap().ecc);
}

#[test]
fn a_reader_is_refused_a_page_with_a_word_beyond_repair() {
    let world = simulated();
    let pool = filled(&world, Class::Transactional);
    damage(&world, &pool, "a", 700, beyond_repair()[0]);
    let refused = pool.attach_read("a").and_then(|read| read.prefault(0..8192).map(drop));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("offset 0x15e0"), "{text}");
}

#[test]
pub fn a_power_cut_leaves_words_with_their_check_words() {
    const ROUNDS: u64 = 12;
    let world = simulated();
    let pool = filled(&world, Class::Transactional);
    let mut random = Seeded::new(12);
    let damaged: Vec<usize> = (0..ROUNDS as usize).map(|nth| 40 * nth + 1).collect();
    for nth in &damaged {
        damage(&world, &pool, "a", *nth, some_bits(&mut random, 5));
    }
    drop(pool);
    world.sim().unwrap().settle();
    let record = |sim: &SimMedium| {
        let pool = world.options().on_device(Arc::new(sim.handle()), false).unwrap();
        let a = attach(&pool);
        for round in 1..=ROUNDS {
            a.transaction(|tx| {
                let old = tx.read(&a.root()[damaged[round as usize - 1]])?;
                tx.write(&a.root()[0], round)?;
                tx.write(&a.root()[1000], old)
            })
            .unwrap();
            sim.mark(round);
        }
    };
    let judge = |image: &CrashImage| {
        let pool = world.options().on_device(Arc::new(image.medium()), false).map_err(|e| e.to_string())?;
        let a = pool.attach_transactional::<Cells>("a").map_err(|e| e.to_string())?;
        let done = image.last_mark().unwrap_or(0);
        let found = get(&a, 0).map_err(|e| e.to_string())?;
        let round = if found == value(0) { 0 } else { found };
        if !(done..=done + 1).contains(&round) {
            return Err(format!("{done} returned, and this is there: {found}"));
        }
        let last = if round == 0 { value(1000) } else { value(damaged[round as usize - 1]) };
        for nth in 1..1024 {
            let expected = if nth == 1000 { last } else { value(nth) };
            let found = get(&a, nth).map_err(|e| e.to_string())?;
            if found != expected {
                return Err(format!("word {nth} is {found:#x} after {round}, and was {expected:#x}"));
            }
        }
        let left = a.repairs().repaired;
        if left > ROUNDS - done {
            return Err(format!("{left} words are damaged after {done} repairs"));
        }
        Ok(())
    };
    let limits = Limits { exhaustive: 16, singles: 3, random: 3, points: 60, seed: 1 };
    let report = for_each_crash(world.sim().unwrap(), record, judge, &limits).unwrap();
    assert!(report.distinct > 10, "{report:?}");
}

/// The durable write of a repair fails; calls follow; the process dies.
#[test]
pub fn after_a_repair_that_failed_no_word_is_lost() {
    for (nth, fault) in (0..3).flat_map(|nth| [(nth, Fault::Io), (nth, Fault::After)]) {
        let world = simulated();
        let pool = filled(&world, Class::Transactional);
        let mut random = Seeded::new(nth);
        [7, 8, 500].into_iter().for_each(|nth| damage(&world, &pool, "a", nth, some_bits(&mut random, 6)));
        let a = attach(&pool);
        let sim = world.sim().unwrap();
        sim.fail_at(OpKind::WriteDurable, nth, fault);
        let mut done = 0;
        let failed = [7, 8, 500].into_iter().find_map(|nth| match get(&a, nth) {
            Ok(found) => {
                assert_eq!(found, value(nth));
                done += 1;
                None
            }
            Err(error) => Some(error.kind()),
        });
        assert_eq!((failed, done), (Some(ErrorKind::Io), nth));
        sim.clear_faults();
        let kinds = [
            get(&a, 7).unwrap_err().kind(),
            a.transaction(|tx| tx.write(&a.root()[7], 1)).unwrap_err().kind(),
            a.scrub(&mut |_, _| {}).unwrap_err().kind(),
            a.psync().unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Poisoned; 4]);
        // The process dies: later changes are not in the image.
        let image = SimMedium::from_bytes(&sim.to_bytes(), SimConfig::default());
        drop((a, pool));
        let pool = world.options().on_device(Arc::new(image), false).unwrap();
        let a = attach(&pool);
        assert!((0..1024).all(|nth| get(&a, nth).unwrap() == value(nth)));
        assert!(a.repairs().repaired <= 3);
        assert_eq!(a.scrub(&mut |_, _| {}).unwrap().repaired, 0);
    }
}

#[test]
pub fn words_beside_changed_ones_keep_their_damage_for_their_next_reader() {
    for class in CLASSES {
        let world = simulated();
        let pool = filled(&world, class);
        damage(&world, &pool, "a", 17, 0b111 << 64);
        let a = attach(&pool);
        set(&a, 16, 1);
        set(&a, 18, 2);
        drop(a);
        let (word, check) = stored(&world, &pool, 17);
        assert!(!is_whole(word, check));
        let a = attach(&pool);
        assert_eq!([16, 17, 18].map(|nth| get(&a, nth).unwrap()), [1, value(17), 2]);
    }
}

#[cfg(feature = "__mutants")]
mod mutants {
    use indelible_store::{Mutant, with_mutant};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type Test = fn();
    const WATCHES: &[(Mutant, [Test; 2])] = &[
        (
            Mutant::HalfUnchecked,
            [
                super::s1_13_a_transaction_that_reads_a_damaged_word_repairs_it,
                super::a_scrub_repairs_what_can_be_and_names_the_others,
            ],
        ),
        (
            Mutant::CheckWordApart,
            [
                super::s1_12_words_and_check_words_take_turns_in_the_pool,
                super::a_power_cut_leaves_words_with_their_check_words,
            ],
        ),
        (
            Mutant::DamageCertified,
            [
                super::s1_14_a_part_of_a_damaged_word_is_stored_with_the_whole_word_repaired,
                super::s1_14_bytes_in_two_damaged_words_are_stored_with_both_repaired,
            ],
        ),
    ];

    #[test]
    fn every_broken_rule_is_noticed() {
        let watched: Vec<Mutant> = WATCHES.iter().map(|(mutant, _)| *mutant).collect();
        assert_eq!(watched, Mutant::ECC);
        for (mutant, tests) in WATCHES {
            for (nth, test) in tests.iter().enumerate() {
                let run = AssertUnwindSafe(*test);
                assert!(
                    with_mutant(*mutant, || catch_unwind(run)).is_err(),
                    "{mutant:?} goes unnoticed by {nth}"
                );
            }
        }
    }
}
