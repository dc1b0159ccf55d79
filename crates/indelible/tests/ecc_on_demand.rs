use crate::ecc::{Cells, KEY, attach, create, damage, filled, get, set, some_bits, stored, value};
use crate::transactional_heap::simulated;
use indelible::{Class, EpochBounds, ErrorKind, TxCell, TxObject, transaction};
use indelible_stm::ecc::{check_word, is_whole, repair};
use indelible_store::store::Store;
use indelible_testing::pool::{contents, process, recover_all};
use indelible_testing::{CrashImage, Fault, Limits, OpKind, Seeded, SimMedium, for_each_crash};
use std::sync::Arc;
use std::time::Duration;

#[test]
pub fn a_power_cut_leaves_words_on_demand_with_their_check_words() {
    const ROUNDS: u64 = 12;
    let world = simulated();
    let pool = filled(&world, Class::OnDemand);
    let mut random = Seeded::new(21);
    (0..ROUNDS as usize).for_each(|nth| damage(&world, &pool, "a", 40 * nth + 1, some_bits(&mut random, 5)));
    drop(pool);
    world.sim().unwrap().settle();
    let record = |sim: &SimMedium| {
        let pool = world.options().on_device(Arc::new(sim.handle()), false).unwrap();
        pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: u64::MAX });
        let a = attach(&pool);
        for round in 1..=ROUNDS {
            a.transaction(|tx| {
                let old = tx.read(&a.root()[40 * round as usize - 39])?;
                tx.write(&a.root()[3], round)?;
                tx.write(&a.root()[4], round)?;
                tx.write(&a.root()[1000], old)
            })
            .unwrap();
            if round % 3 == 0 {
                a.tx_sync().unwrap();
                sim.mark(round);
            }
        }
    };
    let judge = |image: &CrashImage| {
        let store = Store::open(Arc::new(image.medium()), process(2)).map_err(|e| e.to_string())?;
        recover_all(&store).map_err(|e| e.to_string())?;
        let bytes = contents(&store, &store.find("a").unwrap()).map_err(|e| e.to_string())?;
        let (done, mut damaged) = (image.last_mark().unwrap_or(0), 0);
        let mut words = Vec::new();
        for (nth, pair) in bytes.as_chunks::<16>().0.iter().enumerate() {
            let [word, check] = [0, 8].map(|at| u64::from_le_bytes(pair[at..at + 8].try_into().unwrap()));
            damaged += u64::from(!is_whole(word, check));
            words.push(repair(word, check).map_err(|_| format!("word {nth} is lost"))?.word);
        }
        let round = if words[3] == value(3) { 0 } else { words[3] };
        let last = if round == 0 { value(1000) } else { value(40 * round as usize - 39) };
        let whole = round % 3 == 0 && words[1000] == last && (round == 0 || words[4] == round);
        if !whole || !(done..=done + 3).contains(&round) || damaged != ROUNDS - round {
            return Err(format!("{done} was durable, and {round} is there; {damaged} words are damaged"));
        }
        let others = (0..1024).filter(|nth| ![3, 4, 1000].contains(nth));
        match others.clone().find(|nth| words[*nth] != value(*nth)) {
            Some(nth) => Err(format!("word {nth} is {:#x} after {round}", words[nth])),
            None => Ok(()),
        }
    };
    let limits = Limits { exhaustive: 16, singles: 3, random: 3, points: 60, seed: 1 };
    let report = for_each_crash(world.sim().unwrap(), record, judge, &limits).unwrap();
    assert!(report.distinct > 10, "{report:?}");
}

#[test]
fn after_an_epoch_of_repairs_that_failed_no_word_is_lost() {
    for fault in [Fault::Io, Fault::After] {
        let world = simulated();
        let pool = filled(&world, Class::OnDemand);
        let mut random = Seeded::new(7);
        [7, 8, 500].into_iter().for_each(|nth| damage(&world, &pool, "a", nth, some_bits(&mut random, 6)));
        let a = attach(&pool);
        set(&a, 9, 1);
        [7, 8, 500].into_iter().for_each(|nth| assert_eq!(get(&a, nth).unwrap(), value(nth)));
        assert_eq!((a.repairs().repaired, a.pending().transactions), (3, 4));
        let sim = world.sim().unwrap();
        sim.fail_at(OpKind::WriteDurable, 0, fault);
        assert_eq!(a.tx_sync().unwrap_err().kind(), ErrorKind::Io);
        sim.clear_faults();
        let kinds = [
            get(&a, 7).unwrap_err().kind(),
            a.scrub(&mut |_, _| {}).unwrap_err().kind(),
            a.psync().unwrap_err().kind(),
            a.detach().unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Poisoned; 4]);
        let a = attach(&pool);
        assert!((0..1024).all(|nth| get(&a, nth).unwrap() == if nth == 9 { 1 } else { value(nth) }));
        assert_eq!(a.repairs().repaired, 0, "the repairs were commits as others");
    }
}

#[test]
fn a_large_transaction_on_demand_has_room_for_its_check_words() {
    let world = simulated();
    let pool = world.format();
    pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 4096 });
    create(&pool, "large", 64 << 10, Class::OnDemand);
    let large = pool.attach_transactional::<[TxCell<u64>; 8192]>("large").unwrap();
    let cells = large.root();
    for (count, number) in [(8192, 1), (5, 2), (8192, 3), (4000, 4)] {
        let fill =
            |tx: &mut indelible::Tx<'_>| cells[..count].iter().try_for_each(|cell| tx.write(cell, number));
        large.transaction(fill).unwrap();
    }
    let all = |large: &TxObject<[TxCell<u64>; 8192]>| {
        let read = |tx: &mut indelible::Tx<'_>| {
            large.root().iter().map(|cell| tx.read(cell)).sum::<indelible::Result<u64>>()
        };
        large.transaction(read).unwrap()
    };
    assert_eq!(all(&large), 4000 * 4 + 4192 * 3);
    large.detach().unwrap();
    let large = pool.attach_transactional("large").unwrap();
    assert_eq!(all(&large), 4000 * 4 + 4192 * 3);
    assert_eq!(large.scrub(&mut |_, _| {}).unwrap().repaired, 0);
}

#[test]
fn words_keep_their_check_words_when_the_class_changes() {
    let world = simulated();
    let pool = filled(&world, Class::Transactional);
    for (nth, class) in [(1, Class::OnDemand), (2, Class::Transactional)] {
        pool.set_class("a", KEY, class).unwrap();
        let a = attach(&pool);
        set(&a, nth, 1);
        a.detach().unwrap();
        assert_eq!(stored(&world, &pool, nth), (1, check_word(1)));
    }
    let a = attach(&pool);
    assert!((3..1024).all(|nth| get(&a, nth).unwrap() == value(nth)));
    drop(a);
    create(&pool, "quick", 4096, Class::OnDemand);
    let quick = pool.attach_transactional::<TxCell<u64>>("quick").unwrap();
    let a = pool.attach_with_on_demand::<Cells>("a", KEY).unwrap();
    transaction(&[&quick, &a], |tx| {
        tx.write(&quick, 5)?;
        tx.write(&a.root()[5], 5)
    })
    .unwrap();
    assert_eq!(quick.pending().bytes, 0, "the stronger class decides");
    assert_eq!(stored(&world, &pool, 5), (5, check_word(5)));
}
