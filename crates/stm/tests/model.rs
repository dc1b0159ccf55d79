//! One thread's random programs beside a vector of bytes.

use crate::support::{Arena, Remembering, runs, stm};
use indelible_stm::{Abort, Conflict, Direct, Error, Number, Transaction};
use indelible_testing::Seeded;

type Tx<'t, 'env> = Transaction<'t, 'env, Direct, Remembering>;

fn number<T: Number + PartialEq + std::fmt::Debug>(
    tx: &mut Tx<'_, '_>,
    at: *mut u8,
    value: T,
) -> Result<(), Conflict> {
    // SAFETY: `step` leaves room for 8 bytes in the arena.
    unsafe { tx.store(at.cast(), value)? };
    // SAFETY: as above.
    assert_eq!(unsafe { tx.load::<T>(at.cast()) }?, value);
    Ok(())
}

fn step(tx: &mut Tx<'_, '_>, arena: &Arena, model: &mut [u8], random: &mut Seeded) -> Result<(), Conflict> {
    let at = random.usize(..=arena.len() - 8);
    let (place, value) = (arena.at(at), random.u64(..));
    let changed = match random.usize(..16) {
        0 => number(tx, place, value as u8).map(|()| 1),
        1 => number(tx, place, value as u16).map(|()| 2),
        2 => number(tx, place, value as u32).map(|()| 4),
        3 => number(tx, place, value).map(|()| 8),
        4 => number(tx, place, value as i8).map(|()| 1),
        5 => number(tx, place, value as i16).map(|()| 2),
        6 => number(tx, place, value as i32).map(|()| 4),
        7 => number(tx, place, value as i64).map(|()| 8),
        // A floating-point number that equals itself.
        8 => number(tx, place, f32::from_bits(value as u32 & 0xbfff_ffff)).map(|()| 0),
        9 => number(tx, place, f64::from_bits(value & 0xbfff_ffff_ffff_ffff)).map(|()| 0),
        10..=12 => {
            let bytes: Vec<u8> =
                (0..random.usize(..=(arena.len() - at).min(200))).map(|_| random.u8(..)).collect();
            // SAFETY: the bytes are in the arena.
            unsafe { tx.store_bytes(place, &bytes)? };
            model[at..at + bytes.len()].copy_from_slice(&bytes);
            Ok(0)
        }
        _ => {
            let mut bytes = vec![0; random.usize(..=(arena.len() - at).min(200))];
            // SAFETY: the bytes are in the arena.
            unsafe { tx.load_bytes(place, &mut bytes)? };
            assert_eq!(bytes, model[at..at + bytes.len()]);
            Ok(0)
        }
    }?;
    model[at..at + changed].copy_from_slice(&value.to_le_bytes()[..changed]);
    if changed == 0 {
        // SAFETY: as above.
        unsafe { tx.load_bytes(place, &mut model[at..at + 8])? };
    }
    Ok(())
}

#[test]
fn random_programs_of_one_thread_agree_with_bytes() {
    let mut random = Seeded::new(19);
    for round in 0..if cfg!(miri) { 5 } else { 200 } {
        let arena = Arena::new(1 + random.usize(..120));
        let stm = stm(random.u32(..8), Direct, Remembering::default(), None);
        let mut thread = stm.thread();
        let mut model = vec![0; arena.len()];
        for _ in 0..random.usize(..20) {
            let (mut next, steps, cancel) = (model.clone(), random.usize(..40), random.u8(..4) == 0);
            let mut expected = Vec::new();
            let result = thread.atomically(|tx| {
                for _ in 0..steps {
                    step(tx, &arena, &mut next, &mut random)?;
                }
                expected = runs(tx.writes());
                let distinct = expected.iter().map(|(at, _)| at).collect::<std::collections::BTreeSet<_>>();
                assert_eq!(distinct.len(), expected.len(), "a line is named twice");
                let bytes: usize = expected.iter().map(|(_, run)| run.len()).sum();
                assert_eq!(bytes, tx.writes().bytes());
                if cancel { Err(Abort::Cancel(())) } else { Ok(()) }
            });
            match result {
                Ok(_) => model = next,
                Err(error) => assert_eq!((error, cancel), (Error::Cancelled(()), true)),
            }
            assert_eq!(arena.bytes(), model, "round {round}");
        }
        stm.sink().dense();
        assert_eq!(stm.sink().redone(&arena), model, "round {round}");
    }
}
