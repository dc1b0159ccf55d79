//! Stores that speak S3 over HTTP: gofakes3, and a server that answers as it is told.

use crate::support::{PAGE, Place, content, difference};
use indelible::{Pool, PoolOptions};
use indelible_testing::not_tested;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn replicate(server: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pmo-replicate"));
    command
        .args(arguments)
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL", format!("http://{server}"));
    command
}

#[track_caller]
fn passes(server: SocketAddr, arguments: &[&str]) {
    let output = replicate(server, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// gofakes3 of `.ci/run`, or of `PATH`.
fn program() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(own).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("gofakes3")).find(|program| program.is_file())
}

/// A server with the empty bucket `backups`, in memory.
fn gofakes3() -> Option<(Running, SocketAddr)> {
    let Some(program) = program() else {
        not_tested("replication to an S3 server: gofakes3 is missing");
        return None;
    };
    for _ in 0..20 {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(&program);
        command
            .args(["-backend", "memory", "-initialbucket", "backups", "-host", &address.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut server = Running(command.spawn().unwrap());
        while server.0.try_wait().unwrap().is_none() {
            if TcpStream::connect(address).is_ok() {
                return Some((server, address));
            }
            std::thread::yield_now();
        }
    }
    panic!("{} does not start", program.display());
}

/// Psyncs this byte on the first pages of the object.
fn psync(pool: &Pool, byte: u8) {
    let mut object = pool.attach("a").unwrap();
    object.range_mut(0..usize::from(byte) * PAGE).fill(byte);
    object.psync().unwrap();
    object.detach().unwrap();
}

fn made(place: &Place) -> Pool {
    let pool = Pool::format(&place.pool, 16 << 20).unwrap();
    pool.create("a", 8 * PAGE as u64).unwrap();
    pool
}

#[test]
fn s2_23_moments_in_an_s3_server_are_restored() {
    let Some((_server, address)) = gofakes3() else { return };
    let place = Place::new();
    let (path, store) = (place.pool.to_str().unwrap(), "s3://backups/of/data");
    let pool = made(&place);
    let mut states = Vec::new();
    for byte in 1..=4 {
        psync(&pool, byte);
        states.push(content(&pool));
        passes(address, &["run", path, store, "--once", "--quiet"]);
    }
    for (nth, state) in states.iter().enumerate() {
        let (new, at) = (place.path(&format!("{nth}.pmo")), format!("{}.1", nth + 1));
        passes(address, &["restore", store, new.to_str().unwrap(), "--at", &at, "--quiet"]);
        let restored = PoolOptions::new().open(&new).unwrap();
        assert_eq!(difference(&content(&restored), state), None, "moment {at}");
    }
}

/// Its put of the next segment meets the boundary record: the server must refuse to put it.
#[test]
fn s2_23_an_owner_that_was_replaced_ships_nothing_to_an_s3_server() {
    let Some((_server, address)) = gofakes3() else { return };
    let place = Place::new();
    let (path, store) = (place.pool.to_str().unwrap(), "s3://backups/data");
    let pool = made(&place);
    psync(&pool, 1);
    let mut first = replicate(address, &["run", path, store, "--tick", "0.02", "--json"]);
    let mut first = Running(first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(first.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(r#""moment":"1.1""#), "{line}");
    passes(address, &["run", path, store, "--take-over", "--once", "--quiet"]);
    psync(&pool, 2);
    let status = first.0.wait().unwrap();
    let why = std::io::read_to_string(first.0.stderr.take().unwrap()).unwrap();
    assert!(!status.success(), "{why}");
    let new = place.path("new.pmo");
    passes(address, &["restore", store, new.to_str().unwrap(), "--quiet"]);
    let restored = PoolOptions::new().open(&new).unwrap();
    assert_eq!(restored.attach("a").unwrap().as_slice()[PAGE], 0, "what the first shipped counts");
}

/// Answers each request with the next status, then with an empty list.
fn scripted(statuses: &'static [(u16, &'static str)]) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let requests = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            let read = head.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            if read == 0 {
                continue;
            }
            let nth = requests.fetch_add(1, Ordering::SeqCst);
            let (status, code) = statuses.get(nth).copied().unwrap_or((200, ""));
            let body = match code {
                "" => "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>".to_owned(),
                code => format!("<Error><Code>{code}</Code><Message>told so</Message></Error>"),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len(),
            );
        }
    });
    (address, count)
}

#[test]
fn a_server_that_refuses_is_an_error_that_says_what_to_check() {
    let (address, requests) = scripted(&[(403, "AccessDenied")]);
    let output = replicate(address, &["status", "s3://backups/data"]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let said = said(&output);
    assert!(said.contains("refused") && said.contains("credentials"), "{said}");
    assert_eq!(requests.load(Ordering::SeqCst), 1, "it does not ask again: {said}");
    let (address, _) = scripted(&[(404, "NoSuchBucket")]);
    let output = replicate(address, &["status", "s3://backups/data"]).output().unwrap();
    assert!(self::said(&output).contains("there is no such bucket"), "{output:?}");
}

#[test]
fn a_busy_server_is_asked_again() {
    let busy = &[(503, "SlowDown"), (500, "InternalError"), (429, "TooManyRequests"), (503, "SlowDown")];
    let (address, requests) = scripted(busy);
    let output = replicate(address, &["status", "s3://backups/data"]).output().unwrap();
    assert!(requests.load(Ordering::SeqCst) > busy.len(), "{output:?}");
    let said = said(&output);
    assert!(!said.contains("SlowDown"), "the list that came at last counts: {said}");
}

#[test]
fn without_credentials_the_error_names_them() {
    let (address, _) = scripted(&[(404, "NotFound"); 64]);
    let mut command = replicate(address, &["status", "s3://backups/data"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    // The credentials of the machine are asked of this server, which has none.
    let output = command.env("AWS_METADATA_ENDPOINT", format!("http://{address}")).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert!(said(&output).contains("AWS_ACCESS_KEY_ID"), "{output:?}");
}
