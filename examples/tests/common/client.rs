//! A server of `kv-server`, and a client of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub const KV_SERVER: &str = env!("CARGO_BIN_EXE_kv-server");

/// A server, killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(pool: &Path) -> Server {
        let mut child = Command::new(KV_SERVER)
            .arg(pool)
            .args(["--listen", "127.0.0.1:0", "--size", "64", "--threads", "4"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line:?}"));
        Server { child, address: address.parse().unwrap() }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// By SIGKILL.
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

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Nil,
    Bulk(String),
    Array(Vec<Reply>),
}

/// A connection.
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

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(bytes)
    }

    /// The next reply; an error once the server is gone.
    pub fn receive(&mut self) -> std::io::Result<Reply> {
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let line = line.strip_suffix("\r\n").ok_or_else(gone)?;
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap_or_else(|_| panic!("{line:?}"));
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number()),
            "$" if number() < 0 => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; number() as usize + 2];
                self.input.read_exact(&mut bytes)?;
                assert_eq!(&bytes[bytes.len() - 2..], b"\r\n");
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(String::from_utf8(bytes).unwrap())
            }
            "*" => Reply::Array((0..number()).map(|_| self.receive()).collect::<Result<_, _>>()?),
            _ => panic!("no reply: {line:?}"),
        })
    }

    /// A request of words, as bytes.
    pub fn request(words: &[&str]) -> Vec<u8> {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*{}\r\n{}", words.len(), words.collect::<String>()).into_bytes()
    }

    /// The reply to a request of the words of a line.
    pub fn ask(&mut self, line: &str) -> Reply {
        let words: Vec<&str> = line.split(' ').collect();
        self.send(&Client::request(&words)).unwrap();
        self.receive().unwrap()
    }
}
