//! What a campaign found, in the form that `pmo-evidence report` reads.

use crate::steps::Result;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Below the build folder, as it belongs to one tree and one machine.
pub(crate) fn build_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// Leaves the record of a run of a layer that began at `begin`.
pub(crate) fn save(
    layer: &str,
    long: bool,
    command: &str,
    begin: Instant,
    counts: &BTreeMap<String, u64>,
) -> Result {
    let mode = if long { "long" } else { "short" };
    let record = json!({
        "layer": layer,
        "mode": mode,
        "command": command,
        "seed": 0,
        "seconds": begin.elapsed().as_secs_f64(),
        "counts": counts,
        "caught": [],
        "missed": [],
    });
    let folder = build_folder().join("evidence");
    let path = folder.join(format!("{layer}-{mode}.json"));
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    std::fs::write(&path, format!("{record:#}\n")).map_err(|error| format!("{}: {error}", path.display()))
}
