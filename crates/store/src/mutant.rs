//! Protocol faults for tests. Without the feature `__mutants` none is ever on, and the compiler
//! drops the queries. A new one takes a line here and `Mutant::Name.is_on()` where the rule is
//! kept.

#[macro_use]
#[path = "mutant/list.rs"]
mod list;

mutants! {
    /// Mutants of the protocol: `pmo-evidence mutants` has every layer of evidence look for them.
    PROTOCOL {
        /// The primary changes before the batch is durable.
        ApplyFirst,
        /// The primary changes before a batch in pieces is durable.
        ApplyPiecesFirst,
        /// A psync returns before its batch is durable.
        NotDurable,
        /// A psync returns before its batch, written in pieces, is durable.
        PiecesNotDurable,
        /// A take-over after a failed checkpoint overwrites the one durable header copy.
        SureCopyRisked,
        /// A batch calls earlier batches of its own durable write durable.
        WatermarkAhead,
        /// An object or section of an unknown kind is used all the same.
        UnknownUsed,
        /// A pool states a length before its medium has it.
        LengthAhead,
        /// The one durable superblock slot is overwritten first.
        SureSlotRisked,
        /// A growing pool takes the medium's former bytes for zeros.
        SurplusIsZero,
        /// psync of several objects publishes one batch for each.
        SplitPsync,
        /// A transaction is acknowledged before its batch is durable.
        CommitNotAwaited,
        /// Transactions become durable one by one, the newest first.
        CommitsReordered,
        /// Of a line that several transactions changed, the oldest content stays.
        CommitOlderLine,
        /// A transaction of several objects becomes durable object by object.
        CommitApart,
        /// Transactions go on after a failed durable write.
        CommitFailureForgotten,
        /// An object is attached as one of another class.
        ClassIgnored,
        /// A psync changes primaries that another process holds still.
        HoldIgnored,
        /// The checksum of a batch leaves its data out.
        ShortChecksum,
        /// Batches of an earlier lap are accepted.
        AnyGeneration,
        /// Batches are accepted out of sequence.
        AnySequence,
        /// A checkpoint does not wait until applied lines are durable.
        EarlyCheckpoint,
        /// A checkpoint starts the lane again under the same generation.
        SameGeneration,
        /// The progress line omits lines on their way to the primary.
        ProgressForgotten,
        /// An object changes its lane before its primary is durable.
        UnsettledMove,
        /// A detach gives up the lane before the primary is durable.
        UnsettledDetach,
        /// Recovery does not look into the dead writer's lane.
        LaneForgotten,
        /// Recovery leaves the last batch out.
        LastBatchForgotten,
        /// Recovery lets the oldest content of a line win.
        OldestWins,
        /// After a failed checkpoint only the directory states the lane's generation.
        GenerationUnstated,
        /// Recovery voids the lane before what it replayed is durable.
        EarlyVoid,
        /// Recovery leaves a direct write that no psync published.
        IntentIgnored,
        /// An attach keeps the bytes of an unpublished direct write.
        DirectKept,
        /// Recovery replays sections of attaches that are long over.
        BindingIgnored,
        /// Visible batches count as durable.
        VisibleIsDurable,
        /// Recovery takes an object with an unreadable entry for destroyed.
        UnreadIsAbsent,
        /// A damaged batch before intact ones counts as the lane's end.
        DamageIgnored,
        /// A dead writer's damaged lane stops every process that needs a lane.
        RefusedBlocksAll,
        /// Recovery ignores evidence of applied psyncs that the lane lacks.
        AppliedIgnored,
        /// A batch with one wrong bit counts as torn.
        BitIgnored,
        /// The header copies decide a lane's generation, whatever its batches say.
        CopiesAlone,
        /// The superblock is written before the table.
        SuperblockFirst,
        /// A table change reaches its pages before publication.
        TableFirst,
        /// The table's lane is voided before its redo is durable.
        EarlyTableCheckpoint,
        /// A batch outside of the table's lane is published before it is durable.
        SpillUnproven,
        /// The lane still points to such a batch when its space is used.
        SpillKept,
        /// A process misses other processes' table changes.
        StaleTable,
        /// Destroyed space is handed out with its former bytes.
        NoZeroing,
        /// Calls that rely on the primary do not wait for pending lines.
        ApplyForgotten,
        /// An object exists before its zeros are durable.
        EarlyCreate,
        /// Space is discarded before the destruction is published.
        DiscardFirst,
        /// The space of a destroyed object stays taken.
        LeakedSpace,
        /// A growing object takes its new place before the copy is durable.
        EarlyExchange,
        /// An object that moves in use gives up the mapped extent.
        FormerFreed,
        /// The first change of a base's page logs changed lines, not the whole page.
        PageInPart,
        /// The first change of a base's page is published before the rest is durable.
        PageUnproven,
        /// The first change of a base's page does not mark the page as own.
        PageUnclaimed,
        /// A base is removed with the first object that rests on it.
        BaseFreed,
        /// An object arrives from another pool before its bytes are durable.
        RevivedUnproven,
        /// A new object of page ranges takes pages between them from its base.
        RangeUnclaimed,
        /// Imported objects become visible one by one.
        ImportApart,
        /// Objects of a directory are renamed one by one.
        DirectoryApart,
        /// Bytes are not compared with the ID, their hash.
        ContentUnchecked,
        /// A rollback gives up the old bitmap before the new one is in force.
        BitmapGivenUp,
        /// A deleted object goes while attached.
        DeletedFreed,
        /// A deleted object goes before the one it is tied to.
        TieIgnored,
        /// An object points to its list of ties before the list is durable.
        TieUnproven,
        /// A process's life object is not locked, and goes at once.
        LifeUnlocked,
        /// A volatile object is attached after a reboot.
        VolatileKept,
        /// An object becomes a base before its progress is durable.
        BaseUnproven,
        /// A written object becomes a base before its lane is redone.
        BaseBehind,
        /// A written object becomes a base during a direct write.
        BaseUndefined,
        /// Pages of a sealed object are used without a check of the tag.
        TagUnchecked,
        /// A page's seal does not cover its version.
        VersionUnsealed,
        /// The root seal is written after the batch that changes the tree.
        RootApart,
        /// The batch of a sealed object has plaintext.
        LanePlain,
        /// A node of zeros counts as never written.
        AbsentUnsealed,
        /// The signature of a sealed object is any line.
        SignatureUnchecked,
        /// An object is used whatever name and ID its root has.
        IdentityUnchecked,
        /// The table renames a sealed object before its root does.
        RenamedFirst,
        /// Pages of a signed object are used without a check of the hash.
        HashUnchecked,
        /// The signature is written after the batch that changes the root.
        SignatureApart,
        /// A resized sealed object's header is written after its batch.
        SizeApart,
        /// Pages cut off a sealed object keep their seals.
        CutKept,
        /// Pages cut off a sealed object are freed before the smaller size is durable.
        CutEarly,
        /// A rotation seals pages by the old key.
        KeyKept,
        /// A rotation restarts the root's version.
        VersionRewound,
        /// Any state matches the anchor.
        AnchorIgnored,
        /// Any record is the newest by the anchor's counter.
        CountIgnored,
        /// Nonces follow from the place of a page.
        NonceReused,
        /// A refreshed reader keeps decrypted pages whose seals changed.
        PlaintextKept,
        /// A page that fails to verify is damaged, although its base moved.
        MovedUnseen,
        /// An object merged into its base does not mark its own pages.
        MergedUnclaimed,
        /// Cached pages are trusted by the revision of a lane that the object left.
        PagesLaneKept,
        /// A reader takes another reader's base although the writer failed.
        FailedFollowed,
        /// A base is shared before it has absorbed all it can.
        BaseSharedEarly,
        /// A base claims absorbed pages before they are durable.
        AbsorbedEarly,
        /// A base does not claim absorbed pages.
        AbsorbedUnclaimed,
        /// A base absorbs others while a dead writer's psyncs wait in a lane.
        AbsorbedUnrecovered,
        /// A follower takes psyncs across a gap in the lane.
        TailGap,
        /// A follower takes psyncs that are not durable.
        TailUnproven,
        /// A follower does not recheck the table.
        TableUnasked,
        /// A follower does not recheck the lane's generation.
        LaneUnasked,
        /// A merge is published before the copied pages are durable.
        MergeUnproven,
        /// A writer is not told that its extent became a base.
        RevisionKept,
        /// A repair builds on space that the table in force calls never written.
        UnsaidSite,
        /// A table that lost batches still claims never-written space.
        UnwrittenKept,
        /// A failed barrier is tried again.
        BarrierRetried,
        /// A failed barrier concerns only the lane that asked.
        FailureNotShared,
        /// A failed durable write concerns only its lane.
        FaultOfOneWrite,
        /// The second report of a counted failure is left to the next caller.
        ReportsLeft,
        /// Recovery trusts a barrier for blocks whose first write failed.
        RedoUnproven,
        /// Space is used as if no earlier write there had failed.
        SpaceUnproven,
        /// A failed direct write is undone by bytes, not whole pages.
        ClearedInPart,
        /// The first write to a block is left to the batch that needs it durable.
        FirstWriteLeft,
        /// A psync publishes a direct write without its barrier.
        OpenDirectPublished,
        /// Reads are trusted without a check for dropped pages.
        ReadingsTrusted,
        /// Dropped pages are checked for before the reads, not after.
        AskedTooEarly,
        /// Writers of two processes get one object.
        Unlocked,
        /// A process takes another's lane.
        LaneUnclaimed,
        /// Lockless reads are trusted although the table changed.
        ReadUnchecked,
        /// Cached table nodes survive another process's change.
        NodesKept,
        /// Lines are not written back from the caches (mapped half).
        NoWriteBack,
        /// Written-back lines are not fenced (mapped half).
        NoFence,
    }

    /// Mutants of transactions in a process's memory: `crates/indelible/tests/transactions.rs`
    /// finds them.
    TRANSACTIONS {
        /// A transaction tells the former content of its lines.
        CommitLineBefore,
        /// Plain accesses reach a transactional object.
        AddressOpen,
        /// An object readable outside can be stored to there.
        OutsideWritable,
        /// A read-only transaction is acknowledged before its reads are durable.
        ReadNotAwaited,
        /// A block is in use before its transaction commits.
        AllocatedAtOnce,
        /// A block is free before its transaction commits.
        FreedAtOnce,
        /// A free block is freed.
        FreedTwice,
        /// Commits do not learn of growth, and miss changed lines there.
        GrowthUntold,
    }

    /// Mutants of check words, in the mapped half: `crates/indelible/tests/ecc` finds them.
    ECC {
        /// A word in a line's second half is loaded without its check word.
        HalfUnchecked,
        /// A commit tells words without their check words.
        CheckWordApart,
        /// A partial store keeps a word's other bytes, damaged or not.
        DamageCertified,
    }

    /// On demand: `crates/indelible/tests/on_demand.rs`, `on_demand_deaths.rs`, `guarded.rs` find
    /// them.
    ON_DEMAND {
        /// A commit on demand changes memory without a valid log.
        LogUnvalidated,
        /// A log ends before its lines are in memory.
        LogClearedEarly,
        /// Recovery forgets the commit under way at the death.
        LogForgotten,
        /// An epoch is taken while transactions run.
        EpochUngated,
        /// Changed lines are not marked for the next epoch.
        EpochUnmarked,
        /// Lines of a refused epoch are not marked for the next one.
        RefusedForgotten,
        /// A wait for commits on demand does not wait for their epoch.
        SyncNotAwaited,
        /// A thread with unknown commits counts as one without.
        UnknownTakenForNone,
        /// A transaction on both classes is acknowledged as one on demand.
        StrongerClassIgnored,
        /// An object detached before publication leaves commits that it shares.
        LeftUnpublished,
        /// A detach calls unpublished commits published.
        MemoryGivenUp,
        /// An attach ignores commits left in memory.
        MemoryForgotten,
        /// A sweep removes memory judged before it had the lock.
        JudgedUnlocked,
        /// Memory belongs to any file with the pool's ID.
        OriginIgnored,
        /// A process tells the guard of durability too early.
        AcknowledgedUnflushed,
        /// A commit beyond the guard's bound returns before it is durable.
        BudgetIgnored,
    }

    /// Mutants of shared objects, in the mapped half: `crates/indelible/tests/shared` finds them.
    SHARED {
        /// A consumer waits for a dead producer's message.
        DeadProducerKept,
        /// A message is queued without waking a sleeping consumer.
        WakeLost,
        /// Messages are acknowledged before their log is psynced.
        AcknowledgedEarly,
        /// A server receives the request that a dead one has just completed.
        CompletionUnmarked,
    }

    /// Mutants of objects' memory, in the mapped half: `crates/indelible/tests/evicted.rs` and
    /// `own_pages.rs` find them.
    MEMORY {
        /// Pages are dropped after stores go on.
        EvictedOutsideGate,
        /// A page with stores since the psync is dropped.
        UnsyncedDropped,
    }

    /// Heaps, mapped half: `crates/indelible/tests/root_blocks.rs`, `blank_objects.rs` and
    /// `contents.rs` find them.
    HEAP {
        /// The block of a root is freed.
        RootBlockFreed,
        /// An allocation makes a heap of any blank object.
        HeapMadeUnasked,
        /// A resize cuts off bytes that the object's type needs.
        ContentsCutOff,
    }

    /// Mutants of far pointers, in the mapped half: `crates/indelible/tests/far` finds them.
    FAR {
        /// A new entry is not marked dirty: its pointer becomes durable without it.
        FarEntryUnmarked,
        /// An entry is reused while pointers through it exist.
        FarEntryInUseFreed,
        /// A far pointer is followed beyond the object's end.
        FarBeyondFollowed,
        /// Entries used beside described values are removed.
        FarBesideForgotten,
        /// A value seen as another type is not walked again.
        SecondTypeIgnored,
        /// A far pointer follows a changed entry's former target.
        FarCacheKept,
        /// An export omits objects reached through others alone.
        FarClosureShort,
        /// A retargeted entry is reused for new pointers to its target.
        FarEntryShared,
        /// A denied pointer attaches its object.
        DeniedAttached,
    }

    /// Mutants of views and contexts, in the mapped half: `crates/indelible/tests/views` finds
    /// them.
    VIEWS {
        /// A read-only slot's object is attached for stores.
        SlotRightsIgnored,
        /// A fault removes the object of an emptied slot, in use or not.
        ViewAdoptedInUse,
        /// A slot's rights are granted against the contexts.
        ContextIgnored,
        /// A context's mask removes no right.
        MaskIgnored,
        /// Rights stay as they were at the attach.
        RevokedKept,
        /// A thread within one context has the rights of all.
        AllContextsEntered,
        /// Pages added to a class are open to every thread.
        NewPagesOpen,
        /// A dropped guard restores the former contexts in any order.
        GuardRestores,
    }

    /// Mutants of data retention, in the mapped half: tests of that half find them.
    RETENTION {
        /// A fingerprint omits nested structs.
        NestingIgnored,
        /// A fingerprint omits the order and places of fields.
        OrderIgnored,
        /// An extension of the right size is taken for the right type.
        ExtensionTypeIgnored,
        /// An extension is linked before its initial value exists.
        ExtensionLinkedFirst,
        /// An extension is linked outside the heap's gate.
        ExtensionUngated,
        /// The link to an extension is not marked dirty.
        ExtensionUnmarked,
        /// The second thread to link an extension keeps its block.
        LoserKept,
        /// The second thread to link an extension replaces the first.
        LaterLinkWins,
        /// A copy has the first extension alone.
        CopyCutShort,
        /// Only the first extension is freed with a value.
        ChainKept,
        /// The walk takes a chain's first block for all of it.
        ChainUnwalked,
        /// A root's old value is freed before the new one is in place.
        OldFreedFirst,
        /// A reset frees the root's block and nothing that it owns.
        ResetLeaks,
        /// A migration counts an element as converted before its converter succeeds.
        ElementSkipped,
    }
}

#[cfg(feature = "__mutants")]
#[path = "mutant/selected.rs"]
mod selected;

#[cfg(feature = "__mutants")]
pub use selected::with_mutant;

#[path = "mutant/inherited.rs"]
mod inherited;
pub use inherited::Selected;

#[cfg(not(feature = "__mutants"))]
impl Mutant {
    /// Whether the mutant is on: never, without the feature.
    #[must_use]
    pub const fn is_on(self) -> bool {
        false
    }
}
