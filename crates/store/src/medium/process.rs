/// A process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// ID in the asking process's pid namespace.
    pub pid: u32,
    /// Name of its program, zero-padded; zeros: unknown.
    pub name: [u8; 16],
    /// Whether it is stopped and keeps its locks.
    pub stopped: bool,
    /// Whether it was killed or is exiting.
    pub ending: bool,
}

impl Process {
    /// A process with only its ID known.
    #[must_use]
    pub fn new(pid: u32) -> Process {
        Process { pid, ..Process::default() }
    }

    /// Name of its program, if known.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        let name = String::from_utf8_lossy(&self.name[..end]);
        let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        (end > 0).then(|| name.chars().map(shown).collect())
    }
}
