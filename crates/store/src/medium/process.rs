//! Processes, to be shown to people.

/// A process as the machine shows it, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its ID, in the pid namespace of the process that asked.
    pub pid: u32,
    /// The name of its program, padded with zeros; none where it is not known.
    pub name: [u8; 16],
    /// Whether it is stopped, by SIGSTOP or a debugger: it gives no lock up before it goes on.
    pub stopped: bool,
    /// Whether it was killed or is exiting: its locks go as soon as the kernel has ended it.
    pub ending: bool,
}

impl Process {
    /// A process of which nothing else is known.
    #[must_use]
    pub fn new(pid: u32) -> Process {
        Process { pid, ..Process::default() }
    }

    /// The name of its program, as far as it is known.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        let name = String::from_utf8_lossy(&self.name[..end]);
        let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        (end > 0).then(|| name.chars().map(shown).collect())
    }
}
