use std::io;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MappingError {
    #[error("the address range {addr:#x}..{:#x} is taken by {occupant}", addr + len)]
    Occupied { addr: usize, len: usize, occupant: String },
    #[error("the address range {addr:#x} + {len} bytes cannot be mapped: {why}")]
    Range { addr: usize, len: usize, why: &'static str },
    #[error("cannot map {len} bytes at {addr:#x}: {source}")]
    Io { addr: usize, len: usize, source: io::Error },
}

pub(super) fn occupant(addr: usize, len: usize) -> String {
    std::fs::read_to_string("/proc/self/maps")
        .ok()
        .and_then(|maps| find(&maps, addr, addr.saturating_add(len)))
        .unwrap_or_else(|| "another mapping".into())
}

fn find(maps: &str, start: usize, end: usize) -> Option<String> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let from = usize::from_str_radix(from, 16).ok()?;
        let to = usize::from_str_radix(to, 16).ok()?;
        if from >= end || to <= start {
            return None;
        }
        let name = rest.splitn(5, ' ').nth(4).unwrap_or("").trim_start();
        let name = if name.is_empty() { "anonymous memory" } else { name };
        Some(format!("{name} ({from:#x}..{to:#x})"))
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_first_overlapping_line_is_named() {
        let maps = "1000-2000 r--p 00000000 fe:00 17                         /usr/lib/a b.so\n\
                    2000-3000 rw-p 00000000 00:00 0 \n\
                    5000-6000 rw-p 00000000 00:00 0                          [heap]\n";
        assert_eq!(find(maps, 0x1800, 0x1900).as_deref(), Some("/usr/lib/a b.so (0x1000..0x2000)"));
        assert_eq!(find(maps, 0x2000, 0x5000).as_deref(), Some("anonymous memory (0x2000..0x3000)"));
        assert_eq!(find(maps, 0x5fff, 0x6000).as_deref(), Some("[heap] (0x5000..0x6000)"));
        assert_eq!(find(maps, 0x3000, 0x5000), None);
        assert_eq!(find("nonsense\n", 0, 1), None);
    }
}
