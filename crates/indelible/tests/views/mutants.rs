//! Mutants of views, and the tests that must notice them (feature `__mutants`).
#![cfg(feature = "__mutants")]

crate::watches! {
    VIEWS:
    SlotRightsIgnored: touching::s2_15_a_slot_has_the_rights_that_it_asks_for,
        adopting::s2_06_changed_rights_and_objects_are_adopted;
    ViewAdoptedInUse: adopting::s2_07_a_fault_takes_nothing_away,
        adopting::s2_07_an_emptied_slot_goes_on_until_it_is_adopted;
    ContextIgnored: contexts::s2_15_nothing_is_refused_before_it_is_used,
        contexts::s2_16_masks_limit_what_a_context_gives;
    MaskIgnored: contexts::s2_16_masks_limit_what_a_context_gives,
        contexts::s2_16_rights_are_those_of_the_formula;
    RevokedKept: contexts::s2_16_a_right_that_is_revoked_while_in_use_goes_with_adopt,
        contexts::s2_16_a_context_that_is_lost_while_in_use_gives_nothing;
    AllContextsEntered: switched::s2_16_a_thread_may_be_within_several_contexts,
        switched::s2_16_classes_are_as_each_context_says;
    NewPagesOpen: switched::s2_16_pages_that_come_later_are_of_the_class,
        switched::s2_16_a_heap_that_grows_stays_of_its_class;
    GuardRestores: switched::s2_16_guards_are_dropped_in_any_order,
        switched::s2_16_guards_at_random_give_what_is_left;
}
