//! A server that factors numbers, and clients that ask it, by requests and completions in memory
//! that they share. Kill the server at any time: run it again, and each request is completed once.
//!
//!     factors POOL serve
//!     factors POOL ask NUMBER...

use anyhow::{Context, Result, bail};
use indelible::{Class, CreateOptions, ErrorKind, Exchange, ExchangeOptions, Pool};

const NAME: &str = "factors";
const HOW: ExchangeOptions = ExchangeOptions { slots: 64, request: 8, completion: 8 * 64 };

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        [path, "serve"] => serve(&exchange(path)?),
        [path, "ask", numbers @ ..] => ask(&exchange(path)?, numbers),
        _ => bail!("usage: factors POOL serve | factors POOL ask NUMBER..."),
    }
}

fn exchange(path: &str) -> Result<Exchange> {
    let pool = Pool::open_or_format(path, 16 << 20)?;
    let how = CreateOptions::new(HOW.bytes()? as u64).class(Class::Shared);
    match pool.create_with(NAME, &how) {
        Err(error) if error.kind() != ErrorKind::Exists => return Err(error.into()),
        _ => {}
    }
    Ok(pool.attach_shared(NAME)?.exchange(0, &HOW)?)
}

fn factors(mut number: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut factor = 2;
    while factor <= number / factor {
        match number.is_multiple_of(factor) {
            true => {
                found.push(factor);
                number /= factor;
            }
            false => factor += 1,
        }
    }
    found.push(number);
    found
}

fn serve(exchange: &Exchange) -> Result<()> {
    let mut server = exchange.server().context("is another server running?")?;
    println!("serving");
    let mut request = Vec::new();
    while let Some(number) = server.receive(&mut request, None)? {
        let asked = u64::from_le_bytes(request[..].try_into()?);
        let found: Vec<u8> = factors(asked).iter().flat_map(|factor| factor.to_le_bytes()).collect();
        server.complete(number, &found)?;
    }
    Ok(())
}

fn ask(exchange: &Exchange, numbers: &[&str]) -> Result<()> {
    let mut requester = exchange.requester().context("is another client running?")?;
    let mut asked = Vec::new();
    for number in numbers {
        let request = number.parse::<u64>()?.to_le_bytes();
        let sent = requester.send(&request, None)?.context("no server takes requests")?;
        asked.push((number, sent));
    }
    let mut found = Vec::new();
    for (number, sent) in asked {
        requester.wait(sent, &mut found, None)?;
        let factors = found.as_chunks::<8>().0.iter().map(|factor| u64::from_le_bytes(*factor).to_string());
        println!("{number} = {}", factors.collect::<Vec<_>>().join(" · "));
    }
    Ok(())
}
