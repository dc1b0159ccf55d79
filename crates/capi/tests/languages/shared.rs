use super::ground::{C, folder, program, succeed};
use std::process::Command;

#[test]
fn s2_06_processes_of_c_share_an_object() {
    let folder = folder();
    let (binary, pool) = (folder.path().join("shared"), folder.path().join("shared.pmo"));
    C.build(&program("shared.c"), &binary);
    assert_eq!(succeed(Command::new(&binary).arg(&pool)), "done\n");
    let opened = indelible::Pool::open(&pool).unwrap();
    assert_eq!(opened.stat("shared").unwrap().class, Some(indelible::Class::Shared));
    let shared = opened.attach_shared("shared").unwrap();
    assert_eq!(shared.words()[1].load(std::sync::atomic::Ordering::Relaxed), 7, "as C left it");
    drop(shared);
    opened.destroy("shared").unwrap();
}
