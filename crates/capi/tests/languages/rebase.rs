use super::ground::{C, CPP, folder, have, program, succeed};
use indelible::{ErrorKind, Pool};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn copy(pool: &std::path::Path, name: &str) -> indelible::Result<()> {
    let pool = Pool::open(pool)?;
    pool.copy_rebased(name, b"", &pool, "copy", &mut |_, _| {})
}

#[test]
fn a_list_of_c_and_its_copy_are_attached_at_once() {
    let folder = folder();
    let (binary, pool) = (folder.path().join("rebase"), folder.path().join("pool.pmo"));
    C.build(&program("rebase.c"), &binary);
    assert_eq!(succeed(Command::new(&binary).arg(&pool).arg("make")), "done\n");
    let other = folder.path().join("other.pmo");
    for step in [&["copy"][..], &["both"], &["bytes", other.to_str().unwrap()]] {
        assert_eq!(succeed(Command::new(&binary).arg(&pool).args(step)), "done\n");
    }
}

#[test]
fn a_map_of_cpp_stays_at_its_addresses() {
    if !have("c++") {
        return;
    }
    let folder = folder();
    let (binary, pool) = (folder.path().join("beside"), folder.path().join("pool.pmo"));
    CPP.build(&program("beside.cpp"), &binary);
    let mut writer = Command::new(&binary).arg(&pool).arg("write").stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(writer.stdout.take().unwrap()).lines();
    assert_eq!(said.take(5).map_while(Result::ok).count(), 5);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let error = copy(&pool, "steps").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsuitable);
    assert!(error.to_string().contains("steps.words is a "), "{error}");
}
