//! An object in a view or a security context, by ID.

use crate::failure::object;
use crate::text::hex;
use indelible::Pool;
use serde::Serialize;

/// Its name, if it exists.
#[derive(Debug, Serialize)]
pub struct Target {
    id: String,
    object: Option<String>,
}

impl Target {
    pub fn of(pool: &Pool, id: &[u8; 16]) -> Target {
        let id = hex(id);
        let object = pool.stat(&format!("id:{id}")).ok().map(|stat| stat.name);
        Target { id, object }
    }

    /// Its present name.
    pub fn name(&self) -> Option<&str> {
        self.object.as_deref()
    }

    /// For people.
    pub fn shown(&self) -> String {
        self.object.as_deref().map_or_else(|| format!("id:{}, which is not there", self.id), object)
    }
}
