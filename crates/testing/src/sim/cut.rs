use super::blocks::Blocks;
use super::choice::Choice;
use super::config::SimConfig;
use super::pages::Pages;
use std::fmt;

/// Moment and choice of a power cut, which reproduce the image
/// ([`SimMedium::crash_at`](super::SimMedium::crash_at)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub before: u64,
    pub choice: Choice,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cut {{ before: {}, choice: {:?} }}", self.before, self.choice)
    }
}

#[derive(Clone)]
pub struct CrashImage {
    pub(super) contents: Pages,
    pub(super) blocks: Blocks,
    pub(super) len: u64,
    pub(super) config: SimConfig,
    pub(super) cut: Cut,
    pub(super) marks: Vec<u64>,
}

impl CrashImage {
    #[must_use]
    pub fn cut(&self) -> Cut {
        self.cut.clone()
    }

    #[must_use]
    pub fn marks(&self) -> &[u64] {
        &self.marks
    }

    #[must_use]
    pub fn last_mark(&self) -> Option<u64> {
        self.marks.last().copied()
    }

    #[must_use]
    pub fn digest(&self) -> u64 {
        self.contents.digest()
    }
}

impl fmt::Debug for CrashImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "image of {} (marks {:?}, digest {:016x})", self.cut, self.marks, self.digest())
    }
}
