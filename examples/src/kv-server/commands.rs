use crate::call::Command;
use crate::{hashes, keys, lists, session, sorted, strings};
use std::collections::HashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<HashMap<&'static [u8], &'static Command>> = LazyLock::new(|| {
    let all = [
        strings::COMMANDS,
        hashes::COMMANDS,
        lists::COMMANDS,
        sorted::COMMANDS,
        sorted::RANGES,
        keys::COMMANDS,
        session::COMMANDS,
    ];
    all.into_iter().flatten().map(|command| (command.name.as_bytes(), command)).collect()
});

/// Ignores case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut upper = [0; 24];
    let upper = upper.get_mut(..name.len())?;
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    TABLE.get(&*upper).copied()
}
