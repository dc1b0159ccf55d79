use indelible_store::medium::{Device, LockKey, LockMode, Locks, Medium, MediumError};
use indelible_testing::{Choice, Fault, OpKind, SimConfig, SimMedium};

const KEY: LockKey = LockKey::Lane(3);
use LockMode::{Exclusive, Shared};

fn pair() -> (SimMedium, SimMedium) {
    let a = SimMedium::new(4096, SimConfig::default());
    let b = a.handle();
    (a, b)
}

#[test]
fn compatibility_matrix() {
    for (held, wanted, granted) in [
        (Shared, Shared, true),
        (Shared, Exclusive, false),
        (Exclusive, Shared, false),
        (Exclusive, Exclusive, false),
    ] {
        let (a, b) = pair();
        assert!(a.try_lock(KEY, held).unwrap());
        assert_eq!(b.try_lock(KEY, wanted).unwrap(), granted, "{wanted:?} beside {held:?}");
        assert_eq!(b.probe(KEY).unwrap(), Some(held));
        assert_eq!(a.probe(KEY).unwrap(), granted.then_some(wanted), "one's own do not count");
        assert!(b.try_lock(LockKey::Table, Exclusive).unwrap(), "other keys are free");
        a.unlock(KEY);
        b.unlock(KEY);
        assert!(b.try_lock(KEY, Exclusive).unwrap());
    }
}

#[test]
fn conversion() {
    let (a, b) = pair();
    assert!(a.try_lock(KEY, Exclusive).unwrap() && a.try_lock(KEY, Exclusive).unwrap());
    assert!(a.try_lock(KEY, Shared).unwrap() && b.try_lock(KEY, Shared).unwrap());
    assert!(!a.try_lock(KEY, Exclusive).unwrap());
    assert_eq!(b.probe(KEY).unwrap(), Some(Shared), "a refused conversion keeps the mode");
    b.unlock(KEY);
    assert!(a.try_lock(KEY, Exclusive).unwrap());
    assert_eq!(a.locks_held(), [(KEY, Exclusive)]);
    a.unlock(KEY);
    a.unlock(KEY);
    assert_eq!(a.locks_held(), []);
}

#[test]
fn locks_die_with_their_holder() {
    let (a, b) = pair();
    let c = a.handle();
    assert!(a.try_lock(KEY, Exclusive).unwrap());
    assert!(c.try_lock(LockKey::Object(64), Exclusive).unwrap());
    a.kill();
    drop(c);
    assert!(b.try_lock(KEY, Exclusive).unwrap());
    assert!(b.try_lock(LockKey::Object(64), Exclusive).unwrap());
    a.unlock(KEY);
    assert_eq!(b.locks_held().len(), 2, "the dead release nothing of others");
}

#[test]
fn readers_may_not_exclude() {
    let (a, _b) = pair();
    let reader = a.read_only_handle();
    assert!(reader.try_lock(KEY, Shared).unwrap());
    assert!(matches!(reader.try_lock(KEY, Exclusive), Err(MediumError::ReadOnly)));
}

#[test]
fn death_keeps_what_a_power_cut_may_lose() {
    let (a, b) = pair();
    a.write(0, &[1]).unwrap();
    a.kill();
    assert!(a.write(0, &[2]).is_err() && a.try_lock(KEY, Shared).is_err());
    assert_eq!(b.to_bytes()[0], 1);
    assert!(b.try_lock(KEY, Exclusive).unwrap());
    let after = b.power_cut(Choice::None).medium();
    assert_eq!(after.to_bytes()[0], 0);
    assert!(after.try_lock(KEY, Exclusive).unwrap(), "no lock outlives the machine");
    assert_eq!((after.events().len(), b.to_bytes()[0]), (0, 1));
    b.barrier().unwrap();
    assert_eq!(b.power_cut(Choice::None).medium().to_bytes()[0], 1);
}

#[test]
fn death_in_the_middle_of_a_call() {
    let (a, b) = pair();
    assert!(a.try_lock(KEY, Exclusive).unwrap());
    a.fail_at(OpKind::WriteDurable, 0, Fault::Kill);
    assert!(a.write_durable(0, &[1; 4096]).is_err());
    assert!(a.read(0, &mut [0]).is_err(), "dead is dead");
    assert!(b.try_lock(KEY, Exclusive).unwrap());
    assert_eq!(b.power_cut(Choice::None).medium().to_bytes(), [0; 4096]);
}

/// Others may rely too early on a visible write that is not durable.
#[test]
fn others_run_between_the_halves_of_a_durable_write() {
    let (a, b) = pair();
    a.write(0, &[1]).unwrap();
    let mut seen = [0];
    b.read(0, &mut seen).unwrap();
    b.write_durable(512, &seen).unwrap();
    let after = a.power_cut(Choice::None).medium().to_bytes();
    assert_eq!((after[0], after[512]), (0, 1));
}

#[test]
fn it_is_a_device_for_many_threads() {
    fn device(_: &(impl Device + Send + Sync + 'static)) {}
    let (a, b) = pair();
    device(&a);
    std::thread::scope(|scope| {
        for at in 0..4u64 {
            let m = if at % 2 == 0 { &a } else { &b };
            scope.spawn(move || {
                for i in 0..100 {
                    m.write_durable(at * 1024, &[i; 600]).unwrap();
                    m.write(at * 1024 + 700, &[i; 10]).unwrap();
                    m.barrier().unwrap();
                }
            });
        }
    });
    assert_eq!(a.power_cut(Choice::None).digest(), a.digest());
}
