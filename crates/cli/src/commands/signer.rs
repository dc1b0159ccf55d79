use crate::context::Context;
use crate::ends::Ends;
use crate::failure::{Result, object};
use crate::out::{confirm, show};
use crate::sealing::SealArgs;
use crate::signing::sign_key;
use clap::Args;
use std::path::PathBuf;

/// Show the verify key of a sign key
///
/// It is no secret. Readers of a signed object need it, in a file, from a trusted source.
#[derive(Debug, Args)]
pub struct Verifier {
    /// The sign key
    #[arg(long, value_name = "FILE")]
    sign_key_file: PathBuf,
}

/// Sign a signed object with another key
///
/// Readers need the verify key of the new sign key from then on. An object is signed from its
/// creation on, with --sign-key-file, or never.
#[derive(Debug, Args)]
pub struct Sign {
    #[command(flatten)]
    ends: Ends,

    /// Key file that is to sign the object
    #[arg(long, value_name = "FILE")]
    new_sign_key_file: PathBuf,

    #[command(flatten)]
    seal: SealArgs,
}

pub fn verifier(context: &Context, args: &Verifier) -> Result {
    let key = sign_key(&args.sign_key_file)?.verify_key().to_string();
    show(context.json, &serde_json::json!({ "verify_key": key }), |_, out| out.line(&key))
}

pub fn sign(context: &Context, args: &Sign) -> Result {
    let (ends, seal, new) = (&args.ends, args.seal.required()?, sign_key(&args.new_sign_key_file)?);
    let key = ends.key.read()?;
    let pool = context.open(&ends.pool)?;
    pool.change_signer(&ends.name, &key, &seal, &new).map_err(|error| ends.explain(&pool, error))?;
    let verify = new.verify_key().to_string();
    confirm(context.json, &serde_json::json!({ "verify_key": verify }), |_, out| {
        out.line(&format!("{} is signed by another key now, which {verify} verifies", object(&ends.name)))
    })
}
