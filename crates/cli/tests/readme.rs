//! The README's session in the shell, literally.

use crate::common::PMO;
use indelible_testing::page::{blocks, console};
use std::ffi::OsString;
use std::path::Path;

#[test]
fn the_session_of_the_readme_prints_what_stands_there() {
    let page = include_str!("../../../README.md");
    let sessions: Vec<_> = blocks(page).into_iter().filter(|(kind, _)| kind == "console").collect();
    let [(_, session)] = &sessions[..] else { panic!("one session: {sessions:?}") };
    let folder = tempfile::tempdir().expect("a folder");
    let mut path = Path::new(PMO).parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin")));
    let variables = [("PATH", path.as_os_str()), ("NO_COLOR", "1".as_ref())];
    assert_eq!(console(session, folder.path(), &variables), 6);
}
