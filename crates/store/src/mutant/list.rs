//! The list of mutants, as types and functions.

/// Lists each mutant once, in its group: its name, and the rule it breaks.
macro_rules! mutants {
    ($($(#[doc = $what:literal])+ $group:ident { $($(#[doc = $rule:literal])+ $name:ident,)+ })+) => {
        /// One rule, broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutant {
            $($($(#[doc = $rule])+ $name,)+)+
        }

        #[cfg(feature = "__mutants")]
        impl Mutant {
            $($(#[doc = $what])+ pub const $group: &[Mutant] = &[$(Mutant::$name,)+];)+

            /// All of them.
            fn all() -> impl Iterator<Item = Mutant> {
                [$(Mutant::$group,)+].concat().into_iter()
            }

            /// The rule it breaks.
            #[must_use]
            pub fn rule(self) -> &'static str {
                match self {
                    $($(Mutant::$name => concat!($($rule,)+).trim_ascii(),)+)+
                }
            }
        }
    };
}
