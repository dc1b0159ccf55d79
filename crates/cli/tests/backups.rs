//! `pmo backup`, `pmo verify` and `pmo restore`: folders, files and pipes, beside writers, on a
//! full disk, after kills.

use super::common::{PMO, Rig, Run, pmo};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

fn rig() -> Rig {
    let rig = Rig::new();
    rig.pmo(["create"], ["ledger", "300K"]).fine();
    rig.feed("put", ["ledger"], &[b'x'; 200_000]).fine();
    rig.pmo(["create"], ["other", "10K"]).fine();
    rig
}

fn text(path: &std::path::Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_folder_a_file_and_a_pipe_give_the_pool_back() {
    let rig = rig();
    let (folder, file) = (text(&rig.path("backups")) + "/", text(&rig.path("one.backup")));
    let run = rig.pmo(["backup", "--json"], [&folder]).fine().json();
    assert_eq!((&run["objects"], run["base"].is_null()), (&2.into(), true));
    rig.feed("put", ["ledger", "--offset", "5000"], b"changed").fine();
    let run = rig.pmo(["backup", "--json"], [&folder]).fine().json();
    assert!(run["held"] == 4096 && run["base"].is_string(), "{run}");
    let run = rig.pmo(["backup"], [&file]).fine();
    assert!(run.out.contains("2 objects"), "{run:?}");
    rig.pmo(["backup"], [&file]).fails(7, "exists already");
    rig.pmo(["backup"], [&file, "--force"]).fine();
    let stream = rig.pmo(["backup"], ["-"]).fine().raw;
    let run = pmo(["verify", "--json", &folder]).fine().json();
    assert_eq!((run["files"].as_array().unwrap().len(), run["damage"].as_array().unwrap().len()), (2, 0));
    assert!(run["created"].as_str().unwrap().ends_with('Z'), "{run}");
    Run::of(Command::new(PMO).args(["verify", "-"]), &stream).fine();

    let wanted = rig.pmo(["cat"], ["ledger"]).fine().raw;
    for (number, from) in [folder.as_str(), file.as_str(), "-"].into_iter().enumerate() {
        let new = text(&rig.path(&format!("{number}.pmo")));
        Run::of(Command::new(PMO).args(["restore", from, &new]), &stream).fine();
        assert_eq!(pmo(["cat", &new, "ledger"]).fine().raw, wanted);
        pmo(["check", &new]).fine();
        pmo(["restore", &file, &new]).fails(7, "exists already");
    }
    rig.pmo(["rm"], ["ledger"]).fine();
    let pool = text(&rig.pool);
    pmo(["restore", &file, &pool, "--object", "ledger"]).fine();
    assert_eq!(rig.pmo(["cat"], ["ledger"]).fine().raw, wanted);
    pmo(["restore", &file, &pool, "--object", "ledger"]).fails(7, "exists");
    let mut torn = fs::read(&file).unwrap();
    let middle = torn.len() / 2;
    torn[middle] ^= 1;
    fs::write(&file, torn).unwrap();
    let run = pmo(["verify", &file]);
    assert!(run.code == Some(3) && run.out.contains("object \"ledger\""), "{run:?}");
    pmo(["restore", &file, &pool, "--force"]).fails(3, "damaged");
    assert_eq!(rig.pmo(["cat"], ["ledger"]).fine().raw, wanted);
    pmo(["verify", &pool]).fails(9, "no backup");
}

#[test]
fn a_writer_goes_on_and_its_pool_is_not_replaced() {
    let rig = rig();
    let file = text(&rig.path("one.backup"));
    let writer = rig.hold("ledger", true);
    rig.pmo(["backup"], [&file]).fine();
    pmo(["verify", &file]).fine();
    let ls = rig.pmo(["ls"], Vec::<String>::new()).fine().out;
    assert!(!ls.contains("pmo-backup"), "{ls}");
    pmo(["restore", &file, &text(&rig.pool), "--force"]).fails(4, "in use");
    writer.release();
    pmo(["restore", &file, &text(&rig.pool), "--force"]).fine();
}

#[test]
fn only_what_is_of_its_kind_is_replaced() {
    let rig = rig();
    let (pool, file, letter) = (rig.pool.clone(), rig.path("one.backup"), rig.path("letter.txt"));
    let (link, empty) = (rig.path("link.pmo"), rig.path("empty"));
    rig.pmo(["backup"], [&text(&file)]).fine();
    fs::write(&letter, "important").unwrap();
    fs::write(&empty, "").unwrap();
    let writer = rig.hold("ledger", true);
    // Its own pool, which a process has, and a pool without processes.
    let other = rig.path("other.pmo");
    pmo(["clone", &text(&pool), &text(&other)]).fails(4, "in use by");
    pmo(["format", &text(&other), "--size", "16M"]).fine();
    for to in [&pool, &other, &letter] {
        for command in [&["backup"][..], &["export", "other"]] {
            let mut words = vec![command[0], pool.to_str().unwrap()];
            words.extend(&command[1..]);
            words.extend([to.to_str().unwrap(), "--force"]);
            let before = fs::metadata(to).unwrap().len();
            pmo(words).fails(9, "is no backup, and is not replaced");
            assert_eq!(fs::metadata(to).unwrap().len(), before);
        }
    }
    rig.pmo(["backup"], [&text(&empty), "--force"]).fine();
    writer.release();
    for (of, to) in [(&file, &file), (&file, &letter)] {
        pmo(["restore", &text(of), &text(to), "--force"]).fails(9, "is no pool, and is not replaced");
    }
    pmo(["verify", &text(&file)]).fine();
    assert_eq!(fs::read(&letter).unwrap(), b"important");
    // A link stays, and names the new pool.
    std::os::unix::fs::symlink(&pool, &link).unwrap();
    let before = rig.pmo(["stat", "--json"], Vec::<String>::new()).fine().json();
    pmo(["restore", &text(&file), &text(&link), "--force"]).fine();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let after = rig.pmo(["stat", "--json"], Vec::<String>::new()).fine().json();
    assert_ne!(before["id"], after["id"]);
}

#[test]
fn a_full_disk_keeps_what_fitted_and_a_folder_that_is_gone_is_an_error() {
    let rig = rig();
    rig.pmo(["create"], ["noise", "6M"]).fine();
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..6_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    rig.feed("put", ["noise"], &noise).fine();
    let folder = rig.path("backups");
    fs::create_dir(&folder).unwrap();
    // 4 MiB exceed all that a backup writes to the pool; a larger file is an error, no signal.
    let script = format!(
        "trap '' XFSZ; ulimit -f 8192; exec {PMO} backup {} {}",
        rig.pool.display(),
        folder.display()
    );
    let limited = || Run::of(Command::new("sh").args(["-c", &script]), b"");
    let run = limited();
    assert!(run.err.contains("are kept in") && run.err.contains("goes on from there"), "{run:?}");
    run.fails(8, "cannot write");
    let left = || {
        let found = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        let mut left: Vec<_> = found
            .map(|entry| {
                (text(&entry.path()).rsplit_once('.').unwrap().1.to_owned(), entry.metadata().unwrap().len())
            })
            .filter(|(end, _)| end != "lock" && end != "pmoindex")
            .collect();
        left.sort();
        left
    };
    assert_eq!(left(), [("partial".into(), 4 << 20)]);
    pmo(["verify", &text(&folder)]).fails(9, "no backup");
    let run = limited().fine();
    assert!(run.out.contains("goes on from"), "{run:?}");
    assert!(
        matches!(&left()[..], [(backup, _), (part, 3_900_000..)] if backup == "pmobackup" && part == "pmopart"),
        "{:?}",
        left()
    );
    pmo(["verify", &text(&folder)]).fine();
    let new = text(&rig.path("new.pmo"));
    pmo(["restore", &text(&folder), &new]).fine();
    assert_eq!(pmo(["cat", &new, "noise"]).fine().raw[..noise.len()], noise);
    let script = script.replace("8192", "40");
    rig.pmo(["create"], ["more", "100K"]).fine();
    rig.feed("put", ["more"], &noise[..100_000]).fine();
    let before = left();
    Run::of(Command::new("sh").args(["-c", &script]), b"");
    assert_eq!(left(), before);
    let full = Command::new("sh")
        .args(["-c", &format!("exec {PMO} backup {} - > /dev/full", rig.pool.display())])
        .output();
    assert_eq!(full.unwrap().status.code(), Some(8));
    rig.pmo(["backup"], [&text(&rig.path("gone/one.backup"))]).fails(5, "cannot create");
    rig.pmo(["backup"], [&text(&folder), "--object", "none"]).fails(5, "no object");
}

#[test]
fn a_backup_that_is_killed_leaves_nothing_that_counts() {
    let rig = rig();
    let writer = rig.hold("other", true);
    let folder = rig.path("backups");
    let mut whole = 0;
    for micros in (0..20).map(|n| n * 700) {
        let mut child = Command::new(PMO)
            .args(["backup", &text(&rig.pool), &(text(&folder) + "/"), "--full"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(micros));
        let _ = child.kill();
        child.wait().unwrap();
        let found = fs::read_dir(&folder).map_or(0, |all| {
            all.filter(|entry| {
                let path = entry.as_ref().unwrap().path();
                path.extension().is_some_and(|end| end == "pmobackup")
                    && pmo(["verify", &text(&path)]).code == Some(0)
            })
            .count()
        });
        assert!(found >= whole, "{found} of {whole}");
        whole = found;
    }
    rig.pmo(["backup"], [&(text(&folder) + "/")]).fine();
    writer.release();
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_str().unwrap().ends_with("partial")), "{names:?}");
    let ls = rig.pmo(["ls"], Vec::<String>::new()).fine().out;
    assert!(!ls.contains("pmo-backup"), "{ls}");
    pmo(["restore", &text(&folder), &text(&rig.path("new.pmo"))]).fine();
    pmo(["check", &text(&rig.path("new.pmo"))]).fine();
}

#[test]
fn a_folder_has_backups_of_several_pools() {
    let rig = rig();
    let (folder, pool) = (text(&rig.path("backups")) + "/", text(&rig.pool));
    rig.pmo(["backup"], [&folder]).fine();
    pmo(["restore", &folder, &pool, "--force"]).fine();
    rig.feed("put", ["ledger", "--offset", "5000"], b"changed").fine();
    let wanted = rig.pmo(["cat"], ["ledger"]).fine().raw;
    let run = rig.pmo(["backup"], [&folder]).fine();
    assert!(run.out.contains("backups of other pools"), "{run:?}");
    let run = rig.pmo(["backup", "--json"], [&folder]).fine().json();
    assert_eq!(run["others"].as_array().unwrap().len(), 1, "{run}");
    let run = pmo(["verify", &folder]).fine();
    assert_eq!(run.out.matches("intact: ").count(), 2, "{run:?}");
    let newest = run_file(&run.out, 3);
    let new = text(&rig.path("new.pmo"));
    let run = pmo(["restore", &folder, &new]);
    assert!(run.err.contains("--pool-id") && run.err.contains("-000003.pmobackup"), "{run:?}");
    run.fails(2, "several pools");
    let id = newest.rsplit_once('/').unwrap().1.split('-').next().unwrap().to_owned();
    let run = pmo(["restore", &folder, &new, "--pool-id", &id]).fine();
    assert!(run.out.contains(&newest), "{run:?}");
    assert_eq!(pmo(["cat", &new, "ledger"]).fine().raw, wanted);
    let run = pmo(["verify", &folder, "--pool-id", &id, "--json"]).fine().json();
    assert_eq!(run["file"], newest.as_str());
    pmo(["verify", &folder, "--pool-id", "none"]).fails(5, "no backup of a pool");
}

fn run_file(out: &str, number: usize) -> String {
    let end = format!("-{number:06}.pmobackup");
    let mut words = out.split_whitespace().map(|word| word.trim_end_matches(':'));
    words.rfind(|word| word.ends_with(&end)).expect("a file").to_owned()
}

#[test]
fn a_restored_pool_has_the_rights_of_the_one_before() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let rig = rig();
    let (file, pool) = (text(&rig.path("one.backup")), text(&rig.pool));
    rig.pmo(["backup"], [&file]).fine();
    fs::set_permissions(&rig.pool, fs::Permissions::from_mode(0o664)).unwrap();
    let _ = chown(&rig.pool, Some(12_345), Some(23_456));
    let rights = |found: fs::Metadata| (found.uid(), found.gid(), found.mode());
    let before = rights(fs::metadata(&rig.pool).unwrap());
    pmo(["restore", &file, &pool, "--force"]).fine();
    assert_eq!(rights(fs::metadata(&rig.pool).unwrap()), before);
    rig.pmo(["cat"], ["ledger"]).fine();
}
