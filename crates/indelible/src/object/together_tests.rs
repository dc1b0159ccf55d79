use super::Object;
use super::together::cut_cores;
use crate::dirty::{Refused, Unknown};
use crate::pool::{Pool, PoolOptions, Tracking};
use crate::sys::PAGE;

const NAMES: [&str; 3] = ["a", "b", "c"];
const PAGES: usize = 9;

fn objects(pool: &Pool) -> [Object; 3] {
    NAMES.map(|name| pool.create_attached(name, (PAGES * PAGE) as u64).unwrap())
}

fn cut(objects: &mut [Object]) -> Result<(), crate::error::Cause> {
    let mut cores: Vec<_> = objects.iter_mut().map(Object::core_mut).collect();
    cut_cores(&mut cores, false, &mut Unknown, || {})
}

fn a_cut_that_fails_loses_nothing(tracking: Tracking, refused: Refused, by: usize) {
    let about = format!("{tracking:?}, {refused:?} by object {by}");
    let folder = tempfile::tempdir().unwrap();
    let pool = PoolOptions::new().tracking(tracking).format(folder.path().join("pool"), 16 << 20).unwrap();
    let mut objects = objects(&pool);
    for round in 1..=2 {
        objects.iter_mut().for_each(|object| object.as_mut_slice().fill(round));
        if round == 1 {
            cut(&mut objects).unwrap();
        }
    }
    objects[by].core_mut().tracked.shadow_mut().unwrap().tracker().refuse(refused);
    let refusal = cut(&mut objects).unwrap_err();
    assert!(format!("{refusal:?}").contains("OutOfMemory"), "{about}: {refusal:?}");
    for object in &mut objects {
        assert!(!object.core_mut().tracked.shadow_mut().unwrap().tracker().is_held(), "{about}: held");
    }
    cut(&mut objects).unwrap();
    drop(objects);
    for name in NAMES {
        let object = pool.attach(name).unwrap();
        assert!(object.as_slice().iter().all(|byte| *byte == 2), "{about}: stores to {name} were lost");
    }
}

#[test]
fn a_cut_that_fails_after_settling_loses_nothing_and_holds_nobody_up() {
    for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
        if !tracking.is_available() {
            indelible_testing::not_tested(format_args!("tracking by {tracking:?}"));
            continue;
        }
        for refused in [Refused::Settle, Refused::Release] {
            (0..NAMES.len()).for_each(|by| a_cut_that_fails_loses_nothing(tracking, refused, by));
        }
    }
}

#[test]
fn a_cut_begins_to_find_stores_before_it_holds_them_up() {
    let folder = tempfile::tempdir().unwrap();
    let options = PoolOptions::new().tracking(Tracking::Explicit);
    let pool = options.format(folder.path().join("pool"), 16 << 20).unwrap();
    let mut object = pool.create_attached("a", PAGES as u64 * PAGE as u64).unwrap();
    object.as_mut_slice().fill(1);
    let tracked = &mut object.core_mut().tracked;
    tracked.want_stores();
    cut_cores(&mut [object.core_mut()], true, &mut Unknown, || {}).unwrap();
    assert!(!object.core_mut().tracked.shadow_mut().unwrap().tracker().is_held(), "held");
    object.as_mut_slice()[PAGE] = 2;
    object.psync().unwrap();
    drop(object);
    let object = pool.attach("a").unwrap();
    assert_eq!((object.as_slice()[0], object.as_slice()[PAGE]), (1, 2));
}
