use indelible::{MediumKind, Object, Pool, PoolOptions, Tracking};
use std::process::Command;
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const CHUNK: usize = 2 << 20;
const LEN: usize = 64 << 20;

fn put(object: &mut Object, at: usize, byte: u8) {
    assert!(at < object.as_slice().len());
    // SAFETY: a byte of the object.
    unsafe { object.as_mut_ptr().add(at).write_volatile(byte) };
}

fn large() -> Option<(tempfile::TempDir, Pool, Object)> {
    let found = indelible::doctor(None).facilities;
    let log = found.iter().find(|facility| facility.name == "fault log").expect("the doctor tells of it");
    if log.available != Some(true) || !Tracking::FaultLog.is_available() {
        indelible_testing::not_tested(format_args!("pages found by name: {}", log.found));
        return None;
    }
    let folder = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let options = PoolOptions::new().medium(MediumKind::Memory).tracking(Tracking::FaultLog);
    let pool = options.format(folder.path().join("pool"), 2 * LEN as u64).unwrap();
    let mut object = pool.create_attached("a", LEN as u64).unwrap();
    for round in 1..4 {
        for page in (0..LEN).step_by(CHUNK).flat_map(|chunk| (0..8).map(move |page| chunk + page * PAGE)) {
            put(&mut object, page, round);
        }
        object.psync().unwrap();
    }
    Some((folder, pool, object))
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn work() {
    let Some((_folder, pool, mut object)) = large() else { return };
    let (mut named, mut stored, mut rounds) = (0, Vec::new(), 0);
    while named < 5 {
        assert!(rounds < 20_000, "found by name {named} times, in {rounds} psyncs");
        rounds += 1;
        let at = (rounds * 7_919 * PAGE + rounds % PAGE) % (LEN - 1);
        let before = object.stats();
        put(&mut object, at, rounds as u8 | 1);
        object.psync().unwrap();
        let after = object.stats();
        assert_eq!(after.logged_bytes - before.logged_bytes, 64, "round {rounds}");
        named += after.found_by_name - before.found_by_name;
        stored.push((at, rounds as u8 | 1));
    }
    drop(object);
    let object = pool.attach("a").unwrap();
    let last: std::collections::BTreeMap<usize, u8> = stored.into_iter().collect();
    last.into_iter().for_each(|(at, byte)| assert_eq!(object.as_slice()[at], byte, "at {at:#x}"));
}

#[test]
fn changed_pages_of_a_large_object_are_found_by_name() {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", "fault_log::work", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = alone.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    said.lines().filter(|line| line.starts_with("NOT TESTED")).for_each(|line| println!("{line}"));
}

#[test]
fn stores_of_another_process_are_found_soon() {
    let Some((_folder, pool, mut object)) = large() else { return };
    let mut pipes = [[0; 2]; 2];
    for pipe in &mut pipes {
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    }
    let ([ask, asked], [answer, answered]) = (pipes[0], pipes[1]);
    let (parent, at) = (std::process::id() as i32, 40 * CHUNK / 2 + 5 * PAGE);
    let target = object.as_mut_ptr().wrapping_add(at);
    // SAFETY: the child calls the kernel alone, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: buffers of this function; the target is the parent's.
        unsafe {
            let mut word = [0_u8; 1];
            while libc::read(ask, word.as_mut_ptr().cast(), 1) == 1 && word[0] != 0 {
                let from = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 1 };
                let to = libc::iovec { iov_base: target.cast(), iov_len: 1 };
                let mut done = u8::from(libc::process_vm_writev(parent, &from, 1, &to, 1, 0) == 1);
                libc::write(answered, (&raw mut done).cast(), 1);
            }
            libc::_exit(0);
        }
    }
    let ask_for = |byte: u8| {
        let (mut done, byte) = (0_u8, byte);
        // SAFETY: a byte each.
        unsafe {
            assert_eq!(libc::write(asked, (&raw const byte).cast(), 1), 1);
            if byte != 0 {
                assert_eq!(libc::read(answer, (&raw mut done).cast(), 1), 1);
            }
        }
        done == 1
    };
    for byte in 10..13 {
        for round in 0..200 {
            put(&mut object, round * CHUNK / 8, byte ^ round as u8);
            object.psync().unwrap();
        }
        if !ask_for(byte) {
            ask_for(0);
            return indelible_testing::not_tested("process_vm_writev by a child");
        }
        let (begin, before) = (Instant::now(), object.stats().logged_bytes);
        while object.stats().logged_bytes == before {
            object.psync().unwrap();
            assert!(begin.elapsed() < Duration::from_secs(60), "the store of {byte} is not found");
        }
    }
    ask_for(0);
    let mut status = 0;
    // SAFETY: the child of above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    drop(object);
    assert_eq!(pool.attach("a").unwrap().as_slice()[at], 12);
}
