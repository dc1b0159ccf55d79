//! `factors` with a killed server, and its parts on the page.

use indelible::Pool;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const FACTORS: &str = env!("CARGO_BIN_EXE_factors");

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(pool: &Path, arguments: &[&str]) -> Running {
        let mut command = Command::new(FACTORS);
        let mut child = command.arg(pool).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    fn server(pool: &Path) -> Running {
        let mut server = Running::start(pool, &["serve"]);
        assert_eq!(server.lines.next().unwrap().unwrap(), "serving");
        server
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn s2_21_a_client_gets_its_answers_whichever_server_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("factors.pmo");
    drop(Running::server(&path));
    // Nobody serves when it asks.
    let mut client = Running::start(&path, &["ask", "91", "97", "1", "18446744073709551615"]);
    let mut said = Vec::new();
    for _ in 0..2 {
        let server = Running::server(&path);
        said.extend(client.lines.by_ref().take(2).map(Result::unwrap));
        drop(server);
        let _server = Running::server(&path);
    }
    let expected = [
        "91 = 7 · 13",
        "97 = 97",
        "1 = 1",
        "18446744073709551615 = 3 · 5 · 17 · 257 · 641 · 65537 · 6700417",
    ];
    assert_eq!(said, expected);
    assert!(client.child.wait().unwrap().success());
    Pool::open(&path).unwrap().destroy("factors").unwrap();
}

#[test]
fn the_page_on_messages_has_parts_of_this_program() {
    let page = include_str!("../../docs/cookbook/messages.md");
    assert_eq!(indelible_testing::page::parts_of(page, include_str!("../src/factors.rs")), 2);
}
