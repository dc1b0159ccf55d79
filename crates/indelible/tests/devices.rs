//! Pools on block devices: the device is exclusive, not the opened node. Needs root and a loop
//! device; otherwise the tests report that they did not run.

use indelible::{Error, ErrorKind, Pool, PoolOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

struct Loop {
    node: PathBuf,
    file: PathBuf,
    folder: tempfile::TempDir,
}

impl Loop {
    fn make() -> Option<Loop> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        match made {
            Ok(done) if done.status.success() => {
                let node = String::from_utf8(done.stdout).unwrap().trim().into();
                Some(Loop { node, file, folder })
            }
            _ => {
                eprintln!("not tested: this user cannot make a loop device");
                None
            }
        }
    }

    fn second_node(&self) -> Option<PathBuf> {
        let stat = rustix::fs::stat(&self.node).unwrap();
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        let node = self.folder.path().join("node");
        let made =
            Command::new("mknod").arg(&node).args(["b", &major.to_string(), &minor.to_string()]).status();
        let usable = made.is_ok_and(|status| status.success()) && std::fs::File::open(&node).is_ok();
        if !usable {
            eprintln!(
                "not tested: this user cannot make and open device nodes in {}",
                self.folder.path().display()
            );
        }
        usable.then_some(node)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}

struct Holder(Child);

impl Holder {
    fn start(pool: &Path) -> Holder {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "devices::hold", "--ignored", "--nocapture", "--test-threads=1"])
            .env("HOLD_POOL", pool);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.contains("ANSWER ready")), "the holder is gone");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn hold() {
    let Some(path) = std::env::var_os("HOLD_POOL") else { return };
    let _pool = Pool::open(path).unwrap();
    println!("ANSWER ready");
    let _ = std::io::stdin().lines().next();
}

fn format(path: &Path) -> Result<Pool, Error> {
    PoolOptions::new().force(true).format(path, 16 << 20)
}

fn refused<T>(result: Result<T, Error>) -> String {
    let error = result.err().expect("two writers");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    error.to_string()
}

#[test]
fn two_nodes_of_a_device_are_one_pool() {
    let Some(device) = Loop::make() else { return };
    let Some(node) = device.second_node() else { return };
    let pool = format(&device.node).unwrap();
    pool.create("a", 100).unwrap();
    let same = Pool::open(&node).unwrap();
    let held = pool.attach("a").unwrap();
    assert_eq!(same.attach("a").unwrap_err().kind(), ErrorKind::Held);
    drop((held, same, pool));
    for (first, second) in [(&device.node, &node), (&node, &device.node), (&node, &node)] {
        let holder = Holder::start(first);
        let text = refused(Pool::open(second));
        assert!(text.contains(&format!("process {}", holder.0.id())), "{text}");
        refused(format(second));
        refused(indelible::repair(second, &PoolOptions::new(), &Default::default(), &mut |_, _| {}));
        let reader = PoolOptions::new().read_only(true).open(second).unwrap();
        assert_eq!(reader.attach_read("a").unwrap().len(), 100);
        indelible::check(second, &PoolOptions::new(), &mut |_, _| {}).unwrap();
        drop(holder);
        Pool::open(second).unwrap().attach("a").unwrap();
    }
}

#[test]
fn a_loop_device_and_the_file_under_it_are_not_two_pools() {
    let Some(device) = Loop::make() else { return };
    drop(format(&device.node).unwrap());
    let on_device = Holder::start(&device.node);
    let text = refused(Pool::open(&device.file));
    assert!(
        text.contains("loop device") && text.contains(&format!("process {}", on_device.0.id())),
        "{text}"
    );
    drop(on_device);
    let on_file = Holder::start(&device.file);
    let text = refused(Pool::open(&device.node));
    assert!(
        text.contains("in the file itself") && text.contains(&format!("process {}", on_file.0.id())),
        "{text}"
    );
    Pool::open(&device.file).unwrap().create("b", 100).unwrap();
    drop(on_file);
    Pool::open(&device.node).unwrap().attach("b").unwrap();
    let pool = Pool::open(&device.file).unwrap();
    refused(Pool::open(&device.node));
    drop(pool);
    let _pool = Pool::open(&device.node).unwrap();
    refused(Pool::open(&device.file));
}

#[test]
fn a_mounted_device_is_no_pool_to_be_formatted() {
    let Some(device) = Loop::make() else { return };
    let at = device.folder.path().join("mounted");
    std::fs::create_dir(&at).unwrap();
    let done = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    if !done(Command::new("mkfs.ext4").arg("-q").arg(&device.node))
        || !done(Command::new("mount").arg(&device.node).arg(&at))
    {
        return eprintln!("not tested: this user cannot mount a file system");
    }
    let result = format(&device.node);
    assert!(done(Command::new("umount").arg(&at)));
    let text = refused(result);
    assert!(text.contains(&format!("mounted at {}", at.display())), "{text}");
}
