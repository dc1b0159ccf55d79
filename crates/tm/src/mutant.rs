//! Rules broken on request, to prove that tests notice: with the feature `mutants`,
//! `INDELIBLE_TM_MUTANT` names one.

/// Lists each mutant once: its name, and the rule it breaks.
macro_rules! mutants {
    ($($(#[doc = $rule:literal])+ $name:ident,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Mutant {
            $($(#[doc = $rule])+ $name,)+
        }

        #[cfg(feature = "mutants")]
        fn selected() -> Option<Mutant> {
            static SELECTED: std::sync::OnceLock<Option<Mutant>> = std::sync::OnceLock::new();
            *SELECTED.get_or_init(|| match std::env::var("INDELIBLE_TM_MUTANT").ok()?.as_str() {
                $(stringify!($name) => Some(Mutant::$name),)+
                other => {
                    eprintln!("libpmo-tm: there is no mutant {other}");
                    std::process::abort()
                }
            })
        }
    };
}

mutants! {
    /// Undo actions are not called.
    UndoActionsForgotten,
    /// Callee-saved registers are not restored for a rerun.
    RegistersNotRestored,
    /// The block's own frames are accessed by its transaction, and stored to when dead.
    DeadFramesWritten,
    /// A cancelled inner block keeps its transaction's changes.
    CheckpointIgnored,
    /// An undone block keeps its stores in place.
    PlainStoresKept,
    /// A commit stores whole words, with unchanged neighbours.
    WholeWordsStored,
}

impl Mutant {
    #[inline(always)]
    pub(crate) fn is_on(self) -> bool {
        #[cfg(feature = "mutants")]
        return selected() == Some(self);
        #[cfg(not(feature = "mutants"))]
        {
            let _ = self;
            false
        }
    }
}
