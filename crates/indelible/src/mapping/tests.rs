use super::*;

fn file(len: u64) -> std::fs::File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(len).unwrap();
    file
}

fn window(n: usize) -> usize {
    0x5100_0000_0000 + (n << 30)
}

#[test]
fn a_collision_names_range_and_occupant_and_changes_nothing() {
    let addr = window(0);
    let first = Mapping::anonymous(addr + PAGE, PAGE, Protection::ReadWrite).unwrap();
    // SAFETY: mapped above.
    unsafe { first.base().as_ptr().write_volatile(7) };
    let error = Mapping::anonymous(addr, 4 * PAGE, Protection::ReadWrite).unwrap_err();
    assert!(matches!(error, MappingError::Occupied { .. }), "{error}");
    assert!(error.to_string().contains("anonymous memory (0x510000001000..0x510000002000)"), "{error}");
    // SAFETY: still mapped.
    assert_eq!(unsafe { first.base().as_ptr().read_volatile() }, 7);
    drop(first);
    Mapping::anonymous(addr, 4 * PAGE, Protection::ReadWrite).unwrap();
}

#[test]
fn a_mapping_where_the_kernel_likes_replaces_nothing() {
    let file = file(2 * PAGE as u64);
    std::os::unix::fs::FileExt::write_all_at(&file, b"second", PAGE as u64).unwrap();
    let mapped: Vec<_> = (0..3)
        .map(|_| Mapping::file(None, PAGE, file.as_fd(), PAGE as u64, Protection::Read).unwrap())
        .chain([Mapping::anonymous(None, PAGE, Protection::Read).unwrap()])
        .collect();
    // SAFETY: mapped above.
    let begin = |mapping: &Mapping| unsafe { mapping.base().as_ptr().cast::<[u8; 6]>().read() };
    assert_eq!(mapped.iter().map(begin).collect::<Vec<_>>(), [*b"second", *b"second", *b"second", [0; 6]]);
    for len in [0, PAGE + 1, usize::MAX - PAGE + 1] {
        assert!(matches!(Mapping::anonymous(None, len, Protection::Read), Err(MappingError::Range { .. })));
    }
}

#[test]
fn impossible_ranges_are_refused() {
    for (addr, len) in [
        (0, PAGE),
        (window(1) + 1, PAGE),
        (window(1), 0),
        (window(1), PAGE + 1),
        (usize::MAX - PAGE + 1, PAGE),
        (user_end(), PAGE),
        (window(1), usize::MAX - PAGE + 1),
    ] {
        let error = Mapping::anonymous(addr, len, Protection::Read).unwrap_err();
        assert!(matches!(error, MappingError::Range { .. }), "{error}");
    }
    let error = Mapping::file(window(1), PAGE, file(8192).as_fd(), 512, Protection::Read).unwrap_err();
    assert!(matches!(error, MappingError::Range { .. }), "{error}");
}

#[test]
fn growing_continues_the_file_and_a_failed_growth_changes_nothing() {
    use std::os::unix::fs::FileExt;
    let file = file(16 * PAGE as u64);
    file.write_all_at(b"later", 9 * PAGE as u64).unwrap();
    let addr = window(2);
    let mut mapping =
        Mapping::file(addr, PAGE, file.as_fd(), 8 * PAGE as u64, Protection::ReadWrite).unwrap();
    let wall = Mapping::anonymous(addr + 4 * PAGE, PAGE, Protection::None).unwrap();
    assert!(matches!(mapping.grow(5 * PAGE, Some(8 * PAGE as u64)), Err(MappingError::Occupied { .. })));
    assert_eq!(mapping.len(), PAGE);
    mapping.grow(4 * PAGE, Some(8 * PAGE as u64)).unwrap();
    // SAFETY: the second page is mapped now.
    let bytes = unsafe { std::slice::from_raw_parts(mapping.base().as_ptr().add(PAGE), 5) };
    assert_eq!(bytes, b"later");
    drop(wall);
    mapping.shrink(PAGE);
    assert_eq!(mapping.len(), PAGE);
    Mapping::anonymous(addr + PAGE, PAGE, Protection::None).unwrap();
}

#[test]
fn renewing_drops_private_copies() {
    let file = file(PAGE as u64);
    let mut mapping = Mapping::file(window(3), PAGE, file.as_fd(), 0, Protection::ReadWrite).unwrap();
    // SAFETY: mapped; no other thread knows of it.
    unsafe {
        mapping.base().as_ptr().write_volatile(9);
        mapping.renew(0).unwrap();
        assert_eq!(mapping.base().as_ptr().read_volatile(), 0);
    }
}

#[test]
fn a_dropped_mapping_leaves_the_range_free() {
    for _ in 0..3 {
        drop(Mapping::anonymous(window(4), 2 * PAGE, Protection::Read).unwrap());
    }
}

#[test]
fn a_forked_child_sees_no_mapping() {
    let mapping = Mapping::anonymous(window(5), PAGE, Protection::ReadWrite).unwrap();
    let before = fork::generation();
    // SAFETY: the child calls only async-signal-safe functions before it exits: `mincore` fails
    // with ENOMEM exactly when the page is not mapped.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut resident = 0_u8;
        let addr = std::ptr::with_exposed_provenance_mut(mapping.addr());
        // SAFETY: as above; `mincore` writes one byte.
        unsafe {
            let absent = libc::mincore(addr, PAGE, &raw mut resident) != 0;
            libc::_exit(if absent && fork::generation() == before + 1 { 0 } else { 1 });
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn secret_memory_is_overwritten() {
    let addr = window(6);
    let mut mapping = Mapping::anonymous(addr, 2 * PAGE, Protection::ReadWrite).unwrap();
    mapping.keep_secret().unwrap();
    // SAFETY: mapped above.
    unsafe { mapping.base().as_ptr().write_bytes(7, 2 * PAGE) };
    // SAFETY: our own mapping, to which no reference exists.
    unsafe { mmap::protect(addr, 2 * PAGE, Protection::Read) }.unwrap();
    mapping.wipe();
    // SAFETY: still mapped.
    let bytes = unsafe { std::slice::from_raw_parts(mapping.base().as_ptr(), 2 * PAGE) };
    assert!(bytes.iter().all(|byte| *byte == 0));
}
