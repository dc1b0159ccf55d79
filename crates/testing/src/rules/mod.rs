//! Scenarios for single rules of the protocol: each passes, and fails once a rule that it watches
//! is broken.
//!
//! `crates/store/tests/mutants.rs` runs each as a test, `pmo-evidence mutants` each against its
//! mutants (column `tests`).

mod anchors;
mod arrivals;
mod bases;
mod beside;
mod blocks;
mod chains;
mod commits;
mod directories;
mod dropped;
mod dying;
pub mod errors;
mod following;
mod identities;
mod in_use;
mod joined;
mod lanes;
mod later;
mod length;
mod lives;
mod looking;
mod lost;
mod moved;
mod on_demand;
mod ranges;
mod reading;
mod recovery;
mod removal;
mod repairs;
mod rotation;
mod sealed_bases;
mod sealed_sizes;
mod sealing;
mod signatures;
mod spilled;
mod still;
mod table;
mod ties;
mod transactions;
mod united;

pub use dropped::whenever_pages_are_dropped;
pub use recovery::{dead, found, psync_both, void_table_lane};
pub use repairs::new_is_zero;

use crate::pool::process;
use crate::scenario::{Scenario, crash_everywhere, formatted};
use crate::sim::{Discard, Limits, SMALL, SimConfig, SimMedium, TearUnit};
use indelible_store::Mutant;
use indelible_store::error::Result;
use indelible_store::store::Store;
use indelible_store::table::{CreateOptions, Key};
use std::sync::Arc;

pub type Verdict = std::result::Result<(), String>;

#[derive(Clone, Copy)]
pub struct RuleTest {
    pub name: &'static str,
    pub watches: &'static [Mutant],
    pub run: fn() -> Verdict,
}

macro_rules! rule_tests {
    ($($module:ident::$name:ident => $($mutant:ident)|+;)+) => {
        pub const RULE_TESTS: &[RuleTest] = &[$(RuleTest {
            name: stringify!($name),
            watches: &[$(Mutant::$mutant),+],
            run: $module::$name,
        },)+];

        /// Makes a test of each scenario; the test calls `$check` with its name.
        #[macro_export]
        macro_rules! test_every_rule {
            ($check:path) => {
                $(#[test]
                fn $name() {
                    $check(stringify!($name));
                })+
            };
        }
    };
}

rule_tests! {
    commits::psyncs_and_a_checkpoint =>
        ApplyFirst | ShortChecksum | AnyGeneration | EarlyCheckpoint | ApplyForgotten;
    commits::psyncs_in_pieces => ApplyPiecesFirst | PiecesNotDurable;
    commits::detach_forgets_what_waits_in_memory => ApplyForgotten;
    commits::sequence_ignored => AnySequence;
    commits::progress_forgotten => ProgressForgotten;
    commits::a_direct_write_that_never_ended_is_logged => OpenDirectPublished;
    commits::intent_ignored => IntentIgnored;
    later::an_object_of_a_later_release_is_left_alone => UnknownUsed;
    later::a_section_of_a_later_release_refuses_its_lane => UnknownUsed;
    joined::batches_of_one_write_state_the_same_watermark => WatermarkAhead;
    joined::a_torn_write_of_several_batches_is_no_damage => WatermarkAhead;
    lanes::lane_forgotten => LaneForgotten;
    lanes::an_object_moves_once_its_primary_is_durable => UnsettledMove;
    lanes::binding_ignored => BindingIgnored;
    lanes::visible_taken_for_durable => VisibleIsDurable;
    lanes::a_checkpoint_that_failed_leaves_the_generation_known => GenerationUnstated;
    lanes::a_lane_that_nobody_could_take_over_leaves_the_generation_known => GenerationUnstated;
    lanes::an_empty_lane_whose_checkpoint_failed_is_taken_over => SureCopyRisked;
    lanes::an_empty_lane_whose_holders_died_is_taken_over => SureCopyRisked;
    lanes::each_process_has_a_lane_of_its_own => LaneUnclaimed;
    still::a_psync_waits_for_who_holds_its_object_still => HoldIgnored;
    still::a_growth_waits_for_who_holds_its_object_still => HoldIgnored;
    table::table_applied_before_it_is_published => TableFirst;
    table::superblock_before_the_table => SuperblockFirst;
    table::destroyed_space_not_zeroed => NoZeroing;
    spilled::names_of_many_objects_change_as_one_step_wherever_it_ends => SpillUnproven;
    spilled::snapshots_of_many_objects_are_one_step_wherever_it_ends => SpillUnproven | SpillKept;
    length::a_full_pool_on_a_disk_becomes_longer => LengthAhead;
    length::a_full_pool_in_memory_becomes_longer => LengthAhead;
    length::a_pool_on_a_disk_becomes_longer_after_a_failure => SureSlotRisked;
    length::a_pool_in_memory_becomes_longer_after_a_failure => SureSlotRisked;
    length::bytes_behind_a_pool_are_in_no_object => SurplusIsZero;
    length::bytes_behind_a_pool_are_in_no_sparse_object => SurplusIsZero;
    reading::nodes_kept_although_another_process_changed_them => NodesKept;
    reading::read_unchecked => ReadUnchecked;
    reading::read_unchecked_object => ReadUnchecked;
    recovery::recovery_voids_before_its_replay_is_durable => EarlyVoid;
    recovery::an_unreadable_entry_is_not_taken_for_destroyed => UnreadIsAbsent;
    recovery::an_applied_psync_is_not_undone => AppliedIgnored;
    recovery::one_wrong_bit_is_no_torn_batch => BitIgnored;
    recovery::batches_say_which_generation_is_current => CopiesAlone;
    recovery::a_refused_lane_blocks_nobody_else => RefusedBlocksAll | DamageIgnored;
    repairs::a_repair_says_where_it_builds => UnsaidSite;
    repairs::objects_the_table_lost_count_as_written => UnwrittenKept;
    bases::first_changes_keep_the_rest_of_their_pages => PageInPart | PageUnclaimed;
    bases::first_changes_are_whole_after_a_power_cut => PageInPart | PageUnclaimed;
    bases::first_changes_in_memory_are_whole_after_a_power_cut => PageInPart | PageUnclaimed | PageUnproven;
    bases::first_changes_of_several_pages_in_memory_are_whole_after_a_power_cut => PageInPart | PageUnproven;
    bases::a_base_outlives_the_first_of_its_users => BaseFreed;
    bases::a_copy_is_there_with_its_progress => BaseUnproven;
    bases::a_rollback_is_whole_after_a_power_cut => BaseUnproven | BitmapGivenUp;
    bases::whoever_rolls_back_may_die => BitmapGivenUp;
    ranges::an_object_of_ranges_is_whole_after_a_power_cut => RangeUnclaimed | RevivedUnproven;
    ranges::an_object_of_ranges_is_whole_wherever_its_maker_dies => RangeUnclaimed;
    moved::an_object_that_has_come_is_whole_after_a_power_cut => RevivedUnproven;
    moved::an_object_is_in_one_of_two_pools_wherever_the_move_ends => RevivedUnproven;
    arrivals::objects_that_come_together_are_there_together_after_a_power_cut => ImportApart;
    arrivals::objects_that_come_together_are_there_together_wherever_it_ends => ImportApart;
    arrivals::many_objects_at_once_come_or_are_refused_as_a_whole => ImportApart;
    directories::a_directory_is_moved_whole_or_not_at_all_by_a_power_cut => DirectoryApart;
    directories::a_directory_is_moved_whole_or_not_at_all_wherever_it_ends => DirectoryApart;
    directories::a_directory_that_cannot_be_moved_stays_whole => DirectoryApart;
    arrivals::bytes_of_another_content_do_not_come => ContentUnchecked;
    arrivals::a_content_that_changed_is_found => ContentUnchecked;
    beside::a_writer_goes_on_beside_a_snapshot => BaseBehind | RevisionKept;
    beside::several_objects_are_kept_as_of_one_moment => BaseBehind | RevisionKept;
    beside::a_writer_that_dies_after_a_snapshot_is_recovered => RevisionKept;
    beside::a_snapshot_waits_for_a_direct_write => BaseUndefined;
    beside::copies_and_followers_wait_for_a_direct_write => BaseUndefined;
    chains::absorbed_pages_are_there_after_a_power_cut => AbsorbedEarly | AbsorbedUnclaimed;
    chains::merges_are_whole_after_a_power_cut => MergeUnproven | MergedUnclaimed;
    chains::bases_are_merged_beneath_a_writer => MergeUnproven | MergedUnclaimed | RevisionKept;
    chains::bases_are_absorbed_whole => AbsorbedEarly;
    dying::a_psync_stays_whose_writer_dies_before_a_base_absorbs => AbsorbedUnrecovered;
    dying::a_psync_is_whole_whose_writer_dies_before_a_base_absorbs => AbsorbedUnrecovered;
    following::readers_follow_by_the_log => TailGap | RevisionKept;
    following::readers_do_not_miss_the_last_psync => TailGap;
    united::pages_are_right_while_bases_are_absorbed => PagesLaneKept;
    united::pages_are_right_while_bases_are_merged => PagesLaneKept;
    united::pages_are_right_or_none_after_a_move_that_failed => PagesLaneKept;
    following::readers_share_a_base => BaseBehind;
    following::a_writer_that_failed_is_not_followed => FailedFollowed;
    following::a_psync_that_was_reported_as_failed_is_not_followed => FailedFollowed;
    following::a_base_that_absorbs_is_its_makers_on_a_disk => BaseSharedEarly;
    following::a_base_that_absorbs_is_its_makers_in_memory => BaseSharedEarly;
    following::no_reader_sees_a_psync_of_a_disk_early => TailUnproven;
    following::no_reader_sees_a_psync_of_memory_early => TailUnproven;
    looking::psyncs_between_the_reads_of_a_look_are_seen => LaneUnasked;
    looking::changes_of_the_object_between_the_reads_of_a_look_are_seen => TableUnasked;
    looking::a_look_without_news_costs_few_reads => LaneUnasked | TableUnasked;
    chains::the_chain_of_destroyed_snapshots_stays_short => AbsorbedUnclaimed;
    chains::the_chain_below_readers_stays_short => AbsorbedUnclaimed | RevisionKept;
    beside::whoever_makes_a_snapshot_may_die => BaseBehind | RevisionKept;
    removal::a_deleted_object_stays_with_its_writer => DeletedFreed;
    removal::a_deleted_object_goes_with_the_last_that_has_it => DeletedFreed;
    removal::deleted_and_psynced_with_a_power_cut_everywhere => DeletedFreed;
    removal::whoever_deletes_may_die => DeletedFreed;
    removal::a_volatile_object_is_gone_in_another_boot => VolatileKept;
    removal::volatile_objects_of_a_machine_that_failed_are_gone => VolatileKept;
    lives::a_tied_object_goes_with_the_thread => LifeUnlocked | TieIgnored;
    lives::a_tied_object_goes_with_the_process => LifeUnlocked | TieIgnored;
    lives::lives_end_with_a_power_cut_everywhere => TieUnproven;
    ties::a_tied_object_outlives_the_other => TieIgnored;
    ties::chains_of_ties_end_from_the_far_end => TieIgnored;
    ties::lists_are_whole_after_a_power_cut => TieUnproven;
    ties::a_tied_object_is_there_as_long_as_the_other_with_a_power_cut_everywhere => TieIgnored | TieUnproven;
    sealing::sealed_psyncs_are_whole_after_a_power_cut => RootApart | LanePlain;
    sealing::sealed_and_plain_objects_change_as_one_step => RootApart;
    sealing::a_changed_bit_is_an_error => TagUnchecked;
    sealing::pages_of_two_places_or_times_are_no_object => TagUnchecked;
    sealing::a_node_of_zeros_is_an_error => AbsentUnsealed;
    sealing::a_subtree_that_is_taken_away_is_an_error => AbsentUnsealed;
    sealing::no_nonce_comes_twice_after_a_power_cut => NonceReused;
    sealing::equal_pages_have_unequal_ciphertext => NonceReused;
    sealing::plaintext_is_nowhere_in_the_pool => LanePlain;
    sealing::pages_are_sealed_as_the_format_says => VersionUnsealed;
    sealing::nodes_are_sealed_as_the_format_says => VersionUnsealed;
    sealed_bases::several_sealed_objects_are_kept_as_of_one_moment => BaseBehind | RevisionKept;
    sealed_bases::a_sealed_object_whose_writer_dies_after_a_snapshot_is_recovered => RevisionKept;
    sealed_bases::a_process_that_makes_a_snapshot_of_a_sealed_object_may_die => BaseBehind | RevisionKept;
    sealed_bases::sealed_bases_are_merged_beneath_a_writer => MergeUnproven | MergedUnclaimed | RevisionKept;
    sealed_bases::readers_follow_a_sealed_object => TailGap | PlaintextKept;
    sealed_bases::readers_of_a_sealed_object_do_not_miss_the_last_psync => TailGap | PlaintextKept;
    sealed_bases::copies_of_a_sealed_object_do_not_mix => TagUnchecked;
    sealed_bases::no_nonce_comes_twice_in_copies_and_snapshots => NonceReused;
    sealed_bases::sealed_copies_on_a_disk_are_whole_after_a_power_cut => PageInPart | PageUnclaimed;
    sealed_bases::sealed_copies_in_memory_are_whole_after_a_power_cut => PageUnclaimed | PageUnproven;
    sealed_bases::pages_of_a_sealed_object_are_right_while_bases_are_absorbed => MovedUnseen;
    sealed_bases::pages_of_a_sealed_object_are_right_while_bases_are_merged => MovedUnseen;
    sealed_sizes::a_sealed_object_has_one_size_after_a_power_cut => SizeApart | CutKept | CutEarly;
    sealed_sizes::an_attached_sealed_object_grows_whole => SizeApart;
    sealed_sizes::a_process_that_resizes_a_sealed_object_may_die => CutKept | CutEarly;
    signatures::a_seal_key_makes_no_state_of_a_signed_object => SignatureUnchecked;
    signatures::the_signature_of_another_state_is_refused => SignatureUnchecked;
    signatures::another_page_with_the_tag_of_a_signed_one_is_refused => HashUnchecked;
    signatures::another_node_with_the_tag_of_a_signed_one_is_refused => HashUnchecked;
    signatures::signed_psyncs_are_whole_after_a_power_cut => SignatureApart;
    signatures::one_key_signs_an_object_after_a_power_cut => SignatureApart;
    identities::objects_that_were_exchanged_are_told_apart => IdentityUnchecked;
    identities::signed_objects_that_were_exchanged_are_told_apart => IdentityUnchecked;
    identities::a_copy_is_not_taken_for_its_origin => IdentityUnchecked;
    identities::a_renamed_object_has_one_of_two_names_after_a_power_cut => RenamedFirst;
    identities::an_object_whose_renamer_dies_has_one_of_two_names => RenamedFirst;
    anchors::a_complete_older_state_is_behind_its_anchor => AnchorIgnored;
    anchors::a_counted_record_is_not_put_back => CountIgnored;
    anchors::a_pool_is_not_put_back_together_with_its_counted_record => CountIgnored;
    anchors::no_change_takes_an_object_back_behind_its_anchor => AnchorIgnored | VersionRewound;
    anchors::an_anchor_is_not_ahead_after_a_power_cut => VersionRewound;
    in_use::what_memory_shows_stays_when_an_object_moves => FormerFreed;
    in_use::an_extent_that_memory_shows_is_taken => FormerFreed;
    rotation::a_rotation_is_whole_after_a_power_cut => EarlyExchange;
    rotation::the_former_key_reads_nothing => KeyKept;
    rotation::a_slot_that_is_put_back_opens_nothing => KeyKept;
    blocks::redone_blocks_keep_what_is_written => RedoUnproven;
    blocks::blocks_of_the_table_were_written_before => FirstWriteLeft;
    blocks::blocks_of_a_lane_were_written_before => FirstWriteLeft;
    blocks::space_that_failed_once_is_zeroed_before_its_use => SpaceUnproven;
    blocks::space_that_was_never_used_is_zeroed_before_its_use => SpaceUnproven;
    blocks::recycled_blocks_keep_what_is_written => SpaceUnproven;
    lost::blocks_that_are_lost_beneath_a_writer_are_mended_when_it_attaches => RedoUnproven;
    blocks::the_last_page_of_a_failed_direct_write_keeps_what_is_written => ClearedInPart;
    blocks::the_first_page_of_a_failed_direct_write_keeps_what_is_written => ClearedInPart;
    transactions::commits_are_a_prefix_after_a_power_cut =>
        CommitNotAwaited | CommitsReordered | CommitOlderLine | CommitApart;
    transactions::commits_in_memory_are_a_prefix_after_a_power_cut =>
        CommitNotAwaited | CommitsReordered | CommitOlderLine | CommitApart;
    transactions::random_commits_are_a_prefix_after_a_power_cut =>
        CommitNotAwaited | CommitsReordered | CommitOlderLine | CommitApart;
    transactions::whoever_commits_may_die => CommitNotAwaited | CommitsReordered | CommitApart;
    transactions::large_commits_get_room_first => CommitNotAwaited;
    transactions::nothing_is_acknowledged_after_a_failure => CommitFailureForgotten;
    transactions::nothing_is_committed_after_a_failure => CommitFailureForgotten;
    transactions::an_object_is_attached_by_its_class => ClassIgnored;
    transactions::a_class_is_given_to_detached_objects_alone => ClassIgnored;
    on_demand::epochs_are_a_prefix_after_a_power_cut =>
        CommitNotAwaited | CommitsReordered | CommitOlderLine | CommitApart;
    on_demand::commits_left_in_memory_come_to_the_pool_first => MemoryForgotten;
    on_demand::a_recovery_of_memory_may_die => CommitNotAwaited | MemoryForgotten;
    errors::an_error_told_to_one_lane_poisons_the_table_lane => FaultOfOneWrite;
    errors::an_error_told_to_one_lane_poisons_every_other => FaultOfOneWrite;
    errors::a_direct_write_without_proof_is_not_published => OpenDirectPublished;
    errors::a_change_made_from_dropped_pages_is_not_published => ReadingsTrusted;
    errors::a_psync_made_from_dropped_pages_is_not_published => ReadingsTrusted;
    errors::a_change_is_not_made_from_pages_dropped_meanwhile => AskedTooEarly | ReadingsTrusted;
    errors::a_failed_barrier_poisons_every_lane => FailureNotShared;
    errors::a_failed_write_back_is_told_to_one_call => ReportsLeft;
    errors::an_error_is_told_once => ReportsLeft;
}

const KEY: Key<'static> = Key(&[]);
const CONFIG: SimConfig =
    SimConfig { tear_unit: TearUnit::Line, disk: true, discard: Discard::Keep, transfers: SMALL, seed: 0 };
const LIMITS: Limits = Limits { exhaustive: 64, singles: 6, random: 8, points: u64::MAX, seed: 1 };

fn open(medium: &SimMedium, pid: u32) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(pid)).unwrap()
}

fn of(size: u64) -> CreateOptions<'static> {
    CreateOptions { size, ..CreateOptions::default() }
}

fn create(store: &Arc<Store>, name: &str, size: u64) {
    store.create(name, &of(size)).unwrap();
}

fn crash(prepare: impl Fn(&Arc<Store>), program: impl Fn(&mut Scenario) -> Result<()>) -> Verdict {
    crash_on(CONFIG, prepare, program)
}

fn crash_on(
    config: SimConfig,
    prepare: impl Fn(&Arc<Store>),
    program: impl Fn(&mut Scenario) -> Result<()>,
) -> Verdict {
    let medium = formatted(2 << 20, config);
    prepare(&Scenario::begin(&medium, 1).unwrap().store);
    medium.settle();
    crash_everywhere(&medium, &LIMITS, program).map(drop).map_err(|failure| failure.to_string())
}
