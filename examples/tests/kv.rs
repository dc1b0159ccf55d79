//! `kv-server`: replies, restarts, kills under load.

#[path = "common/client.rs"]
mod client;
mod common;

use client::{Client, Reply, Server, TextClient};
use common::Ground;
use indelible_testing::{Seeded, not_tested};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

fn texts(all: &[&str]) -> Reply {
    Reply::Array(all.iter().map(|text| bulk(text)).collect())
}

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

fn session(client: &mut Client, requests: &[(&str, Reply)]) {
    for (request, reply) in requests {
        assert_eq!(client.ask(request), *reply, "{request}");
    }
}

fn error(client: &mut Client, request: &str, expected: &str) {
    match client.ask(request) {
        Reply::Error(text) => assert!(text.contains(expected), "{request}: {text}"),
        other => panic!("{request}: {other:?}"),
    }
}

#[test]
fn values_of_each_kind_are_there_after_a_kill() {
    use Reply::{Integer, Nil};
    let folder = Ground::Disk.folder();
    let pool = folder.path().join("kv.pmo");
    let server = Server::start(&pool);
    session(
        &mut server.client(),
        &[
            ("PING", Reply::Simple("PONG".into())),
            ("GET a", Nil),
            ("SET a one", ok()),
            ("set a other NX", Nil),
            ("SET b x XX", Nil),
            ("GET a", bulk("one")),
            ("SET a longer-than-before", ok()),
            ("INCR n", Integer(1)),
            ("INCRBY n 41", Integer(42)),
            ("DECR n", Integer(41)),
            ("HSET h f 1 g 2", Integer(2)),
            ("HSET h f 3", Integer(0)),
            ("HGET h f", bulk("3")),
            ("HLEN h", Integer(2)),
            ("HDEL h g x", Integer(1)),
            ("ZADD z 2 two 1 one 3 three -1.5 minus", Integer(4)),
            ("ZADD z 0 two", Integer(0)),
            ("ZRANGE z 0 -1", texts(&["minus", "two", "one", "three"])),
            ("ZRANGE z -2 -1 WITHSCORES", texts(&["one", "1", "three", "3"])),
            ("ZSCORE z minus", bulk("-1.5")),
            ("ZREM z one none", Integer(1)),
            ("ZCARD z", Integer(3)),
            ("TYPE z", Reply::Simple("zset".into())),
            ("SET gone x", ok()),
            ("DEL gone none", Integer(1)),
            ("EXISTS a n gone", Integer(2)),
            ("RPUSH l b c", Integer(2)),
            ("LPUSH l a", Integer(3)),
            ("MULTI", ok()),
            ("SET m 1", Reply::Simple("QUEUED".into())),
            ("LPOP l", Reply::Simple("QUEUED".into())),
            ("EXEC", Reply::Array(vec![ok(), bulk("a")])),
            ("MULTI", ok()),
            ("SET m 2", Reply::Simple("QUEUED".into())),
            ("DISCARD", ok()),
        ],
    );
    server.kill();
    let server = Server::start(&pool);
    session(
        &mut server.client(),
        &[
            ("GET a", bulk("longer-than-before")),
            ("GET n", bulk("41")),
            ("HGETALL h", texts(&["f", "3"])),
            ("ZRANGE z 0 9", texts(&["minus", "two", "three"])),
            ("LRANGE l 0 -1", texts(&["b", "c"])),
            ("GET m", bulk("1")),
            ("DBSIZE", Integer(6)),
            ("HDEL h f", Integer(1)),
            ("EXISTS h", Integer(0)),
            ("FLUSHALL", ok()),
            ("DBSIZE", Integer(0)),
        ],
    );
}

#[test]
fn keys_end_when_they_are_to() {
    use Reply::{Integer, Nil};
    let folder = Ground::Memory.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    session(
        &mut client,
        &[
            ("SET a 1 EX 100", ok()),
            ("TTL a", Integer(100)),
            ("SET a 2 KEEPTTL", ok()),
            ("TTL a", Integer(100)),
            ("PERSIST a", Integer(1)),
            ("TTL a", Integer(-1)),
            ("TTL none", Integer(-2)),
            ("EXPIRE a 50", Integer(1)),
            ("SET a 3", ok()),
            ("TTL a", Integer(-1)),
            ("EXPIRE none 1", Integer(0)),
            ("EXPIRE a -1", Integer(1)),
            ("GET a", Nil),
            ("SET b 1 PX 1", ok()),
        ],
    );
    while client.ask("GET b") != Nil {
        std::thread::yield_now();
    }
    session(&mut client, &[("EXISTS b", Integer(0)), ("INCR b", Integer(1)), ("TTL b", Integer(-1))]);
}

#[test]
fn a_scan_meets_every_key() {
    let folder = Ground::Memory.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    (0..500).for_each(|number| assert_eq!(client.ask(&format!("SET key:{number} x")), ok()));
    client.ask("SET other x");
    let (mut cursor, mut met, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let reply = client.ask(&format!("SCAN {cursor} MATCH key:* COUNT 20"));
        let Reply::Array(parts) = reply else { panic!("{reply:?}") };
        let [Reply::Bulk(next), Reply::Array(keys)] = &parts[..] else { panic!("{parts:?}") };
        met.extend(keys.iter().map(|key| format!("{key:?}")));
        cursor.clone_from(next);
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    assert!(met.len() == 500 && calls > 5, "{} keys in {calls} calls", met.len());
}

#[test]
fn wrong_requests_are_errors_and_change_nothing() {
    let folder = Ground::Memory.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    session(&mut client, &[("SET a text", ok()), ("HSET h f v", Reply::Integer(1))]);
    for (request, expected) in [
        ("NONE x", "unknown command"),
        ("GET", "wrong number of arguments"),
        ("SET a", "wrong number of arguments"),
        ("SET a b EX", "syntax"),
        ("SET a b EX 0", "invalid expire time"),
        ("SET a b EX x", "not an integer"),
        ("SET a b EX 9223372036854775807", "invalid expire time"),
        ("INCR a", "not an integer"),
        ("GET h", "WRONGTYPE"),
        ("HSET a f v", "WRONGTYPE"),
        ("HSET h f", "wrong number of arguments"),
        ("HSET h f v g", "wrong number of arguments"),
        ("ZADD a 1 m", "WRONGTYPE"),
        ("ZADD z 1 m nan n", "not a valid float"),
        ("ZRANGE h 0 1", "WRONGTYPE"),
        ("SCAN x", "invalid cursor"),
        ("SCAN 0 COUNT 0", "syntax"),
        ("SELECT 1", "out of range"),
    ] {
        error(&mut client, request, expected);
    }
    client.ask("SET n 9223372036854775807");
    error(&mut client, "INCR n", "overflow");
    assert_eq!(client.ask("DBSIZE"), Reply::Integer(3));
    for input in ["*1\r\nGET\r\n", "*x\r\n", "*1\r\n$99999999999\r\n"] {
        let mut broken = server.client();
        broken.send(input.as_bytes()).unwrap();
        assert!(matches!(broken.receive(), Ok(Reply::Error(text)) if text.contains("Protocol error")));
        assert!(broken.receive().is_err(), "the connection ends");
    }
    assert_eq!(client.ask("GET a"), bulk("text"));
}

#[test]
fn a_full_pool_is_an_error() {
    let folder = Ground::Memory.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let mut client = server.client();
    let value = "x".repeat(1 << 20);
    let refused = (0..200).find_map(|number| match client.ask(&format!("SET {number} {value}")) {
        Reply::Error(text) => Some((number, text)),
        _ => None,
    });
    let (refused, text) = refused.expect("64 MiB hold no 200 MiB");
    assert!(text.starts_with("OOM") || text.contains("not durable"), "{text}");
    assert_eq!(client.ask("GET 0"), bulk(&value));
    assert_eq!(client.ask(&format!("DEL {}", refused - 1)), Reply::Integer(1));
    assert_eq!(client.ask("SET small x"), ok());
}

const COUNTERS: [(&str, &str); 7] = [
    ("INCR text", "GET text"),
    ("HINCRBY hash field 1", "HGET hash field"),
    ("RPUSH list x", "LLEN list"),
    ("ZINCRBY sorted 1 member", "ZSCORE sorted member"),
    ("ZADD ranks NX 1 member", "ZCARD ranks"),
    ("MULTI|INCR first|INCR second|EXEC", "MGET first second"),
    ("incr cached 1", "get cached"),
];
const CLIENTS: usize = 14;
const KILLS: usize = 12;

fn count(reply: &Reply) -> u64 {
    match reply {
        Reply::Integer(count) => *count as u64,
        Reply::Bulk(text) => text.parse().unwrap(),
        Reply::Nil => 0,
        Reply::Array(both) => {
            let [first, second] = &both[..] else { panic!("{both:?}") };
            assert_eq!(first, second, "a transaction is one step");
            count(first)
        }
        other => panic!("{other:?}"),
    }
}

struct Counter {
    number: usize,
    at_once: u64,
}

impl Counter {
    fn words(&self, line: &str, count: u64) -> Vec<String> {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let keys = if words[0] == "MGET" { 1..3 } else { 1..words.len().min(2) };
        words[keys].iter_mut().for_each(|key| *key = format!("{key}:{}", self.number));
        if line.starts_with("ZADD") {
            words[4] = format!("member:{count}");
        }
        words
    }

    fn lines(&self) -> (&'static str, &'static str) {
        COUNTERS[self.number % COUNTERS.len()]
    }

    fn is_cached(&self) -> bool {
        self.lines().0.starts_with("incr")
    }

    fn found(&self, server: &Server) -> u64 {
        let look = self.words(self.lines().1, 0).join(" ");
        if self.is_cached() {
            let mut client = server.memcached();
            client.ask(&format!("add cached:{} 0 0 1|0", self.number));
            return client.ask(&look).split('|').nth(1).unwrap().trim_end().parse().unwrap();
        }
        count(&server.client().ask(&look))
    }

    fn clients(&self, server: &Server) -> (Client, Option<TextClient>) {
        (server.client(), self.is_cached().then(|| server.memcached()))
    }

    /// Continues from the last acknowledged number, `at_once` requests without a wait, until the
    /// server is gone.
    fn run(
        &self,
        clients: (Client, Option<TextClient>),
        sent: &AtomicU64,
        acknowledged: &AtomicU64,
    ) -> std::io::Result<()> {
        let (line, _) = self.lines();
        let (mut client, mut text) = clients;
        let mut next = acknowledged.load(SeqCst);
        loop {
            sent.fetch_add(self.at_once, SeqCst);
            let mut requests = Vec::new();
            for at in 1..=self.at_once {
                for line in line.split('|') {
                    let words = self.words(line, next + at);
                    if text.is_some() {
                        requests.extend(format!("{}\r\n", words.join(" ")).bytes());
                    } else {
                        let words: Vec<&str> = words.iter().map(String::as_str).collect();
                        requests.extend(Client::request(&words));
                    }
                }
            }
            match &mut text {
                Some(text) => text.send_bytes(&requests)?,
                None => client.send(&requests)?,
            }
            for _ in 0..self.at_once {
                next += 1;
                let counted = match &mut text {
                    Some(text) => text.receive()?[0].parse().unwrap(),
                    None => {
                        // Only a transaction's last reply counts; ZADD returns the number of new
                        // members.
                        (1..line.split('|').count()).try_for_each(|_| client.receive().map(drop))?;
                        count(&client.receive()?)
                    }
                };
                acknowledged.store(if line.starts_with("ZADD") { next } else { counted }, SeqCst);
            }
        }
    }
}

#[test]
fn killed_under_load_nothing_acknowledged_is_lost() {
    for ground in [Ground::Disk, Ground::Memory] {
        let folder = ground.folder();
        let pool = folder.path().join("kv.pmo");
        let mut random = Seeded::new(77);
        println!("seed {}", random.seed());
        let counters: Vec<Counter> =
            (0..CLIENTS).map(|number| Counter { number, at_once: 1 + number as u64 % 4 * 5 }).collect();
        let acknowledged: [AtomicU64; CLIENTS] = Default::default();
        let sent: [AtomicU64; CLIENTS] = Default::default();
        for kill in 0..KILLS {
            let server = Server::with(&pool, &["--threads", "4", "--memcached", "127.0.0.1:0"]);
            for (counter, (acknowledged, sent)) in counters.iter().zip(acknowledged.iter().zip(&sent)) {
                let found = counter.found(&server);
                let (least, most) = (acknowledged.load(SeqCst), sent.load(SeqCst));
                assert!(
                    (least..=most).contains(&found),
                    "{ground:?}, kill {kill}, {}: {least} acknowledged, {found} there, {most} sent",
                    counter.lines().0
                );
                acknowledged.store(found, SeqCst);
                sent.store(found, SeqCst);
            }
            let enough = random.u64(1..400);
            let total = || acknowledged.iter().map(|count| count.load(SeqCst)).sum::<u64>();
            let before = total();
            std::thread::scope(|scope| {
                for (counter, (acknowledged, sent)) in counters.iter().zip(acknowledged.iter().zip(&sent)) {
                    let clients = counter.clients(&server);
                    scope.spawn(move || counter.run(clients, sent, acknowledged));
                }
                while total() < before + enough {
                    std::thread::yield_now();
                }
                server.kill();
            });
        }
        assert!(acknowledged.iter().all(|count| count.load(SeqCst) > 0));
    }
}

#[test]
fn clients_of_redis_are_served() {
    let folder = Ground::Disk.folder();
    let server = Server::start(&folder.path().join("kv.pmo"));
    let port = server.address.port().to_string();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(["-p", &port]).args(arguments).output().ok()?;
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        Some(String::from_utf8(output.stdout).unwrap())
    };
    match run("redis-cli", &["set", "greeting", "hello world"]) {
        None => return not_tested("kv-server with redis-cli and redis-benchmark, which are not installed"),
        Some(reply) => assert_eq!(reply, "OK\n"),
    }
    assert_eq!(run("redis-cli", &["get", "greeting"]).unwrap(), "hello world\n");
    let keys = run("redis-cli", &["--scan", "--pattern", "greet*"]).unwrap();
    assert_eq!(keys, "greeting\n");
    let load = ["-q", "-n", "2000", "-r", "500", "-c", "20", "-P", "4", "-t", "ping,set,get,incr,hset,zadd"];
    match run("redis-benchmark", &load) {
        None => not_tested("kv-server with redis-benchmark, which is not installed"),
        Some(report) => assert!(report.contains("SET: ") && report.contains("ZADD: "), "{report}"),
    }
}
