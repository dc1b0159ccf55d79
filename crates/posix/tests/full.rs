//! On a full pool each operation without room changes nothing.

use crate::support::{OWN, check, dump, errno, fresh};
use indelible_posix::{Allocate, Existing, New, ROOT, Rename};

#[test]
fn an_operation_that_lacks_room_changes_nothing() {
    let (_folder, pool, mut volume) = fresh(16 << 20);
    let folder = volume.create_directory(ROOT, b"folder", &OWN).unwrap();
    let file = volume.create_file(ROOT, b"file", &OWN).unwrap();
    volume.write(file, 0, &[1; 70_000]).unwrap();
    // Ever smaller pieces, until not even a name fits.
    let mut piece = 1 << 20;
    let filler = volume.create_file(ROOT, b"filler", &OWN).unwrap();
    let mut length = 0;
    while piece >= 1 << 16 {
        match volume.write(filler, length, &vec![2; piece]) {
            Ok(()) => length += piece as u64,
            Err(error) if error.errno() == libc::ENOSPC => piece /= 2,
            Err(error) => panic!("{error}"),
        }
    }
    let long = |number: u32| format!("{number:0>200}").into_bytes();
    let full = (0..).find_map(|number| volume.create_file(folder, &long(number), &OWN).err());
    assert_eq!(full.map(|error| error.errno()), Some(libc::ENOSPC));
    let filled = dump(&volume);
    let target = [b't'; 4000];
    for round in 0..40_u32 {
        let name = long(1_000_000 + round);
        let mut full = vec![
            errno(volume.write(file, 60_000, &[3; 300_000])),
            errno(volume.create_link(ROOT, &name, &New { target: &target, ..OWN })),
            errno(volume.set_attribute(folder, &name, &[4; 60_000], Existing::Any)),
            errno(volume.allocate(file, 0..1 << 19, Allocate::Grow)),
            errno(volume.allocate(file, 0..1 << 40, Allocate::Grow)),
        ];
        full.dedup();
        assert_eq!(full, [libc::ENOSPC]);
        assert_eq!(dump(&volume), filled);
    }
    // Nodes may have room for names.
    let mut refused = 0;
    for round in 0..400_u32 {
        let before = dump(&volume);
        let name = long(2_000_000 + round);
        let done = match round % 3 {
            0 => volume.link(file, folder, &name),
            1 => volume.create_file(folder, &name, &OWN).map(drop),
            _ => volume.create_directory(ROOT, &name, &OWN).map(drop),
        };
        if let Err(error) = done {
            assert_eq!(error.errno(), libc::ENOSPC);
            assert_eq!(dump(&volume), before);
            refused += 1;
        }
        if refused > 30 {
            break;
        }
    }
    assert!(refused > 30);
    check(&mut volume);
    volume.rename((ROOT, b"file"), (ROOT, b"filler"), Rename::Replace).unwrap();
    volume.sync().unwrap();
    volume.write(file, 60_000, &[3; 300_000]).unwrap();
    volume.sync().unwrap();
    check(&mut volume);
    drop(volume);
    let mut volume = indelible_posix::Volume::open(&pool, "files").unwrap();
    assert_eq!(volume.read(file, 359_990, 99).unwrap(), [3; 10]);
    check(&mut volume);
}
