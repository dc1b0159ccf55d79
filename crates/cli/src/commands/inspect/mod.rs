mod answer;
mod graph;
mod heap;
mod index;
mod look;
mod object;
mod objects;
mod overview;
mod query;
mod request;
mod server;
mod site;
mod snapshots;
mod socket;
mod space;
mod token;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::terminal;
use crate::text::json;
use crate::values::pool;
use clap::Args;
use serde::Serialize;
use server::Server;
use site::Site;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use token::Token;

/// Show a pool in a browser: objects, space, snapshots, types
///
/// Prints the address of a page, and serves it until Ctrl-C. The pool is opened for reading only,
/// and no locks are taken: no process is delayed. The page follows changes, and goes on trying if
/// the pool is damaged, replaced or removed. Browsers on this machine alone reach it; the random
/// token in its address keeps other users out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo inspect data.pmo
  pmo inspect data.pmo --listen 127.0.0.1:8080
  ssh -L 8080:127.0.0.1:8080 server pmo inspect data.pmo --listen 127.0.0.1:8080    from afar

JSON: {\"url\":\"http://127.0.0.1:40123/?token=…\"}")]
pub struct Inspect {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Listen at this address; port 0 is a free one. The connection is not encrypted
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[derive(Serialize)]
struct Listening {
    url: String,
}

pub fn run(context: &Context, args: &Inspect) -> Result {
    drop(context.look(&args.pool)?);
    let failed = |error| {
        let help = "choose another address or port of this machine, or leave --listen out";
        Failure::new(Exit::Failed, format!("cannot listen at {}: {error}", args.listen), help)
    };
    let listener = TcpListener::bind(args.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let token = Token::new().map_err(failed)?;
    if !address.ip().is_loopback() {
        terminal::note(&format!(
            "other machines can reach {address}; the token and all names travel unencrypted"
        ));
    }
    let url = format!("http://{address}/?token={}", token.text());
    let mut out = Out::new();
    match context.json {
        true => out.line(&json(&Listening { url })?)?,
        false => out.line(&url)?,
    }
    out.finish()?;
    Server::new(listener, address, token, Site::new(context.options.clone(), &args.pool)).serve()
}
