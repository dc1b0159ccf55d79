//! Mutants of data retention, and the tests that must notice them (feature `__mutants`).
#![cfg(feature = "__mutants")]

crate::watches! {
    RETENTION:
    NestingIgnored: histories::generated_histories_open_as_their_own_type_or_fail_by_name,
        record_histories::records_of_generated_histories_have_their_values_in_each_version;
    OrderIgnored: differences::s4_03_each_change_of_a_struct_names_its_first_field,
        record_histories::records_of_generated_histories_have_their_values_in_each_version,
        extensions_hostile::an_extension_of_another_type_is_an_error_that_shows_the_programs;
    ExtensionTypeIgnored: extensions_hostile::an_extension_of_another_type_is_an_error_that_shows_the_programs,
        extensions_histories::values_of_generated_histories_are_right_in_programs_of_each_version;
    ExtensionLinkedFirst: extensions::an_initial_value_that_panics_leaves_the_value_as_it_was;
    ExtensionUngated: extensions_gate::a_cut_has_an_extension_and_the_link_to_it_or_neither,
        extensions_by_address::a_cut_by_address_has_an_extension_and_the_link_to_it_or_neither;
    ExtensionUnmarked: extensions::with_explicit_tracking_extensions_are_durable;
    LoserKept: extensions::the_loser_of_a_race_frees_its_block_and_uses_the_winners;
    LaterLinkWins: extensions::the_loser_of_a_race_frees_its_block_and_uses_the_winners;
    CopyCutShort: extensions::s4_05_programs_of_all_versions_use_the_same_data,
        extensions_histories::values_of_generated_histories_are_right_in_programs_of_each_version;
    ChainKept: extensions::s4_05_programs_of_all_versions_use_the_same_data,
        extensions_histories::values_of_generated_histories_are_right_in_programs_of_each_version,
        extensions::s4_09_a_copy_is_deep_and_freeing_a_value_frees_its_chain;
    ChainUnwalked: extensions::s4_08_items_are_extended_one_by_one_across_runs;
    OldFreedFirst: convert::the_old_value_is_dropped_once_after_the_new_one_is_in_its_place;
    ResetLeaks: reset::s4_02_a_reset_frees_all_that_the_old_value_owns_and_nothing_else;
    ElementSkipped: steps::a_converter_that_fails_stops_a_migration_at_its_element;
}
