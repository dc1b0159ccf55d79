use super::ground::{C, folder, program, succeed};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[test]
fn s2_18_a_program_of_c_goes_on_at_resume() {
    let folder = folder();
    let (binary, path) = (folder.path().join("views"), folder.path().join("one.pmo"));
    indelible::Pool::format(&path, 16 << 20).unwrap();
    C.build(&program("views.c"), &binary);
    for step in ["make", "use", "use"] {
        if step == "use" {
            let pool = indelible::Pool::open(&path).unwrap();
            let mut view = indelible::View::open(&pool, "v").unwrap();
            view.set(1, "b", indelible::Rights::READ).unwrap();
            view.psync().unwrap();
        }
        let mut command = Command::new(&binary);
        assert_eq!(succeed(command.arg(&path).arg(step).env_remove("PMO_VIEW")), "done\n");
    }
    let start = || {
        let mut command = Command::new(&binary);
        command.arg(&path).arg("run").env("PMO_POOL", &path).env("PMO_VIEW", "v").env_remove("PMO_RESUME");
        command
    };
    let died = start().output().unwrap();
    assert_eq!(died.status.signal(), Some(9), "{died:?}");
    let resumed = start().env("PMO_RESUME", "1 4711 9").output().unwrap();
    assert_eq!(resumed.status.code(), Some(5), "{resumed:?}");
    assert_eq!(String::from_utf8_lossy(&resumed.stdout), "resumed: 41, lost 1 0\n");
}
