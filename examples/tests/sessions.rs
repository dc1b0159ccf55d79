//! The page on threads and tasks: its web service loses nothing that it has replied when it is
//! killed.

mod common;

use common::Ground;
use indelible_testing::Seeded;
use indelible_testing::page::blocks;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

const USERS: usize = 4;
const DEATHS: usize = 8;

#[test]
fn the_page_on_threads_and_tasks_has_the_service() {
    let page = include_str!("../../docs/cookbook/threads.md");
    let programs: Vec<_> = blocks(page).into_iter().filter(|(kind, _)| kind == "rust").collect();
    assert_eq!(programs, [("rust".to_owned(), include_str!("../src/sessions.rs").to_owned())]);
}

/// Killed when dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(pool: &Path) -> (Service, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
    let mut service = Service(command.arg(pool).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(service.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").expect("the service listens").to_owned();
    (service, address)
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(address: &str) -> Client {
        Client(BufReader::new(TcpStream::connect(address).unwrap()))
    }

    /// The number of a user's visits; an error if the service is gone.
    fn ask(&mut self, method: &str, user: usize) -> io::Result<u64> {
        let head = format!("{method} /visits/user%20{user} HTTP/1.1\r\nhost: here\r\n\r\n");
        self.0.get_mut().write_all(head.as_bytes())?;
        let (mut status, mut len) = (None, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
            match line.to_lowercase().split_once(": ") {
                Some(("content-length", number)) => len = number.parse().unwrap(),
                _ if line.is_empty() => break,
                _ => drop(status.get_or_insert_with(|| line.to_owned())),
            }
        }
        let mut body = vec![0; len];
        self.0.read_exact(&mut body)?;
        let body = String::from_utf8(body).unwrap();
        assert_eq!(status.as_deref(), Some("HTTP/1.1 200 OK"), "{body}");
        Ok(body.trim_end().parse().unwrap())
    }
}

/// Kills the service amid requests, after `replies` to visits; returns each user's highest count in
/// replies to visits, and in replies to looks.
fn killed(service: Service, address: &str, before: [u64; USERS], replies: usize) -> [[u64; USERS]; 2] {
    let visited = before.map(AtomicU64::new);
    let seen = before.map(AtomicU64::new);
    std::thread::scope(|scope| {
        let (replied, count) = mpsc::channel();
        for user in 0..USERS {
            let (mut visitor, mut reader) = (Client::new(address), Client::new(address));
            let (visited, seen) = (&visited[user], &seen[user]);
            let replied = replied.clone();
            scope.spawn(move || {
                while let Ok(count) = visitor.ask("POST", user) {
                    assert_eq!(count, visited.load(Ordering::Relaxed) + 1, "visits of user {user}");
                    visited.store(count, Ordering::Relaxed);
                    let _ = replied.send(());
                }
            });
            scope.spawn(move || {
                while let Ok(count) = reader.ask("GET", user) {
                    assert!(count >= seen.load(Ordering::Relaxed), "visits of user {user} went back");
                    seen.store(count, Ordering::Relaxed);
                }
            });
        }
        drop(replied);
        assert_eq!(count.iter().take(replies).count(), replies);
        drop(service);
    });
    [visited, seen].map(|counts| counts.map(AtomicU64::into_inner))
}

fn killed_again_and_again(ground: Ground, seed: u64) {
    let folder = ground.folder();
    let pool = folder.path().join("sessions.pmo");
    let mut random = Seeded::new(seed);
    let mut before = [0; USERS];
    for death in 0..DEATHS {
        let (service, address) = start(&pool);
        let [visited, seen] = killed(service, &address, before, random.usize(10..300));
        let (_service, address) = start(&pool);
        let mut client = Client::new(&address);
        for user in 0..USERS {
            let count = client.ask("GET", user).unwrap();
            let (least, seen) = (visited[user], seen[user]);
            // One visit may be durable whose reply was not sent.
            assert!(
                (least..=least + 1).contains(&count) && count >= seen,
                "{ground:?}, death {death}: user {user} has {count} visits, after replies {least} and {seen}"
            );
            before[user] = count;
        }
    }
}

#[test]
fn a_web_service_that_is_killed_loses_nothing_that_it_replied() {
    killed_again_and_again(Ground::Memory, 1);
    killed_again_and_again(Ground::Disk, 2);
}
