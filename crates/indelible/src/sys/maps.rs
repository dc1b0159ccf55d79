//! The mappings of this process, as /proc/self/maps lists them.

use std::io;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) range: Range<usize>,
    pub(crate) readable: bool,
    pub(crate) executable: bool,
    pub(crate) name: String,
}

pub(crate) fn mapped() -> io::Result<Vec<Mapped>> {
    Ok(std::fs::read_to_string("/proc/self/maps")?.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Mapped> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    // Permissions, offset, device and inode precede the name, which may contain blanks.
    let mut parts = rest.splitn(5, ' ');
    let permissions = parts.next()?;
    let name = parts.nth(3).unwrap_or("").trim_start();
    Some(Mapped {
        range: address(from)?..address(to)?,
        readable: permissions.starts_with('r'),
        executable: permissions.contains('x'),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Mapped, mapped, parse};

    #[test]
    fn a_line_has_range_permissions_and_name() {
        let line = "1000-2000 r-xp 00000000 fe:00 17                         /usr/lib/a b.so";
        let expected = Mapped {
            range: 0x1000..0x2000,
            readable: true,
            executable: true,
            name: "/usr/lib/a b.so".into(),
        };
        assert_eq!(parse(line), Some(expected));
        let line = "5000-6000 ---p 00000000 00:00 0 ";
        let expected =
            Mapped { range: 0x5000..0x6000, readable: false, executable: false, name: String::new() };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn this_function_lies_in_the_program() {
        let here = this_function_lies_in_the_program as fn() as usize;
        let found = mapped().unwrap().into_iter().find(|mapped| mapped.range.contains(&here)).unwrap();
        assert!(found.executable && found.readable, "{found:?}");
        assert_eq!(std::path::Path::new(&found.name), std::env::current_exe().unwrap());
    }
}
