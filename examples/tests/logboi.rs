//! `logboi` with killed clients and servers; every printed line is in the log once, and the log
//! names crashed clients (S2.27).

use indelible::Pool;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const LOGBOI: &str = env!("CARGO_BIN_EXE_logboi");

struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(pool: &Path, arguments: &[&str]) -> Running {
        let mut command = Command::new(LOGBOI);
        command.arg(pool).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { input: child.stdin.take(), child, lines }
    }

    fn server(pool: &Path) -> Running {
        let mut server = Running::start(pool, &["serve"]);
        assert_eq!(server.line(), "serving");
        server
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").unwrap()
    }

    fn give(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn logged(pool: &Path) -> Vec<String> {
    let mut log = Pool::open(pool).unwrap().read_log("log", b"").unwrap();
    let records = std::iter::from_fn(|| log.read().unwrap());
    records.map(|record| String::from_utf8(record.bytes).unwrap()[9..].to_owned()).collect()
}

#[test]
fn s2_27_clients_and_servers_are_killed_and_no_line_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logboi.pmo");
    let mut server = Running::server(&path);
    let mut clients: Vec<Running> =
        (0..5).map(|client| Running::start(&path, &["send", &format!("client{client}")])).collect();
    for round in 0..20 {
        for (nth, client) in clients.iter_mut().enumerate() {
            client.give(&format!("{nth} line {round}"));
        }
        if round % 5 == 4 {
            server.kill();
            server = Running::server(&path);
        }
        for (nth, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.line(), format!("{nth} line {round}"), "it is durable");
        }
    }
    clients.pop().unwrap().kill();
    assert_eq!(server.line(), "client4 crashed");
    for client in &mut clients {
        drop(client.input.take());
        assert!(client.child.wait().unwrap().success());
    }
    let begin = Instant::now();
    while logged(&path).iter().filter(|line| *line == "bye").count() < 4 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", logged(&path));
    }
    server.kill();
    let log = logged(&path);
    for nth in 0..5 {
        let said = log.iter().filter(|line| line.starts_with(&format!("says {nth} ")));
        let expected: Vec<String> = (0..20).map(|round| format!("says {nth} line {round}")).collect();
        assert_eq!(said.cloned().collect::<Vec<_>>(), expected, "each once, and in order");
    }
    assert_eq!(log.iter().filter(|line| line.starts_with("crashed")).count(), 1, "{log:?}");
    assert_eq!(log.iter().filter(|line| line.starts_with("hello")).count(), 5);
    Pool::open(&path).unwrap().destroy("clients").unwrap();
}

#[test]
fn the_page_on_messages_has_parts_of_this_program() {
    let page = include_str!("../../docs/cookbook/messages.md");
    assert_eq!(indelible_testing::page::parts_of(page, include_str!("../src/logboi.rs")), 2);
}
