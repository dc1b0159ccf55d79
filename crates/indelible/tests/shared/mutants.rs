//! Mutants of shared objects, and the tests that must notice them (feature `__mutants`).
#![cfg(feature = "__mutants")]

crate::watches! {
    SHARED:
    DeadProducerKept: deaths::s2_27_a_message_whose_producer_died_in_it_is_left_out,
        deaths::a_queue_that_dead_producers_filled_is_free_again;
    WakeLost: queue::a_message_wakes_the_consumer,
        queue::a_message_that_is_taken_wakes_producers;
    AcknowledgedEarly: log::a_psync_that_fails_acknowledges_nothing,
        log::a_psync_that_meets_a_failing_medium_acknowledges_nothing;
    CompletionUnmarked: exchange::a_request_whose_server_died_behind_its_completion_is_completed_once,
        exchange::an_exchange_that_dead_servers_filled_goes_on;
}
