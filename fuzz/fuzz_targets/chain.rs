//! Stores of others to chains of extensions: see
//! `crates/indelible/tests/retention/hostile_chains.rs`.
#![no_main]

#[path = "../../crates/indelible/tests/retention/hostile_chains.rs"]
mod hostile_chains;

libfuzzer_sys::fuzz_target!(
    init: {
        // Else each panic that refuses damage would end the process; an uncaught one still ends it.
        let end = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !hostile_chains::is_guarded() {
                end(panic);
            }
        }));
    },
    |input: &[u8]| hostile_chains::run(input)
);
