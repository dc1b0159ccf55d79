//! Parts of a pool.

/// Damaged part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Both superblock slots.
    Superblock,
    /// The table root page.
    Root,
    /// A node of a table tree.
    Node,
    /// A table entry.
    Entry,
    /// The progress line of a table entry.
    Progress,
    /// The lane directory.
    LaneDirectory,
    /// A lane's header.
    LaneHeader,
    /// A record of a lane.
    Record,
    /// An object's list of ties.
    Ties,
    /// Free space.
    FreeSpace,
    /// Contents of an object whose ID is their hash.
    Content,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Superblock => "superblock",
            Part::Root => "table root",
            Part::Node => "table tree node",
            Part::Entry => "table entry",
            Part::Progress => "progress line of a table entry",
            Part::LaneDirectory => "lane directory",
            Part::LaneHeader => "lane header",
            Part::Record => "lane record",
            Part::Ties => "list of ties",
            Part::FreeSpace => "free space",
            Part::Content => "content of an object",
        })
    }
}
