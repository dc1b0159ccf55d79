//! Mutants of far pointers, and the tests that must notice them (feature `__mutants`).
#![cfg(feature = "__mutants")]

crate::watches! {
    FAR:
    FarEntryUnmarked: crash::with_explicit_tracking_entries_are_durable,
        crash::a_power_cut_finds_each_pointer_with_its_entry;
    FarEntryInUseFreed: entries::compact_takes_the_entries_that_no_pointer_needs,
        crash::a_power_cut_finds_each_pointer_with_its_entry;
    FarBeyondFollowed: spaces::pointers_that_lead_nowhere_are_errors_that_say_why,
        spaces::a_pointer_beyond_a_shorter_object_is_an_error;
    FarBesideForgotten: entries::compact_keeps_the_entries_of_arrays,
        entries::compact_keeps_entries_behind_a_root;
    SecondTypeIgnored: references::a_pointer_behind_a_second_type_is_judged,
        entries::compact_keeps_the_entries_of_a_second_type;
    FarCacheKept: graph::s2_10_one_entry_retargets_all_pointers_through_it,
        names::s2_10_an_entry_with_a_name_gets_an_id_and_back;
    FarClosureShort: closure::objects_are_reached_through_any_number_of_others,
        closure::a_whole_list_is_reached_from_its_first_object;
    FarEntryShared: graph::s2_10_later_pointers_do_not_share_a_retargeted_entry,
        graph::s2_10_a_private_entry_is_retargeted_alone;
    DeniedAttached: contexts::s2_15_a_denied_load_attaches_nothing,
        contexts::s2_15_a_denied_store_attaches_nothing;
}
