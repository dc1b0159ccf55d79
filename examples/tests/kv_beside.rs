//! `kv-server` replies to random commands as redis-server and memcached do.

#[path = "common/client.rs"]
mod client;
mod common;

use client::{Client, Reply, Server, TextClient};
use common::Ground;
use indelible_testing::{Seeded, not_tested};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

/// Commands of a test: 20,000, or `INDELIBLE_COMMANDS`.
fn commands() -> usize {
    let asked = std::env::var("INDELIBLE_COMMANDS").ok();
    asked.map_or(20_000, |text| text.parse().expect("INDELIBLE_COMMANDS is a number"))
}

/// Killed when dropped.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &str, arguments: &[&str]) -> Option<(Peer, SocketAddr)> {
    for _ in 0..20 {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["-p", "--port"].iter().filter(|name| (program == "memcached") == (**name == "-p")));
        command.arg(address.port().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else { return None };
        let mut peer = Peer(child);
        while peer.0.try_wait().unwrap().is_none() {
            if Client::connect(address).is_ok() {
                return Some((peer, address));
            }
            std::thread::yield_now();
        }
    }
    panic!("{program} does not start");
}

fn filled(template: &str, random: &mut Seeded) -> String {
    let mut line = String::new();
    for (at, part) in template.split(['{', '}']).enumerate() {
        if at % 2 == 0 {
            line.push_str(part);
            continue;
        }
        let words: Vec<String> = match part {
            // Few keys: most commands find something, often of another kind.
            "key" => (0..6).map(|number| format!("key:{number}")).collect(),
            "field" => (0..5).map(|number| format!("f{number}")).collect(),
            "text" => ["", "1", "-7", "hello", "a-longer-text-than-the-others", "9223372036854775807", "2.5"]
                .map(str::to_owned)
                .into(),
            "int" => ["0", "1", "-1", "2", "-3", "5", "100", "-100", "9223372036854775807", "x", "1.5"]
                .map(str::to_owned)
                .into(),
            "small" => (-4..5).map(|number: i64| number.to_string()).collect(),
            "score" => ["0", "1", "-2.5", "3.25", "1e3", "inf", "-inf", "nan", "7"].map(str::to_owned).into(),
            "bound" => ["0", "(1", "-2.5", "(3.25", "+inf", "-inf", "(-inf", "x"].map(str::to_owned).into(),
            "member" => (0..6).map(|number| format!("m{number}")).collect(),
            "far" => ["100000", "200000", "-5", "0"].map(str::to_owned).into(),
            "when" => ["-1", "0", "x", "1.5", "100000", "9223372036854775807"].map(str::to_owned).into(),
            "fraction" => ["1", "-2.5", "0.25", "inf", "x"].map(str::to_owned).into(),
            "moment" => ["99999999999", "88888888888", "1"].map(str::to_owned).into(),
            other => panic!("{other}"),
        };
        line.push_str(&words[random.usize(0..words.len())]);
    }
    line
}

const REDIS: &[&str] = &[
    "GET {key}",
    "SET {key} {text}",
    "SET {key} {text} NX",
    "SET {key} {text} XX GET",
    "SET {key} {text} GET",
    "SET {key} {text} EX {far}",
    "SET {key} {text} KEEPTTL",
    "SET {key} {text} NX XX",
    "SETNX {key} {text}",
    "SETEX {key} {far} {text}",
    "GETSET {key} {text}",
    "GETDEL {key}",
    "GETEX {key} EX {far}",
    "GETEX {key} PERSIST",
    "MGET {key} {key} {key}",
    "MSET {key} {text} {key} {text}",
    "MSET {key} {text} {key}",
    "MSETNX {key} {text} {key} {text}",
    "APPEND {key} {text}",
    "STRLEN {key}",
    "GETRANGE {key} {small} {small}",
    "SETRANGE {key} {small} {text}",
    "INCR {key}",
    "DECR {key}",
    "INCRBY {key} {int}",
    "DECRBY {key} {int}",
    "HSET {key} {field} {text}",
    "HSET {key} {field} {text} {field} {text}",
    "HSET {key} {field}",
    "HMSET {key} {field} {text}",
    "HSETNX {key} {field} {text}",
    "HGET {key} {field}",
    "HMGET {key} {field} {field}",
    "HGETALL {key}",
    "HKEYS {key}",
    "HVALS {key}",
    "HDEL {key} {field} {field}",
    "HLEN {key}",
    "HEXISTS {key} {field}",
    "HSTRLEN {key} {field}",
    "HINCRBY {key} {field} {int}",
    "LPUSH {key} {text}",
    "RPUSH {key} {text} {text}",
    "LPUSHX {key} {text}",
    "RPUSHX {key} {text}",
    "LPOP {key}",
    "RPOP {key}",
    "LPOP {key} {small}",
    "RPOP {key} 2",
    "LLEN {key}",
    "LRANGE {key} {small} {small}",
    "LINDEX {key} {small}",
    "LSET {key} {small} {text}",
    "LINSERT {key} BEFORE {text} {text}",
    "LINSERT {key} AFTER {text} {text}",
    "LREM {key} {small} {text}",
    "LTRIM {key} {small} {small}",
    "RPOPLPUSH {key} {key}",
    "LMOVE {key} {key} LEFT RIGHT",
    "LMOVE {key} {key} RIGHT RIGHT",
    "ZADD {key} {score} {member}",
    "ZADD {key} {score} {member} {score} {member}",
    "ZADD {key} NX {score} {member}",
    "ZADD {key} XX CH {score} {member}",
    "ZADD {key} GT {score} {member}",
    "ZADD {key} LT CH {score} {member} {score} {member}",
    "ZADD {key} INCR {score} {member}",
    "ZADD {key} NX GT {score} {member}",
    "ZADD {key} XX INCR {score} {member}",
    "ZINCRBY {key} {score} {member}",
    "ZREM {key} {member} {member}",
    "ZSCORE {key} {member}",
    "ZMSCORE {key} {member} {member}",
    "ZCARD {key}",
    "ZCOUNT {key} {bound} {bound}",
    "ZRANK {key} {member}",
    "ZREVRANK {key} {member}",
    "ZRANGE {key} {small} {small}",
    "ZRANGE {key} {small} {small} WITHSCORES",
    "ZRANGE {key} {bound} {bound} BYSCORE LIMIT {small} {small}",
    "ZRANGE {key} {bound} {bound} BYSCORE REV WITHSCORES",
    "ZRANGE {key} {small} {small} REV",
    "ZREVRANGE {key} {small} {small} WITHSCORES",
    "ZRANGEBYSCORE {key} {bound} {bound}",
    "ZRANGEBYSCORE {key} {bound} {bound} WITHSCORES LIMIT {small} {small}",
    "ZREVRANGEBYSCORE {key} {bound} {bound}",
    "ZREMRANGEBYSCORE {key} {bound} {bound}",
    "ZREMRANGEBYRANK {key} {small} {small}",
    "ZPOPMIN {key}",
    "ZPOPMAX {key} {small}",
    "ZRANGE {key} {small} {small} LIMIT 0 1",
    "DEL {key}",
    "DEL {key} {key}",
    "UNLINK {key}",
    "EXISTS {key} {key}",
    "TYPE {key}",
    "EXPIRE {key} {far}",
    "EXPIRE {key} {far} NX",
    "EXPIREAT {key} {moment} GT",
    "EXPIREAT {key} {moment} LT",
    "EXPIRE {key} {far} XX",
    "EXPIREAT {key} {moment} LT XX",
    "EXPIRE {key} {far} NX GT",
    "EXPIRE {key} {far} OX",
    "HINCRBYFLOAT {key} float {fraction}",
    "INCRBYFLOAT float {fraction}",
    "DEL float",
    "EXPIRE {key} {when}",
    "PERSIST {key}",
    "EXPIREAT {key} 99999999999",
    "EXPIRETIME {key}",
    "RENAME {key} {key}",
    "RENAMENX {key} {key}",
    "KEYS key:*",
    "KEYS *[13]",
    "KEYS *:[^0-2]",
    "DBSIZE",
    "PING",
    "PING {text}",
    "ECHO {text}",
    "SELECT 0",
    "NONE {text}",
    "GET",
    "GET {key} {key}",
    "MULTI",
    "MULTI",
    "EXEC",
    "EXEC",
    "EXEC",
    "DISCARD",
    "SCAN 0 COUNT 1000",
    "HSCAN {key} 0 COUNT 1000",
    "ZSCAN {key} 0 COUNT 1000",
    "TTL {key}",
];

fn comparable(line: &str, reply: Reply) -> Reply {
    let any_order = ["HGETALL", "HKEYS", "HVALS", "KEYS", "SCAN", "HSCAN", "ZSCAN"];
    let command = line.split(' ').next().unwrap();
    match reply {
        Reply::Map(mut pairs) => {
            pairs.sort();
            Reply::Map(pairs)
        }
        Reply::Integer(seconds) if command == "TTL" || command == "EXPIRETIME" => {
            Reply::Integer((seconds + 5000) / 10_000)
        }
        Reply::Array(all) if any_order.contains(&command) => {
            let mut all: Vec<Reply> = all
                .into_iter()
                .map(|part| match part {
                    Reply::Array(mut parts) => {
                        parts.sort();
                        Reply::Array(parts)
                    }
                    other => other,
                })
                .collect();
            all.sort();
            Reply::Array(all)
        }
        other => other,
    }
}

fn answer(client: &mut Client, line: &str, queue: &[String]) -> Reply {
    match client.ask(line) {
        Reply::Array(replies) if line == "EXEC" => {
            assert_eq!(replies.len(), queue.len());
            let replies = queue.iter().zip(replies).map(|(line, reply)| comparable(line, reply));
            Reply::Array(replies.collect())
        }
        reply => comparable(line, reply),
    }
}

#[test]
fn replies_are_those_of_redis() {
    let folder = Ground::Memory.folder();
    let path = folder.path().to_str().unwrap();
    let Some((_peer, address)) = start("redis-server", &["--save", "", "--dir", path]) else {
        return not_tested("kv-server beside redis-server, which is not installed");
    };
    let mut random = Seeded::new(1);
    println!("INDELIBLE_SEED={}", random.seed());
    let server = Server::start(&folder.path().join("kv.pmo"));
    for version in [2, 3] {
        let mut clients = [server.client(), Client::connect(address).unwrap()];
        for client in &mut clients {
            client.ask("FLUSHALL");
            client.ask(&format!("HELLO {version}"));
        }
        let mut queue: Option<Vec<String>> = None;
        for at in 0..commands() {
            let line = filled(REDIS[random.usize(0..REDIS.len())], &mut random);
            let queued = queue.clone().unwrap_or_default();
            let [ours, theirs] = clients.each_mut().map(|client| answer(client, &line, &queued));
            assert_eq!(
                ours, theirs,
                "version {version}, command {at}: {line} (redis-server is on the right)"
            );
            match line.as_str() {
                "MULTI" => drop(queue.get_or_insert_default()),
                "EXEC" | "DISCARD" => queue = None,
                _ if ours == Reply::Simple("QUEUED".into()) => queue.as_mut().unwrap().push(line),
                _ => {}
            }
        }
    }
}

const MEMCACHED: &[&str] = &[
    "get {key}",
    "get {key} {key} {key}",
    "gets {key}",
    "gets {key} {key}",
    "set {key} 0 0 {value}",
    "set {key} 7 100000 {value}",
    "set {key} 4294967295 0 {value}",
    "set {key} 0 -1 {value}",
    "add {key} 1 0 {value}",
    "replace {key} 2 0 {value}",
    "append {key} 0 0 {value}",
    "prepend {key} 0 0 {value}",
    "cas {key} 3 0 {value}",
    "cas {key} 3 0 {value}",
    "cas {key} 3 0 {stale}",
    "incr {key} {number}",
    "decr {key} {number}",
    "touch {key} 100000",
    "touch {key} -1",
    "touch {key} x",
    "delete {key}",
    "delete {key} 0",
    "delete {key} 5",
    "gat 100000 {key} {key}",
    "gats 100000 {key}",
    "gat -1 {key}",
    "flush_all",
    "set {key} 0 0",
    "set {key} x 0 1",
    "get",
    "none",
    "incr {key}",
    "set {key} 0 0 {value} noreply",
    "delete {key} noreply",
    "incr {key} 1 noreply",
    "verbosity 1",
    "verbosity x",
    "verbosity",
    "gat 1",
    "gat",
    "flush_all -1",
    "flush_all x",
    "flush_all noreply",
    "get {key} noreply",
    "none noreply",
    "set {key} 0 0 -1",
    "delete {key} x noreply",
];

#[test]
fn replies_are_those_of_memcached() {
    let folder = Ground::Memory.folder();
    // The user matters only for root.
    let Some((_peer, address)) = start("memcached", &["-l", "127.0.0.1", "-u", "nobody"]) else {
        return not_tested("kv-server beside memcached, which is not installed");
    };
    let mut random = Seeded::new(2);
    println!("INDELIBLE_SEED={}", random.seed());
    let server = Server::of_both(&folder.path().join("kv.pmo"));
    let mut clients = [server.memcached(), TextClient::connect(address).unwrap()];
    let negative = clients.each_mut().map(|client| {
        assert_eq!(client.ask("set negative 0 0 2|-1"), "STORED");
        client.ask("incr negative 1")
    });
    assert_eq!(negative[0], negative[1]);
    for at in 0..commands() {
        let template = MEMCACHED[random.usize(0..MEMCACHED.len())];
        let key = |random: &mut Seeded| format!("key:{}", random.u8(0..6));
        let mut line = template.to_owned();
        while line.contains("{key}") {
            line = line.replacen("{key}", &key(&mut random), 1);
        }
        // Without '-': memcached looks for one behind numbers of 2^63 and more, even among
        // overwritten bytes.
        let values = ["", "1", "10", "18446744073709551615", "hello", "007", "two words"];
        let value = values[random.usize(0..values.len())];
        let number = ["1", "9", "100", "18446744073709551615", "x", "-1"][random.usize(0..6)];
        let line = line.replace("{number}", number);
        let is_store = line.contains("{value}") || line.contains("{stale}");
        let silent = line.ends_with("noreply") && !line.starts_with("get") && !line.starts_with("none");
        let replies = clients.each_mut().map(|client| {
            let mut line = line.replace("{value}", &value.len().to_string());
            if line.contains("{stale}") {
                line = line.replace("{stale}", &format!("{} 1", value.len()));
            } else if line.starts_with("cas") {
                let found = client.ask(&format!("gets {}", line.split(' ').nth(1).unwrap()));
                let unique =
                    found.split('|').next().and_then(|head| head.split(' ').nth(4)).unwrap_or("1").to_owned();
                line = format!("{line} {unique}");
            }
            if is_store {
                line = format!("{line}|{value}");
            }
            client.send(&line).unwrap();
            if silent {
                return Vec::new();
            }
            let lines = client.receive().unwrap();
            let shown = lines.iter().map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
                ["VALUE", key, flags, len, _] => format!("VALUE {key} {flags} {len} unique"),
                _ => line.clone(),
            });
            shown.collect()
        });
        assert_eq!(replies[0], replies[1], "command {at}: {line} {value:?} (memcached is on the right)");
        let counted = silent || replies[0][0].bytes().all(|byte| byte.is_ascii_digit());
        if (line.starts_with("incr") || line.starts_with("decr")) && counted {
            let text = if silent { "5" } else { replies[0][0].as_str() };
            let line = format!("set {} 0 0 {}|{text}", line.split(' ').nth(1).unwrap(), text.len());
            clients.iter_mut().for_each(|client| assert_eq!(client.ask(&line), "STORED"));
        }
    }
}

/// The test program of libmemcached, by either of its names.
#[test]
fn libmemcached_finds_the_protocol_of_memcached() {
    let folder = Ground::Memory.folder();
    let server = Server::of_both(&folder.path().join("kv.pmo"));
    let port = server.memcached.unwrap().port().to_string();
    for program in ["memcapable", "memccapable"] {
        let tests = Command::new(program).args(["-h", "127.0.0.1", "-a", "-p", &port]).output();
        let Ok(tests) = tests else { continue };
        let said = String::from_utf8_lossy(&tests.stdout);
        assert!(tests.status.success() && said.contains("All tests passed"), "{said}");
        assert!(said.matches("[pass]").count() >= 20, "{said}");
        return;
    }
    not_tested("kv-server by memcapable: Debian has it in libmemcached-tools");
}
