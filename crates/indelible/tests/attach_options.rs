use indelible::{AttachOptions, CreateOptions, ErrorKind, Pool, SealKey};
use std::time::Duration;

#[test]
fn one_set_of_options_attaches_in_every_way() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("pool"), 16 << 20).unwrap();
    let seal = SealKey::file(vec![7; 32]).unwrap();
    let locked = CreateOptions::new(4096).read_key(b"read").write_key(b"write");
    pool.create_with("sealed", &locked.sealed(&seal, "slot")).unwrap();
    let reads = AttachOptions::new().key(b"read").seal(&seal);
    let writes = AttachOptions::new().key(b"write").seal(&seal);
    let mut object = pool.attach_with("sealed", &writes).unwrap();
    object.as_mut_slice()[7] = 7;
    object.psync().unwrap();
    object.detach().unwrap();
    assert_eq!(pool.attach_read_with("sealed", &reads).unwrap().as_slice()[7], 7);
    assert_eq!(pool.attach_snapshot_with("sealed", &reads).unwrap().as_slice()[7], 7);
    let keyless = AttachOptions::new().seal(&seal);
    for error in [
        pool.attach_with("sealed", &keyless).map(drop).unwrap_err(),
        pool.attach_read_with("sealed", &keyless).map(drop).unwrap_err(),
        pool.attach_snapshot_with("sealed", &keyless).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::WrongKey);
    }
    let sealed = pool.attach_read_with("sealed", &AttachOptions::new().key(b"read")).map(drop).unwrap_err();
    assert_eq!(sealed.kind(), ErrorKind::Sealed);
    let shown = format!("{reads:?}");
    assert!(shown.contains("has_key: true") && !shown.contains("114"), "no byte of a key: {shown}");
}

#[test]
fn an_attach_waits_as_its_options_say_not_as_the_pool() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("pool"), 16 << 20).unwrap();
    let writer = pool.create_attached("held", 4096).unwrap();
    pool.set_wait(Duration::from_secs(3600));
    let at_once = AttachOptions::new().wait(Duration::ZERO);
    assert_eq!(pool.attach_with("held", &at_once).map(drop).unwrap_err().kind(), ErrorKind::Held);
    assert_eq!(pool.attach_read_with("held", &at_once).map(drop).unwrap_err().kind(), ErrorKind::Held);
    pool.set_wait(Duration::ZERO);
    writer.detach().unwrap();
    pool.attach_with("held", &at_once).unwrap();
}

#[test]
fn only_snapshots_are_attached_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::format(dir.path().join("pool"), 16 << 20).unwrap();
    let seal = SealKey::file(vec![7; 32]).unwrap();
    pool.create_with("sealed", &CreateOptions::new(4096).sealed(&seal, "slot")).unwrap();
    pool.create("plain", 4096).unwrap();
    for (name, options) in [("plain", AttachOptions::new()), ("sealed", AttachOptions::new().seal(&seal))] {
        let anywhere = options.clone().anywhere(true);
        for error in [
            pool.attach_with(name, &anywhere).map(drop).unwrap_err(),
            pool.attach_read_with(name, &anywhere).map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsuitable, "{error}");
            assert!(error.remedy().contains("attach a snapshot"), "{error}");
        }
        let mut object = pool.attach_with(name, &options).unwrap();
        let taken = pool.attach_snapshot_with(name, &options).map(drop).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddressTaken, "{taken}");
        let mut states: Vec<_> = (1..=2)
            .map(|value| {
                object.as_mut_slice()[9] = value;
                object.psync().unwrap();
                pool.attach_snapshot_with(name, &anywhere).unwrap()
            })
            .collect();
        let shown = |states: &[indelible::ReadObject]| {
            states.iter().map(|state| state.as_slice()[9]).collect::<Vec<_>>()
        };
        assert_eq!(shown(&states), [1, 2], "{name}");
        assert!(states[0].refresh().unwrap() && !states[1].refresh().unwrap());
        assert_eq!(shown(&states), [2, 2], "{name}");
    }
}
