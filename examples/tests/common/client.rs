//! A `kv-server` and its clients.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub const KV_SERVER: &str = env!("CARGO_BIN_EXE_kv-server");

/// Killed when dropped.
pub struct Server {
    pub child: Child,
    pub address: SocketAddr,
    pub memcached: Option<SocketAddr>,
}

impl Server {
    pub fn start(pool: &Path) -> Server {
        Server::with(pool, &["--threads", "4"])
    }

    pub fn of_both(pool: &Path) -> Server {
        Server::with(pool, &["--memcached", "127.0.0.1:0"])
    }

    pub fn with(pool: &Path, arguments: &[&str]) -> Server {
        Server::spawn(Command::new(KV_SERVER).arg(pool).args(arguments))
    }

    pub fn spawn(command: &mut Command) -> Server {
        command.args(["--listen", "127.0.0.1:0", "--size", "64"]);
        let speaks_both = command.get_args().any(|argument| argument == "--memcached");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = || {
            let line = lines.next().unwrap().unwrap();
            let address = line.strip_prefix("listening at ").unwrap_or_else(|| panic!("{line:?}"));
            address.parse().unwrap()
        };
        let (address, memcached) = (address(), speaks_both.then(&mut address));
        Server { child, address, memcached }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    pub fn memcached(&self) -> TextClient {
        TextClient::connect(self.memcached.unwrap()).unwrap()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Nil,
    Bulk(String),
    Double(String),
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
}

pub struct Client {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

impl Client {
    pub fn connect(address: SocketAddr) -> std::io::Result<Client> {
        let output = TcpStream::connect(address)?;
        output.set_nodelay(true)?;
        Ok(Client { input: BufReader::new(output.try_clone()?), output })
    }

    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(bytes)
    }

    pub fn receive(&mut self) -> std::io::Result<Reply> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let line = String::from_utf8(line).unwrap();
        let line = line.strip_suffix("\r\n").ok_or_else(gone)?;
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap_or_else(|_| panic!("{line:?}"));
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number()),
            "_" => Reply::Nil,
            "," => Reply::Double(rest.to_owned()),
            "$" | "*" if number() < 0 => Reply::Nil,
            "$" | "=" => {
                let mut bytes = vec![0; number() as usize + 2];
                self.input.read_exact(&mut bytes)?;
                assert_eq!(&bytes[bytes.len() - 2..], b"\r\n");
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(String::from_utf8(bytes).unwrap())
            }
            "*" => Reply::Array((0..number()).map(|_| self.receive()).collect::<Result<_, _>>()?),
            "%" => {
                let pairs = (0..number()).map(|_| Ok((self.receive()?, self.receive()?)));
                Reply::Map(pairs.collect::<std::io::Result<_>>()?)
            }
            _ => panic!("no reply: {line:?}"),
        })
    }

    pub fn request(words: &[&str]) -> Vec<u8> {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*{}\r\n{}", words.len(), words.collect::<String>()).into_bytes()
    }

    pub fn ask(&mut self, line: &str) -> Reply {
        let words: Vec<&str> = line.split(' ').collect();
        self.send(&Client::request(&words)).unwrap();
        self.receive().unwrap()
    }
}

pub struct TextClient {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

impl TextClient {
    pub fn connect(address: SocketAddr) -> std::io::Result<TextClient> {
        let output = TcpStream::connect(address)?;
        output.set_nodelay(true)?;
        Ok(TextClient { input: BufReader::new(output.try_clone()?), output })
    }

    /// A request, with a value after `|`.
    pub fn send(&mut self, line: &str) -> std::io::Result<()> {
        self.send_bytes(format!("{}\r\n", line.replace('|', "\r\n")).as_bytes())
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(bytes)
    }

    pub fn receive(&mut self) -> std::io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            self.input.read_line(&mut line)?;
            let line = line.strip_suffix("\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?.to_owned();
            let begins = |word: &str| line.starts_with(word);
            let size = begins("VALUE ").then(|| line.split(' ').nth(3).unwrap().parse::<usize>().unwrap());
            let goes_on = size.is_some() || begins("STAT ");
            lines.push(line);
            if let Some(size) = size {
                let mut value = vec![0; size + 2];
                self.input.read_exact(&mut value)?;
                lines.push(String::from_utf8(value).unwrap().trim_end_matches("\r\n").to_owned());
            }
            if !goes_on {
                return Ok(lines);
            }
        }
    }

    pub fn ask(&mut self, line: &str) -> String {
        self.send(line).unwrap();
        self.receive().unwrap().join("|")
    }
}
