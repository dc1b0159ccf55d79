//! Interrupted backups: their whole records prove themselves, and get an end that marks the
//! interruption.

use crate::decode::Decoder;
use crate::encode::end_early;
use crate::error::{BackupError, Result};
use crate::format::BUFFER;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether another backup can continue a failed one's file.
pub(crate) fn is_of_use(path: &Path) -> bool {
    let opened = File::open(path).map(|file| BufReader::with_capacity(BUFFER, file));
    let mut decoder = opened.ok().and_then(|file| Decoder::open(file, path).ok());
    decoder.as_mut().is_some_and(|decoder| matches!(decoder.chunk(), Ok(Some(_))))
}

/// Ends the file after its last whole record. `false`: it is useless, of another pool, rests on
/// another backup although a `full` one is needed, or has a name already.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn close(path: &Path, pool: &[u8; 16], full: bool) -> Result<bool> {
    let failed = |action| BackupError::file(action, path);
    let file = File::open(path).map_err(failed("open"))?;
    if file.metadata().map_err(failed("open"))?.nlink() > 1 {
        // Its process died after naming it. It stays unchanged.
        return Ok(false);
    }
    let Ok(mut decoder) = Decoder::open(BufReader::with_capacity(BUFFER, file), path) else {
        return Ok(false);
    };
    if decoder.header.pool != *pool || full && decoder.header.depth.get() > 0 {
        return Ok(false);
    }
    let mut position = decoder.position();
    while let Ok(Some(_)) = decoder.chunk() {
        position = decoder.position();
    }
    let (at, last, chunks) = position;
    if chunks == 0 {
        return Ok(false);
    }
    // A finished, unnamed backup is of a past moment: it gets another end.
    let mut file = OpenOptions::new().write(true).open(path).map_err(failed("open"))?;
    let closed = file
        .set_len(at)
        .and_then(|()| file.seek(SeekFrom::Start(at)))
        .and_then(|_| file.write_all(&end_early(&last, chunks)))
        .and_then(|()| file.sync_all());
    closed.map_err(failed("write"))?;
    Ok(true)
}
