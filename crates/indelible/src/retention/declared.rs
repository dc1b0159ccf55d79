//! The types of a program's roots as text, for tools without them.

use crate::collections::RootTypes;
use std::fmt::Write;

impl RootTypes<'_> {
    /// The roots and their types' descriptions as JSON, for `pmo migrate --plan`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("types.json");
    /// use indelible::collections::{PHashMap, PString, PVec, RootTypes};
    ///
    /// let types = RootTypes::new().root::<PVec<u64>>("visits").root::<PHashMap<PString, u64>>("words");
    /// std::fs::write(path, types.to_json())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = "{\n  \"version\": 1,\n  \"roots\": [".to_owned();
        for (number, (name, described)) in self.described().enumerate() {
            let info = described.info();
            out.push_str(if number == 0 { "\n" } else { ",\n" });
            let fields = [("name", name), ("type", info.name), ("description", info.layout)];
            let fields: Vec<String> =
                fields.into_iter().map(|(field, text)| format!("\"{field}\": {}", quoted(text))).collect();
            let _ = write!(out, "    {{{}}}", fields.join(", "));
        }
        out.push_str("\n  ]\n}\n");
        out
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_roots_may_have_any_characters() {
        assert_eq!(quoted("a \"b\" \\ \n ü \u{7f}"), "\"a \\\"b\\\" \\\\ \\u000a ü \u{7f}\"");
        let types = RootTypes::new().root::<u64>("a\"b").root::<[u8; 3]>("c");
        assert_eq!(
            types.to_json(),
            "{\n  \"version\": 1,\n  \"roots\": [\n    \
             {\"name\": \"a\\\"b\", \"type\": \"u64\", \"description\": \"u64 \"},\n    \
             {\"name\": \"c\", \"type\": \"[u8; 3]\", \"description\": \"[3] u8 \"}\n  ]\n}\n"
        );
        assert_eq!(RootTypes::new().to_json(), "{\n  \"version\": 1,\n  \"roots\": [\n  ]\n}\n");
    }
}
