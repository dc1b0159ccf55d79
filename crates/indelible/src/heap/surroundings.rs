//! The address space around an object: the program, libraries, memory, other objects.

use crate::shadow::attached;
use crate::sys::PAGE;
use crate::sys::loaded::segments;
use crate::sys::maps::{Mapped, mapped};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

/// Addresses that a psync searches for before anything is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// None.
    #[default]
    Off,
    /// Those of the program, its libraries and its memory.
    Process,
    /// Also those of other attached objects.
    Everything,
}

impl Audit {
    pub(crate) const ALL: [Audit; 3] = [Audit::Off, Audit::Process, Audit::Everything];
}

/// Kinds of memory outside of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outside {
    /// The program's file: functions, constants, static variables.
    Program,
    /// A library, or memory that the kernel maps for all programs.
    Library,
    /// The main thread's stack.
    Stack,
    /// The process's memory: malloc, threads' stacks, mapped files.
    Memory,
    /// Another attached object.
    Object,
}

struct Region {
    range: Range<u64>,
    into: Outside,
    name: String,
}

/// Disjoint, in address order.
pub(super) struct Surroundings(Vec<Region>);

impl Surroundings {
    pub(super) fn of(own: usize, objects: bool) -> io::Result<Surroundings> {
        let attached = attached();
        let mapped = mapped()?;
        let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
        let mut all = regions(&mapped, &program, &segments());
        let of_an_object = |region: &Region| {
            let overlaps = |(range, _): &(Range<u64>, String)| {
                range.start < region.range.end && region.range.start < range.end
            };
            attached.iter().any(overlaps)
        };
        all.retain(|region| !of_an_object(region));
        let others = attached.iter().filter(|(range, _)| objects && range.start != own as u64);
        all.extend(others.map(|(range, name)| Region {
            range: range.clone(),
            into: Outside::Object,
            name: name.clone(),
        }));
        all.sort_by_key(|region| region.range.start);
        Ok(Surroundings(all))
    }

    pub(super) fn find(&self, address: u64) -> Option<(Outside, &str)> {
        let after = self.0.partition_point(|region| region.range.start <= address);
        let region = &self.0[after.checked_sub(1)?];
        (address < region.range.end).then_some((region.into, region.name.as_str()))
    }
}

fn regions(mapped: &[Mapped], program: &str, segments: &[Range<usize>]) -> Vec<Region> {
    let libraries: BTreeSet<&str> =
        mapped.iter().filter(|mapped| mapped.executable).map(|mapped| mapped.name.as_str()).collect();
    let mut all: Vec<Region> = Vec::new();
    for Mapped { range, readable, name, .. } in mapped {
        let mut range = range.start as u64..range.end as u64;
        let (into, name) = match name.as_str() {
            "[stack]" => (Outside::Stack, ""),
            "[heap]" => (Outside::Memory, ""),
            // Zero-initialized static variables lie behind the file's own, up to their segment's
            // end.
            "" => match all.last() {
                Some(Region { range: before, into: into @ (Outside::Program | Outside::Library), name })
                    if before.end == range.start =>
                {
                    let (into, name) = (*into, name.clone());
                    let end = end_of(segments, range.start as usize).min(range.end);
                    if *readable && end > range.start {
                        all.push(Region { range: range.start..end, into, name });
                        range.start = end;
                    }
                    (Outside::Memory, "")
                }
                _ => (Outside::Memory, ""),
            },
            path if path == program => (Outside::Program, path),
            path if libraries.contains(path) || path.starts_with("[v") => (Outside::Library, path),
            path => (Outside::Memory, path),
        };
        // An unreadable range is reserved for growth, or lies between two used ones.
        if *readable && !range.is_empty() {
            let name = name.to_owned();
            all.push(Region { range, into, name });
        }
    }
    all
}

fn end_of(segments: &[Range<usize>], address: usize) -> u64 {
    let segment = segments.iter().find(|segment| segment.contains(&address));
    segment.map_or(0, |segment| segment.end.next_multiple_of(PAGE) as u64)
}

#[cfg(test)]
mod tests {
    use super::{Mapped, Outside, Surroundings, regions};

    #[test]
    fn mappings_are_of_the_program_its_libraries_or_its_memory() {
        let map = |start: usize, rights: &str, name: &str| Mapped {
            range: start..start + 0x1000,
            readable: rights.contains('r'),
            executable: rights.contains('x'),
            name: name.into(),
        };
        let mapped = [
            map(0x1000, "rx", "/bin/program"),
            map(0x2000, "r", "/bin/program"),
            Mapped { range: 0x3000..0x4800, ..map(0x3000, "r", "") },
            map(0x5000, "r", ""),
            map(0x6000, "r", "[heap]"),
            map(0x7000, "rx", "/lib/library"),
            map(0x8000, "r", "/lib/library"),
            map(0x9000, "r", ""),
            map(0xb000, "r", "/some/file"),
            map(0xc000, "", ""),
            map(0xd000, "r", "[stack]"),
            map(0xe000, "rx", "[vdso]"),
        ];
        let all = Surroundings(regions(&mapped, "/bin/program", &[0x2000..0x3010, 0x8000..0x8100]));
        let expected = [
            (0x0fff, None),
            (0x1000, Some((Outside::Program, "/bin/program"))),
            (0x3fff, Some((Outside::Program, "/bin/program"))),
            (0x4000, Some((Outside::Memory, ""))),
            (0x4800, None),
            (0x5000, Some((Outside::Memory, ""))),
            (0x6008, Some((Outside::Memory, ""))),
            (0x8000, Some((Outside::Library, "/lib/library"))),
            (0x9000, Some((Outside::Memory, ""))),
            (0xa000, None),
            (0xb000, Some((Outside::Memory, "/some/file"))),
            (0xc000, None),
            (0xd000, Some((Outside::Stack, ""))),
            (0xe000, Some((Outside::Library, "[vdso]"))),
            (u64::MAX, None),
        ];
        for (address, expected) in expected {
            assert_eq!(all.find(address), expected, "{address:#x}");
        }
    }
}
