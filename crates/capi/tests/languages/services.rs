use crate::ground::{have, installed, text};
use indelible_testing::not_tested;
use std::path::Path;
use std::process::{Command, Output};

fn verify(whose: &str, unit: &Path, runtime: &Path) -> Output {
    let mut verify = Command::new("systemd-analyze");
    // systemd-analyze looks up the units' manual pages by `man`.
    verify.args(["verify", whose, if have("man") { "--man=yes" } else { "--man=no" }]).arg(unit);
    verify.env("MANPATH", installed().join("share/man")).env("XDG_RUNTIME_DIR", runtime);
    verify.output().expect("systemd-analyze runs")
}

#[test]
fn systemd_finds_nothing_wrong_with_the_installed_units() {
    if !have("systemd-analyze") {
        return;
    }
    let prefix = installed();
    let runtime = tempfile::tempdir().expect("a folder");
    let plain = runtime.path().join("plain.service");
    std::fs::write(&plain, "[Service]\nExecStart=/bin/true\n").expect("written");
    for (folder, whose) in [("system", "--system"), ("user", "--user")] {
        if !verify(whose, &plain, runtime.path()).status.success() {
            not_tested(format_args!("units of systemd: systemd-analyze verify {whose} does not work here"));
            continue;
        }
        let unit = prefix.join(format!("lib/systemd/{folder}/pmo-guard.service"));
        let output = verify(whose, &unit, runtime.path());
        let said = text(&output.stderr);
        assert!(
            output.status.success() && said.trim().is_empty(),
            "{}: {}: {said}",
            unit.display(),
            output.status
        );
    }
    let guard = Command::new(prefix.join("bin/pmo")).args(["guard", "run", "--help"]).output();
    assert!(guard.expect("what the units start").status.success());
}

#[test]
fn units_of_the_guard_end_after_all_services() {
    for folder in ["system", "user"] {
        let unit = installed().join(format!("lib/systemd/{folder}/pmo-guard.service"));
        let unit = std::fs::read_to_string(unit).expect("a unit");
        for setting in ["DefaultDependencies=no", "Before=basic.target shutdown.target", "KillMode=mixed"] {
            assert!(unit.lines().any(|line| line == setting), "no {setting} in {unit}");
        }
    }
}

#[test]
fn commands_with_a_manual_page_or_a_completion_are_installed() {
    let prefix = installed();
    let names = |folder: &str, ending: &str| -> Vec<String> {
        let files = std::fs::read_dir(prefix.join(folder)).expect("a folder");
        let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
        names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
    };
    // `pmo-ls.1` is the page of a command of `pmo`.
    let mut commands = names("share/man/man1", ".1");
    commands.retain(|name| !name.starts_with("pmo-"));
    let completed = names("share/bash-completion/completions", "");
    assert!(commands.len() == 2 && completed.len() == 2, "{commands:?}, {completed:?}");
    for command in commands.iter().chain(&completed) {
        let version = Command::new(prefix.join("bin").join(command)).arg("--version").output();
        assert!(version.is_ok_and(|output| output.status.success()), "{command} is not installed");
    }
}
