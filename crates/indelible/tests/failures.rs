use crate::support::{self, Ground, World, everywhere};
use indelible::{ErrorKind, MediumKind, Pool, PoolOptions, Tracking, psync_all};
use indelible_store::format::entry::Entry;
use indelible_store::format::superblock::Superblock;
use indelible_testing::hostile::Image;
use indelible_testing::hostile::anatomy::{self, Kind};
use indelible_testing::{Choice, Fault, OpKind, SimConfig, SimMedium};
use std::error::Error;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;
use std::time::SystemTime;

fn disk() -> World {
    World::new(Ground::File, Tracking::Auto, false)
}

fn kind<T>(result: indelible::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("this had to fail"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("cannot ") && text.ends_with(')'), "{text}");
            assert!(!error.remedy().is_empty());
            error.kind()
        }
    }
}

#[test]
fn a_file_that_is_no_pool_is_refused_by_name() {
    let world = disk();
    let path = world.path();
    assert_eq!(kind(Pool::open(&path)), ErrorKind::NoPool);
    fs::write(&path, b"").unwrap();
    assert_eq!(kind(Pool::open(&path)), ErrorKind::NotAPool);
    fs::write(&path, vec![7; 3 << 20]).unwrap();
    assert_eq!(kind(Pool::open(&path)), ErrorKind::NotAPool);
    fs::write(&path, b"short").unwrap();
    assert!(matches!(kind(Pool::open(&path)), ErrorKind::NotAPool | ErrorKind::Damaged));
    assert_eq!(kind(Pool::format(&path, 1 << 20)), ErrorKind::PoolExists);
    assert_eq!(kind(Pool::open(world.dir())), ErrorKind::Unsuitable.min_or_io());
    fs::remove_file(&path).unwrap();
    assert_eq!(kind(Pool::format(&path, 100)), ErrorKind::BadSize);
    assert!(!path.exists(), "a failed format leaves no file");
}

#[test]
fn a_format_of_an_impossible_size_changes_nothing() {
    let world = disk();
    world.format().create("kept", 4096).unwrap();
    for size in [0, 1, 4096, (1 << 20) - 1, (32 << 40) + 1, u64::MAX] {
        let error = PoolOptions::new().force(true).format(world.path(), size).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadSize);
        assert!(error.to_string().ends_with("(ask for a size between 1 MiB and 32 TiB)"), "{error}");
    }
    assert!(Pool::open(world.path()).unwrap().stat("kept").is_ok());
    let empty = world.dir().join("empty");
    fs::write(&empty, b"").unwrap();
    assert_eq!(kind(Pool::format(&empty, 1 << 20)), ErrorKind::PoolExists);
    PoolOptions::new().force(true).format(&empty, 1 << 20).unwrap();
    assert!(Pool::open(&empty).is_ok());
}

#[test]
fn times_of_a_hostile_pool_are_far_away_and_no_panic() {
    let world = disk();
    world.format().create("a", 4096).unwrap();
    let mut bytes = fs::read(world.path()).unwrap();
    let image = Image::new(bytes.clone().into());
    let seed = anatomy::seed(&image);
    anatomy::void_table_lane(&image, seed);
    for found in anatomy::structures(&image) {
        let created = match found.kind {
            Kind::Superblock => std::mem::offset_of!(Superblock, created),
            Kind::Entry => std::mem::offset_of!(Entry, created),
            _ => continue,
        };
        image.put(found.offset + created as u64, &u64::MAX.to_le_bytes());
        anatomy::seal(&image, seed, found);
    }
    image.get(0, &mut bytes);
    fs::write(world.path(), bytes).unwrap();
    let pool = Pool::open(world.path()).unwrap();
    let year_9999 = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(253_402_300_799);
    assert_eq!((pool.info().unwrap().created, pool.stat("a").unwrap().created), (year_9999, year_9999));
}

#[test]
fn advice_on_paths_fits() {
    let world = disk();
    let path = world.path();
    let text = |result: indelible::Result<Pool>| result.unwrap_err().to_string();
    let gone = format!("cannot open {}: No such file or directory (os error 2) (create it", path.display());
    assert!(text(Pool::open(&path)).starts_with(&gone), "{}", text(Pool::open(&path)));
    let no_folder = text(Pool::format(world.dir().join("none/p"), 1 << 20));
    assert!(no_folder.ends_with("(make the folder first, or choose another path)"), "{no_folder}");
    fs::write(&path, vec![7; 3 << 20]).unwrap();
    let foreign = text(Pool::open(&path));
    assert!(foreign.contains("`pmo doctor PATH`") && !foreign.contains("pmo check"), "{foreign}");
}

#[test]
fn errors_of_the_system_are_the_source() {
    let system = |error: &indelible::Error| {
        let source = error.source()?.downcast_ref::<std::io::Error>().expect("an error of the system");
        assert_eq!(source.raw_os_error(), error.raw_os_error());
        assert!(error.to_string().contains(&source.to_string()), "{error}");
        error.raw_os_error()
    };
    let world = disk();
    assert_eq!(system(&Pool::open(world.path()).unwrap_err()), Some(2), "ENOENT, from a path");
    let pool = world.format();
    assert_eq!(system(&pool.attach("none").unwrap_err()), None, "no call of the system failed");

    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = world.format();
    pool.create("a", 1 << 20).unwrap();
    let mut a = pool.attach("a").unwrap();
    *a.root_mut::<u64>().unwrap() = 1;
    world.sim().unwrap().fail_at(OpKind::WriteDurable, 0, Fault::Io);
    assert_eq!(system(&a.psync().unwrap_err()), Some(5), "EIO, from a psync");
}

trait MinOrIo {
    fn min_or_io(self) -> ErrorKind;
}

impl MinOrIo for ErrorKind {
    fn min_or_io(self) -> ErrorKind {
        match Pool::open("/") {
            Err(error) => error.kind(),
            Ok(_) => self,
        }
    }
}

#[test]
fn unknown_versions_and_truncated_pools_are_told_apart() {
    let world = disk();
    drop(world.format());
    let path = world.path();
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut slots = [[0; 4096], [0; 4096]];
    for (slot, at) in slots.iter_mut().zip([0, 4096]) {
        file.read_exact_at(slot, at).unwrap();
        file.write_all_at(&99_u32.to_le_bytes(), at + 8).unwrap();
    }
    assert_eq!(kind(Pool::open(&path)), ErrorKind::Version);
    file.write_all_at(&slots[0], 0).unwrap();
    file.write_all_at(&[0xff; 4096], 4096).unwrap();
    Pool::open(&path).unwrap().create("a", 1).unwrap();
    file.write_all_at(&slots[1], 4096).unwrap();
    file.write_all_at(&[0xff; 4096], 0).unwrap();
    Pool::open(&path).unwrap().stat("a").unwrap();
    file.write_all_at(&slots[0], 0).unwrap();
    file.set_len(1 << 20).unwrap();
    assert_eq!(kind(Pool::open(&path)), ErrorKind::Gone);
    file.set_len(support::POOL + (1 << 20)).unwrap();
    Pool::open(&path).unwrap();
}

#[test]
fn a_pool_that_loses_its_file_says_so_and_keeps_what_is_in_memory() {
    everywhere(|world| {
        if world.sim().is_some() {
            return;
        }
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let mut a = pool.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 1;
        a.psync().unwrap();
        *a.root_mut::<u64>().unwrap() = 2;
        let moved = world.dir().join("moved.pmo");
        fs::hard_link(world.path(), &moved).unwrap();
        fs::remove_file(world.path()).unwrap();
        a.psync().unwrap(); // The file still has another name.
        *a.root_mut::<u64>().unwrap() = 3;
        fs::remove_file(&moved).unwrap();
        let error = a.psync().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gone);
        assert_eq!(error.object_name(), Some("a"));
        assert_eq!(*a.root::<u64>().unwrap(), 3);
    });
}

#[test]
fn psync_of_a_truncated_pool_is_an_error_not_a_signal() {
    for ground in [Ground::File, Ground::Memory] {
        let world = World::new(ground, Tracking::Auto, false);
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let mut a = pool.attach("a").unwrap();
        a.psync().unwrap();
        let file = fs::OpenOptions::new().write(true).open(world.path()).unwrap();
        file.set_len(32 << 20).unwrap();
        assert_eq!(kind(a.psync()), ErrorKind::Gone);
        assert_eq!(kind(pool.create("b", 1)), ErrorKind::Gone);
    }
}

#[test]
fn read_only_files_can_be_read_and_not_written() {
    let world = disk();
    {
        let pool = world.format();
        pool.create("a", 100).unwrap();
        let mut a = pool.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 7;
        a.psync().unwrap();
    }
    fs::set_permissions(world.path(), fs::Permissions::from_mode(0o444)).unwrap();
    let pool = PoolOptions::new().read_only(true).open(world.path()).unwrap();
    assert_eq!(*pool.attach_read("a").unwrap().root::<u64>().unwrap(), 7);
    assert_eq!(kind(pool.attach("a")), ErrorKind::ReadOnly);
    assert_eq!(kind(pool.create("b", 1)), ErrorKind::ReadOnly);
    assert_eq!(kind(pool.destroy("a")), ErrorKind::ReadOnly);
    assert_eq!(pool.list().count(), 1);
    drop(pool);
    if rustix::process::geteuid().is_root() {
        indelible_testing::not_tested(format_args!(
            "as root: refusal of a file without write permission (root may write it)"
        ));
    } else {
        assert_eq!(kind(Pool::open(world.path())), ErrorKind::ReadOnly);
    }
}

#[test]
fn an_address_range_taken_by_something_else_is_named() {
    let world = disk();
    let pool = world.format();
    pool.create("a", 100).unwrap();
    let address = pool.stat("a").unwrap().address as usize;
    let flags = rustix::mm::MapFlags::PRIVATE | rustix::mm::MapFlags::FIXED_NOREPLACE;
    let at = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: fails where something is mapped; nothing else knows of the range.
    let taken = unsafe { rustix::mm::mmap_anonymous(at, 4096, rustix::mm::ProtFlags::READ, flags) }.unwrap();
    let error = pool.attach("a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressTaken);
    assert!(error.to_string().contains("anonymous memory"), "{error}");
    // SAFETY: mapped above.
    unsafe { rustix::mm::munmap(taken, 4096) }.unwrap();
    pool.attach("a").unwrap();
}

#[test]
fn system_calls_that_write_into_an_object_are_noticed() {
    let world = disk();
    let pool = world.format();
    pool.create("a", 100_000).unwrap();
    let mut a = pool.attach("a").unwrap();
    if a.rung() != "wp-async" {
        indelible_testing::not_tested(format_args!(
            "only the rung wp-async sees stores of system calls, this kernel has {}",
            a.rung()
        ));
        return;
    }
    let source = world.dir().join("source");
    fs::write(&source, vec![9; 50_000]).unwrap();
    let file = fs::File::open(&source).unwrap();
    file.read_exact_at(&mut a.as_mut_slice()[10_000..60_000], 0).unwrap();
    a.psync().unwrap();
    a.range_mut(0..1)[0] = 1;
    drop(a);
    let a = pool.attach_read("a").unwrap();
    assert!(a.as_slice()[10_000..60_000].iter().all(|byte| *byte == 9) && a.as_slice()[0] == 0);
}

/// S0.26, DESIGN §2: a failed barrier poisons; the next attach recovers the psynced state.
#[test]
fn a_failed_write_poisons_and_the_next_attach_recovers() {
    for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
        if !tracking.is_available() {
            indelible_testing::not_tested(format_args!("{tracking:?}"));
            continue;
        }
        let world = World::new(Ground::Simulated, tracking, false);
        let pool = world.format();
        pool.create("a", 5000).unwrap();
        let mut a = pool.attach("a").unwrap();
        *a.root_mut::<u64>().unwrap() = 1;
        a.psync().unwrap();
        *a.root_mut::<u64>().unwrap() = 2;
        let sim = world.sim().unwrap();
        sim.fail_at(OpKind::WriteDurable, 0, Fault::Io);
        assert_eq!(kind(a.psync()), ErrorKind::Io);
        let before = sim.count(OpKind::WriteDurable);
        let error = a.psync().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains("\"a\""), "{error}");
        assert!(error.to_string().contains("took effect as a whole or not at all"), "{error}");
        assert_eq!(sim.count(OpKind::WriteDurable), before, "a failed barrier is never retried");
        assert!(a.detach().is_err());
        let a = pool.attach("a").unwrap();
        assert!([1, 2].contains(a.root::<u64>().unwrap()));
    }
}

/// On a full medium, some pages are in the primary without being durable: a retry that compares
/// with them finds nothing to log.
#[test]
fn a_psync_that_is_retried_after_no_space_publishes_only_what_is_durable() {
    for cut in [false, true] {
        let mut refused = 0;
        for nth in 0..40 {
            let world = World::new(Ground::Simulated, Tracking::Auto, false);
            let sim = world.sim().unwrap();
            let pool = world.format();
            pool.create_with("a", &indelible::CreateOptions::new(3 << 20).sparse(true)).unwrap();
            let mut a = pool.attach("a").unwrap();
            *a.root_mut::<u64>().unwrap() = 1;
            a.psync().unwrap();
            sim.settle();
            *a.root_mut::<u64>().unwrap() = 2;
            a.range_mut(1 << 20..3 << 20).fill(3);
            sim.fail_at(OpKind::Reserve, nth, Fault::NoSpace);
            let before = a.psyncs();
            if let Err(error) = a.psync() {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                assert_eq!(a.psyncs(), before);
                refused += 1;
                let again = if cut { a.psync_cut() } else { a.psync() };
                again.unwrap_or_else(|error| panic!("retry after reservation {nth}: {error}"));
            }
            sim.clear_faults();
            let images =
                [Choice::None, Choice::Random(nth), Choice::All].map(|choice| sim.power_cut(choice).medium());
            drop(a);
            let pools = images.map(|image| world.options().on_device(Arc::new(image), false).unwrap());
            for pool in pools.iter().chain([&pool]) {
                let a = pool.attach_read("a").unwrap();
                assert_eq!(*a.root::<u64>().unwrap(), 2);
                assert!(
                    a.as_slice()[1 << 20..].iter().all(|byte| *byte == 3),
                    "reservation {nth}, cut {cut}"
                );
            }
        }
        assert!(refused > 20, "{refused} psyncs were refused");
    }
}

struct Small {
    at: std::path::PathBuf,
    _world: World,
}

impl Small {
    fn mount(kind: &str) -> Option<Small> {
        let world = if kind == "tmpfs" { World::new(Ground::Memory, Tracking::Auto, false) } else { disk() };
        let at = world.dir().join("small");
        fs::create_dir(&at).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let mut command = std::process::Command::new(program);
            command.args(arguments).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let target = at.to_str().unwrap();
        let image = world.dir().join("image");
        let mounted = if kind == "tmpfs" {
            run("mount", &["-t", "tmpfs", "-o", "size=4m", "tmpfs", target])
        } else {
            fs::File::create(&image).unwrap().set_len(12 << 20).unwrap();
            let image = image.to_str().unwrap();
            run("mkfs.ext4", &["-q", "-O", "^has_journal", image])
                && run("mount", &["-o", "loop", image, target])
        };
        if !mounted {
            indelible_testing::not_tested(format_args!("a full {kind} needs the right to mount one"));
            return None;
        }
        Some(Small { at, _world: world })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

#[test]
fn a_full_disk_is_an_error_on_create_and_psync() {
    let Some(small) = Small::mount("ext4") else { return };
    let pool = Pool::format(small.at.join("pool"), 64 << 20).unwrap();
    assert_eq!(pool.medium(), MediumKind::File);
    assert_eq!(kind(pool.create("too much", 16 << 20)), ErrorKind::NoSpace);
    pool.create_with("thin", &indelible::CreateOptions::new(16 << 20).sparse(true)).unwrap();
    let mut thin = pool.attach("thin").unwrap();
    thin.range_mut(0..100).fill(1);
    thin.psync().unwrap();
    thin.range_mut(0..16 << 20).fill(2);
    assert_eq!(kind(thin.psync()), ErrorKind::NoSpace);
    assert_eq!(kind(thin.psync()), ErrorKind::NoSpace);
    drop(thin);
    let mut thin = pool.attach("thin").unwrap();
    assert!(thin.as_slice()[..100].iter().all(|byte| *byte == 1), "the last psync is intact");
    assert!(thin.as_slice()[100..].iter().all(|byte| *byte == 0), "and nothing else is there");
    thin.range_mut(50..60).fill(3);
    thin.psync().unwrap();
}

#[test]
fn a_full_memory_file_system_is_an_error_not_a_signal() {
    let Some(small) = Small::mount("tmpfs") else { return };
    let pool = Pool::format(small.at.join("pool"), 64 << 20).unwrap();
    assert_eq!(pool.medium(), MediumKind::Memory);
    assert_eq!(kind(pool.create("too much", 8 << 20)), ErrorKind::NoSpace);
    pool.create("fits", 100_000).unwrap();
    fs::write(small.at.join("filler"), vec![0; 8 << 20]).unwrap_err();
    match pool.attach("fits") {
        Ok(mut fits) => {
            fits.as_mut_slice().fill(1);
            fits.psync().unwrap();
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}"),
    }
    fs::remove_file(small.at.join("filler")).unwrap();
    let mut fits = pool.attach("fits").unwrap();
    fits.as_mut_slice().fill(2);
    fits.psync().unwrap();
}

/// Freed space has no blocks, so a new object finds no room: no failure of the medium.
#[test]
fn used_space_without_blocks_on_a_full_memory_file_system_is_no_space() {
    let Some(small) = Small::mount("tmpfs") else { return };
    let pool = Pool::format(small.at.join("pool"), 64 << 20).unwrap();
    pool.create("stays", 4096).unwrap();
    let mut stays = pool.attach("stays").unwrap();
    pool.create("goes", 1 << 20).unwrap();
    pool.destroy("goes").unwrap();
    fs::write(small.at.join("filler"), vec![0; 8 << 20]).unwrap_err();
    assert_eq!(kind(pool.create("late", 100_000)), ErrorKind::NoSpace);
    stays.as_mut_slice().fill(1);
    stays.psync().unwrap();
    fs::remove_file(small.at.join("filler")).unwrap();
    pool.create("late", 100_000).unwrap();
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn without_room() {
    let Some(path) = std::env::var_os("SMALL_POOL") else { return };
    let pool = Pool::open(path).unwrap();
    let thin = pool.attach("thin").unwrap();
    match thin.prefault(0..32 << 20) {
        Ok(_) => println!("ANSWER served"),
        Err(error) => println!("ANSWER {:?}: {error}", error.kind()),
    }
}

#[test]
fn pages_that_lack_space_are_an_error_before_the_store() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let Some(small) = Small::mount("tmpfs") else { return };
    let path = small.at.join("pool");
    let pool = Pool::format(&path, 64 << 20).unwrap();
    pool.create_with("thin", &indelible::CreateOptions::new(32 << 20).sparse(true)).unwrap();
    drop(pool);
    fs::set_permissions(small._world.dir(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    // Root has the kernel's faults served, so that its pages are not mapped.
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "failures::without_room", "--nocapture", "--ignored"]);
    let output = command.env("SMALL_POOL", &path).current_dir("/").uid(65534).gid(65534).output();
    let text = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match text.as_deref() {
        Ok(text) if text.contains("ANSWER served") => {
            indelible_testing::not_tested(
                "mapped pages that lack space: every user has the kernel's faults served",
            );
        }
        Ok(text) if text.contains("running 1 test") => {
            assert!(text.contains("ANSWER NoSpace: ") && text.contains("thin"), "{output:?}");
        }
        _ => indelible_testing::not_tested("mapped pages that lack space: user 65534 cannot run the test"),
    }
}

#[test]
fn sparse_objects_on_a_full_memory_file_system_are_errors_not_signals() {
    let Some(small) = Small::mount("tmpfs") else { return };
    let pool = Pool::format(small.at.join("pool"), 64 << 20).unwrap();
    pool.create_with("thin", &indelible::CreateOptions::new(32 << 20).sparse(true)).unwrap();
    let used = || rustix::fs::statvfs(&small.at).map(|found| found.f_blocks - found.f_bfree).unwrap();
    let before = used();
    let reader = pool.attach_read("thin").unwrap();
    assert!(reader.as_slice().iter().all(|byte| *byte == 0));
    drop(reader);
    assert!(used() - before < 64, "reading holes claimed {} blocks", used() - before);
    let mut thin = pool.attach("thin").unwrap();
    thin.range_mut(0..4096).fill(1);
    thin.psync().unwrap();
    thin.as_mut_slice().fill(2);
    assert_eq!(kind(thin.psync()), ErrorKind::NoSpace);
    drop(thin);
    let mut thin = pool.attach("thin").unwrap();
    assert!(thin.as_slice()[..4096].iter().all(|byte| *byte == 1), "the last psync is intact");
    assert!(thin.as_slice()[4096..].iter().all(|byte| *byte == 0), "and nothing else is there");
    thin.range_mut(20 << 20..(20 << 20) + 4096).fill(3);
    thin.psync().unwrap();
}

#[test]
fn names_are_text_of_1_to_511_bytes() {
    everywhere(|world| {
        let pool = world.format();
        let long = "ä".repeat(255);
        for good in ["a", "π and 木", "../../etc/passwd", "/", long.as_str(), "a\u{301}"] {
            pool.create(good, 1).unwrap();
            assert_eq!(pool.stat(good).unwrap().name, good);
        }
        let overlong = "ä".repeat(256);
        for bad in ["", " a", "a\n", "nul\0", "\u{1b}[31m", overlong.as_str()] {
            assert_eq!(kind(pool.create(bad, 1)), ErrorKind::BadName, "{bad:?}");
        }
        assert_eq!(kind(pool.create("π and 木", 1)), ErrorKind::Exists);
        assert_eq!(pool.list().count(), 6);
    });
}

#[test]
fn objects_of_different_pools_are_no_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let [mut a, mut b] = ["a.pmo", "b.pmo"].map(|name| {
        let pool = Pool::format(folder.path().join(name), 4 << 20).unwrap();
        pool.create("object", 4096).unwrap();
        pool.attach("object").unwrap()
    });
    let both = psync_all(&mut [&mut a, &mut b]).unwrap_err();
    assert_eq!(both.kind(), ErrorKind::DifferentPools);
    assert!(both.to_string().contains("psync the objects of each pool by themselves"), "{both}");
    a.psync().unwrap();
    b.psync().unwrap();
}

/// S0.8: sizes of every kind.
#[test]
fn s0_08_sizes_that_cannot_be_are_refused() {
    everywhere(|world| {
        let pool = world.format();
        assert_eq!(kind(pool.create("a", 0)), ErrorKind::BadSize);
        assert_eq!(kind(pool.create("a", u64::MAX)), ErrorKind::BadSize);
        assert_eq!(kind(pool.create("a", 1 << 45)), ErrorKind::NoRoom);
        let largest = pool.info().unwrap().largest_free;
        assert_eq!(kind(pool.create("a", largest + 4096)), ErrorKind::NoRoom);
        pool.create("a", largest / 2).unwrap();
        assert_eq!(kind(pool.resize("a", u64::MAX, b"")), ErrorKind::BadSize);
        assert_eq!(
            kind(pool.resize("a", largest * 4, b"")),
            ErrorKind::NoRoom.or_addresses(&pool, largest * 4)
        );
        pool.destroy("a").unwrap();
        assert_eq!(pool.info().unwrap().largest_free, largest, "S0.9: the space is whole again");
    });
}

trait OrAddresses {
    fn or_addresses(self, pool: &Pool, size: u64) -> ErrorKind;
}

impl OrAddresses for ErrorKind {
    fn or_addresses(self, pool: &Pool, size: u64) -> ErrorKind {
        match pool.resize("a", size, b"") {
            Err(error) if error.kind() == ErrorKind::NoAddresses => ErrorKind::NoAddresses,
            _ => self,
        }
    }
}

#[test]
fn damage_is_reported_where_it_is_and_nowhere_else() {
    let sim = SimMedium::new(support::POOL, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(sim.handle()), true).unwrap();
    pool.create("good", 100).unwrap();
    pool.create("bad", 100).unwrap();
    let entry = pool.store().find("bad").unwrap().offset;
    sim.flip(entry + 40, 3);
    assert_eq!(kind(pool.attach("bad")), ErrorKind::Damaged);
    assert_eq!(kind(pool.stat("bad")), ErrorKind::Damaged);
    pool.attach("good").unwrap();
}

/// After a query of a file's times, the next write updates them, for which a durable write must
/// wait.
#[test]
fn seeing_whether_the_file_is_whole_does_not_ask_for_its_times() {
    let world = disk();
    let pool = world.format();
    pool.create("a", 4096).unwrap();
    let mut a = pool.attach("a").unwrap();
    let mut noted_by_ticks = 0;
    for round in 0..100 {
        a.as_mut_slice().fill(round);
        a.psync().unwrap();
        a.as_mut_slice().fill(round + 100);
        let before = SystemTime::now();
        a.psync().unwrap();
        let noted = fs::metadata(world.path()).unwrap().modified().unwrap();
        noted_by_ticks += u32::from(noted < before);
    }
    assert!(noted_by_ticks > 50, "{noted_by_ticks} of 100");
}
