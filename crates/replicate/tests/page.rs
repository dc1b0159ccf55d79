//! docs/cookbook/replication.md.

use indelible_testing::page::{blocks, console};
use std::ffi::OsString;
use std::path::Path;

/// A shipper that a failed page leaves.
struct Shipper<'a>(&'a Path);

impl Drop for Shipper<'_> {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.0.join("pid")).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

#[test]
fn s2_23_the_page_of_the_cookbook_is_true() {
    let tools = Path::new(env!("CARGO_BIN_EXE_pmo-replicate")).parent().unwrap();
    if !tools.join("pmo").is_file() {
        indelible_testing::not_tested("the page on replication: `cargo build -p indelible-cli` makes pmo");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _shipper = Shipper(folder.path());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: OsString = [tools.as_os_str(), path.as_os_str()].join(std::ffi::OsStr::new(":"));
    let page = include_str!("../../../docs/cookbook/replication.md");
    let commands: usize = blocks(page)
        .iter()
        .filter(|(kind, _)| kind == "console")
        .map(|(_, block)| console(block, folder.path(), &[("PATH", path.as_os_str())]))
        .sum();
    assert_eq!(commands, 16);
}
