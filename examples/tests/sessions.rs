//! The page on threads and tasks: its service loses no acknowledged visit when it is killed.

mod common;

use common::Ground;
use indelible_testing::page::blocks;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

const USERS: usize = 4;

#[test]
fn the_page_on_threads_and_tasks_has_the_service() {
    let page = include_str!("../../docs/cookbook/threads.md");
    let programs: Vec<_> = blocks(page).into_iter().filter(|(kind, _)| kind == "rust").collect();
    assert_eq!(programs, [("rust".to_owned(), include_str!("../src/sessions.rs").to_owned())]);
}

fn start(pool: &Path) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
    let mut service = command.arg(pool).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").expect("the service listens").to_owned();
    (service, address)
}

struct Client {
    input: BufReader<TcpStream>,
    user: String,
}

impl Client {
    fn new(address: &str, user: usize) -> Client {
        let input = BufReader::new(TcpStream::connect(address).unwrap());
        Client { input, user: format!("user {user}") }
    }

    /// The number of visits; `None` if the service is gone.
    fn visit(&mut self) -> Option<u64> {
        self.input.get_mut().write_all(format!("{}\n", self.user).as_bytes()).ok()?;
        let mut reply = String::new();
        self.input.read_line(&mut reply).ok()?;
        let count = reply.strip_suffix('\n')?.strip_prefix(&self.user)?;
        Some(count.trim().parse().unwrap())
    }
}

fn killed(ground: Ground) {
    let folder = ground.folder();
    let pool = folder.path().join("sessions.pmo");
    let mut before = [0; USERS];
    for _ in 0..3 {
        let (mut service, address) = start(&pool);
        let acknowledged: [AtomicU64; USERS] = before.map(AtomicU64::new);
        let clients: Vec<Client> = (0..USERS).map(|user| Client::new(&address, user)).collect();
        std::thread::scope(|scope| {
            let (replied, replies) = mpsc::channel();
            for (mut client, acknowledged) in clients.into_iter().zip(&acknowledged) {
                let replied = replied.clone();
                scope.spawn(move || {
                    while let Some(count) = client.visit() {
                        assert_eq!(count, acknowledged.load(Ordering::Relaxed) + 1);
                        acknowledged.store(count, Ordering::Relaxed);
                        let _ = replied.send(());
                    }
                });
            }
            drop(replied);
            assert_eq!(replies.iter().take(100).count(), 100);
            service.kill().unwrap();
            drop(replies);
        });
        service.wait().unwrap();
        let (mut service, address) = start(&pool);
        for (user, acknowledged) in acknowledged.into_iter().enumerate() {
            let count = Client::new(&address, user).visit().unwrap();
            let least = acknowledged.into_inner() + 1;
            assert!((least..=least + 1).contains(&count), "visit {count} of user {user}, not {least}");
            before[user] = count;
        }
        service.kill().unwrap();
        service.wait().unwrap();
    }
}

#[test]
fn a_service_that_is_killed_loses_no_acknowledged_visit() {
    killed(Ground::Memory);
    killed(Ground::Disk);
}
