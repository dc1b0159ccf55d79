//! Reports readiness to the service manager.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `READY=1` to the socket in `NOTIFY_SOCKET`, if set.
///
/// # Errors
/// The socket does not exist.
pub fn ready() -> std::io::Result<()> {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Ok(()) };
    let address = match name.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(&name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1\n", &address).map(drop)
}
