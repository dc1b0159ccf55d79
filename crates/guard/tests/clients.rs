use crate::support::{AMPLE, PATIENCE, Rig, attach, step, until};
use indelible_guard::detector::FileDetector;
use indelible_guard::{Config, Guard, GuardError, status};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

fn send(rig: &Rig, bytes: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(&rig.socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    stream
}

#[test]
fn hostile_clients_are_sent_away_and_others_are_served() {
    let rig = Rig::new(AMPLE);
    let (_pool, a, b) = attach(&rig.pool, &rig.socket);
    rig.registered(1);
    let mut random = indelible_testing::Seeded::new(11);
    let noise: Vec<u8> = (0..100_000).map(|_| random.u64(0..256) as u8).collect();
    let hello = format!("writer 1 {} {} 2f70\n", "0".repeat(32), "0".repeat(16));
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\n",
        b"writer 1\n",
        b"\xff\xff\n",
        &[b'x'; 20_000],
        &noise,
        format!("{hello}{hello}").as_bytes(),
        format!("{hello}garbage\n").as_bytes(),
    ] {
        let mut rest = Vec::new();
        let _ = send(&rig, bytes).read_to_end(&mut rest);
    }
    let mut liar = send(
        &rig,
        format!("{hello}published 1 5 5\npublished 77 5 5\nfailed 3 x\nmeasured 18446744073709551615 0\n")
            .as_bytes(),
    );
    rig.registered(2);
    let last = step(&a, &b);
    liar.write_all(b"bye\n").unwrap();
    rig.registered(1);
    // One asks without reading, one is silent, one leaves within a word.
    let asks = send(&rig, "status\n".repeat(50_000).as_bytes());
    let says_nothing = send(&rig, b"");
    drop(send(&rig, b"stat"));
    let round = indelible_guard::rehearse(&rig.socket, PATIENCE).unwrap();
    assert!(round.durable && round.writers.len() == 1, "{round:?}");
    assert_eq!(rig.durable(), last);
    drop((asks, says_nothing));
}

#[test]
fn a_recovery_that_fails_is_told() {
    let rig = Rig::new(AMPLE);
    let hello = format!("writer 1 {} {} {}\n", "0".repeat(32), "1".repeat(16), "2f6e6f7768657265");
    drop(send(&rig, hello.as_bytes()));
    until("it is told", || rig.status().lost == 1);
    assert_eq!(rig.status().recovered, 0);
}

#[test]
fn clients_that_say_nothing_do_not_keep_others_away() {
    let rig = Rig::new(AMPLE);
    // More than a user's places; root may have all.
    let idle: Vec<_> = (0..380).map(|_| UnixStream::connect(&rig.socket)).collect();
    until("the guard answers again", || status(&rig.socket, PATIENCE).is_ok());
    drop(idle);
}

#[test]
fn there_is_one_guard_at_a_socket() {
    let rig = Rig::new(AMPLE);
    let config = || Config {
        socket: rig.socket.clone(),
        budget: AMPLE,
        detectors: vec![Box::new(FileDetector::new(&rig.power))],
        recover: Arc::new(|_| Ok(())),
        note: Box::new(|_| ()),
    };
    assert!(matches!(Guard::start(config()), Err(GuardError::Taken(_))));
    rig.status();
    let broken =
        Config { socket: rig.dir.path().join("other.sock"), detectors: vec![Box::new(Broken)], ..config() };
    let refused = Guard::start(broken).err().expect("a detector that cannot work");
    assert!(refused.to_string().contains("broken") && !refused.remedy().is_empty(), "{refused}");
    assert!(!rig.dir.path().join("other.sock").exists());
}

struct Broken;

impl indelible_guard::Detector for Broken {
    fn name(&self) -> String {
        "broken".into()
    }
    fn latency(&self) -> Duration {
        Duration::ZERO
    }
    fn look(&mut self) -> std::io::Result<indelible_guard::Condition> {
        Err(std::io::Error::other("no such device"))
    }
    fn watch(&mut self, _: &indelible_guard::Watch) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_guard_that_is_absent_or_no_guard_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let short = Duration::from_millis(50);
    assert!(matches!(status(&path, short), Err(GuardError::Absent(_))));
    let listener = UnixListener::bind(&path).unwrap();
    assert!(matches!(status(&path, short), Err(GuardError::Answer { .. })), "it does not answer");
    drop(listener.accept().unwrap());
    for (answer, expected) in
        [("", "closed"), ("{}\n", "{}"), ("hello\u{1b}\n", "hello"), ("{\"pid\":1}\n", "pid")]
    {
        let other = std::thread::spawn({
            let listener = listener.try_clone().unwrap();
            move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 7]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let error = status(&path, PATIENCE).unwrap_err();
        other.join().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
    // Shut down, since a process that another test starts may hold the socket for a moment.
    let gone = UnixStream::from(OwnedFd::from(listener));
    gone.shutdown(Shutdown::Both).unwrap();
    assert!(matches!(status(&path, short), Err(GuardError::Absent(_))));
}
