//! Rules broken on request, to prove that the tests see them. Without the feature `mutants`, which
//! nothing but tests uses, none is ever on and the compiler drops the places that ask. With it the
//! variable `INDELIBLE_TM_MUTANT` of the environment names the one that is.

/// Lists each mutant once: its name, and the rule it breaks.
macro_rules! mutants {
    ($($(#[doc = $rule:literal])+ $name:ident,)+) => {
        /// One rule, broken.
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
    /// Actions that undo what a block did are not called.
    UndoActionsForgotten,
    /// Registers that a function keeps for its caller are not put back when a block begins again.
    RegistersNotRestored,
    /// Frames of the block's own are accessed by its transaction, and stored to when they are no
    /// more.
    DeadFramesWritten,
    /// A cancel of an inner block keeps what its transaction changed.
    CheckpointIgnored,
    /// A block that is undone keeps what it stored in place.
    PlainStoresKept,
    /// A commit stores words whole, with neighbours that the block did not change.
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
