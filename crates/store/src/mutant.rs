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
        /// A take-over of a lane whose checkpoint failed writes the copy of the header that is
        /// durable for certain.
        SureCopyRisked,
        /// A batch of a durable write of several says that those before it there are durable.
        WatermarkAhead,
        /// An object, or a section of a batch, that only a later release knows how to use is used
        /// all the same.
        UnknownUsed,
        /// A pool says that it is longer before its medium is.
        LengthAhead,
        /// The superblock slot that is durable for certain is written over first.
        SureSlotRisked,
        /// A pool that becomes longer takes bytes for zeros that the medium had behind it.
        SurplusIsZero,
        /// psync of several objects publishes one batch for each.
        SplitPsync,
        /// A transaction is acknowledged before its batch is durable.
        CommitNotAwaited,
        /// Transactions become durable one after the other, the newest first.
        CommitsReordered,
        /// If several transactions of a batch changed a line, the oldest content is kept.
        CommitOlderLine,
        /// A transaction of several objects becomes durable object by object.
        CommitApart,
        /// After a durable write that failed, transactions go on as if it had not been tried.
        CommitFailureForgotten,
        /// An object is attached as one of another durability class.
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
        /// Lines on their way to a primary are forgotten by the progress of the object.
        ProgressForgotten,
        /// An object changes its lane before its primary is durable.
        UnsettledMove,
        /// A detach gives the lane up before the primary is durable.
        UnsettledDetach,
        /// Recovery does not look into the dead writer's lane.
        LaneForgotten,
        /// Recovery leaves the last batch out.
        LastBatchForgotten,
        /// Recovery lets the oldest content of a line win.
        OldestWins,
        /// After a checkpoint that failed, the directory alone states the generation of a lane.
        GenerationUnstated,
        /// Recovery voids the lane before what it replayed is durable.
        EarlyVoid,
        /// Recovery leaves a direct write that no psync published.
        IntentIgnored,
        /// An attach leaves the bytes of an unpublished direct write in the primary.
        DirectKept,
        /// Recovery replays sections of attaches that are long over.
        BindingIgnored,
        /// Batches that are visible in a lane are taken for durable.
        VisibleIsDurable,
        /// Recovery takes an object whose entry it cannot read for one that was destroyed.
        UnreadIsAbsent,
        /// A damaged batch before intact ones counts as the end of its lane.
        DamageIgnored,
        /// A dead writer's lane that is damaged stops every process that looks for a lane.
        RefusedBlocksAll,
        /// Recovery does not ask whether psyncs were applied that the lane lacks.
        AppliedIgnored,
        /// A batch with one wrong bit counts as torn.
        BitIgnored,
        /// The copies of a lane's header decide its generation, whatever its batches are.
        CopiesAlone,
        /// The superblock is written before the table.
        SuperblockFirst,
        /// A change of the table reaches its pages before it is published.
        TableFirst,
        /// The table's lane is voided before what it redoes is durable.
        EarlyTableCheckpoint,
        /// A process does not look at other processes' changes of the table.
        StaleTable,
        /// Destroyed space is handed out with its former bytes.
        NoZeroing,
        /// Calls that rely on the primary do not wait for lines that wait in memory.
        ApplyForgotten,
        /// An object exists before its zeros are durable.
        EarlyCreate,
        /// Space is discarded before the destruction is published.
        DiscardFirst,
        /// The space of a destroyed object stays taken.
        LeakedSpace,
        /// An object that grows takes its new place before the copy is durable.
        EarlyExchange,
        /// An object that moves while its memory is in use gives up the extent that the memory
        /// shows.
        FormerFreed,
        /// The first change of a page that is the base's logs the lines that changed, and not the
        /// whole page.
        PageInPart,
        /// The first change of a page that is the base's is published before the rest of the page
        /// is durable.
        PageUnproven,
        /// The first change of a page that is the base's does not say that the page is the object's
        /// own.
        PageUnclaimed,
        /// A base is removed with the first of the objects that rest on it.
        BaseFreed,
        /// An object comes from another pool, or from a backup, before its bytes are durable.
        RevivedUnproven,
        /// Objects that come together become visible one after the other.
        ImportApart,
        /// Objects of a directory get their new names one after the other.
        DirectoryApart,
        /// Bytes are not compared with the ID that is their hash.
        ContentUnchecked,
        /// An object that goes back to a snapshot gives the bitmap that it has up before it has
        /// another one.
        BitmapGivenUp,
        /// A deleted object goes while a process has it attached.
        DeletedFreed,
        /// A deleted object goes before the object that it is tied to.
        TieIgnored,
        /// An object points to its list of ties before that is durable.
        TieUnproven,
        /// The object that stands for a process is not locked, so it goes at once.
        LifeUnlocked,
        /// A volatile object is attached after the machine was started anew.
        VolatileKept,
        /// An object becomes a base before its progress as one is durable.
        BaseUnproven,
        /// An object that a process writes becomes a base before the lane is redone.
        BaseBehind,
        /// An object that a process writes becomes a base while a direct write is under way.
        BaseUndefined,
        /// Pages of a sealed object are used whether or not their tag is right.
        TagUnchecked,
        /// The seal of a page does not cover how often the page was sealed.
        VersionUnsealed,
        /// The root of a sealed object's tree is written behind the batch that changes the tree.
        RootApart,
        /// The batch of a sealed object has plaintext.
        LanePlain,
        /// A node of a sealed object's tree that is all zeros counts as one that was never written.
        AbsentUnsealed,
        /// The signature of a sealed object is any line.
        SignatureUnchecked,
        /// An object is used with any name and ID in its root.
        IdentityUnchecked,
        /// The table gives a sealed object another name before the root has it.
        RenamedFirst,
        /// Pages of a signed object are used whether or not their hash is right.
        HashUnchecked,
        /// The signature of a sealed object is written behind the batch that changes the root.
        SignatureApart,
        /// The header of a sealed object that gets another size is written behind its batch.
        SizeApart,
        /// Pages that a sealed object loses as it shrinks keep their seals.
        CutKept,
        /// Pages that a sealed object loses are given back before its smaller size is durable.
        CutEarly,
        /// A sealed object that gets another key is sealed anew by the one that it has.
        KeyKept,
        /// The root's version of a sealed object that gets another key begins anew.
        VersionRewound,
        /// Any state of a sealed object is one that its anchor was told.
        AnchorIgnored,
        /// Any record is the newest by the counter of an anchor.
        CountIgnored,
        /// Nonces follow from the place of a page.
        NonceReused,
        /// A reader of a sealed object goes on to a later psync with pages that it decrypted
        /// before, whose seals are others now.
        PlaintextKept,
        /// A page that does not verify is damaged, although the object's base was moved.
        MovedUnseen,
        /// An object that takes the place of its base does not say which pages are its own.
        MergedUnclaimed,
        /// Pages of an object are believed by the revisions of the lane that it has left.
        PagesLaneKept,
        /// A reader takes the base of another one although the object's writer has failed.
        FailedFollowed,
        /// Other readers may have a base before it has absorbed all that it can.
        BaseSharedEarly,
        /// A base says that pages that it absorbs are its own before they are durable.
        AbsorbedEarly,
        /// A base does not say that pages that it absorbed are its own.
        AbsorbedUnclaimed,
        /// A base absorbs others beneath an object whose writer has died, of which psyncs wait in a
        /// lane.
        AbsorbedUnrecovered,
        /// A reader that follows takes psyncs over a gap in the lane.
        TailGap,
        /// A reader that follows takes psyncs that are not durable yet.
        TailUnproven,
        /// A reader that follows does not ask whether the table has changed since it looked at it.
        TableUnasked,
        /// A reader that follows does not ask whether the lane has begun another generation.
        LaneUnasked,
        /// A merge is real before the pages are durable where they were copied to.
        MergeUnproven,
        /// The process that writes an object is not told that the object's extent became a base.
        RevisionKept,
        /// A repair builds where the table in force says that nothing was ever written.
        UnsaidSite,
        /// A table whose batches are lost goes on telling states that were never written.
        UnwrittenKept,
        /// A failed barrier is tried again.
        BarrierRetried,
        /// A failed barrier is the business of the lane alone that asked for it.
        FailureNotShared,
        /// A failed durable write is the business of the lane alone that made it.
        FaultOfOneWrite,
        /// The other report of a failure that was counted is left to the next caller that asks.
        ReportsLeft,
        /// Recovery takes a barrier's word for blocks whose first write failed before.
        RedoUnproven,
        /// Space is used as if no earlier write to it could have failed.
        SpaceUnproven,
        /// A direct write that failed is taken back byte by byte, and leaves parts of pages as they
        /// are.
        ClearedInPart,
        /// The first write to a block of the table, or of a lane, is left to the batch that needs
        /// it durable.
        FirstWriteLeft,
        /// A psync publishes a direct write that ended without a barrier.
        OpenDirectPublished,
        /// Readings are relied on without asking whether pages were lost, dropped and read again.
        ReadingsTrusted,
        /// Lost pages are asked for before the readings that are relied on, not after.
        AskedTooEarly,
        /// Writers of two processes get the same object.
        Unlocked,
        /// A process takes a lane that another one has.
        LaneUnclaimed,
        /// Readings without a lock are believed although the table changed meanwhile.
        ReadUnchecked,
        /// Nodes of the table are kept although another process changed it.
        NodesKept,
        /// Lines are stored but not written back from the caches (in the mapped half).
        NoWriteBack,
        /// Written-back lines are not waited for (in the mapped half).
        NoFence,
    }

    /// Mutants of transactions in a process's memory: `crates/indelible/tests/transactions.rs`
    /// finds them.
    TRANSACTIONS {
        /// The lines of a transaction are told as they were before it.
        CommitLineBefore,
        /// Plain loads and stores reach an object that is for transactions.
        AddressOpen,
        /// The own addresses of an object that is readable outside of transactions can be stored
        /// to.
        OutsideWritable,
        /// A transaction that changes nothing is acknowledged before its reads are durable.
        ReadNotAwaited,
        /// A block is marked as in use before the transaction that allocates it commits.
        AllocatedAtOnce,
        /// A block is marked as free before the transaction that frees it commits.
        FreedAtOnce,
        /// A block is freed that is free already.
        FreedTwice,
        /// Commits do not learn that an object grew, and so not which of its lines they change
        /// there.
        GrowthUntold,
    }

    /// Mutants of check words, in the mapped half: `crates/indelible/tests/ecc` finds them.
    ECC {
        /// A word in the second half of a line is loaded without a look at its check word.
        HalfUnchecked,
        /// A commit tells the words that it changes without their check words.
        CheckWordApart,
        /// A store of some bytes of a word takes the others as they are in memory, damaged or not.
        DamageCertified,
    }

    /// On demand: `crates/indelible/tests/on_demand.rs`, `on_demand_deaths.rs`, `guarded.rs` find
    /// them.
    ON_DEMAND {
        /// A commit on demand changes memory without a valid log.
        LogUnvalidated,
        /// The log of a commit on demand ends before its lines are in memory.
        LogClearedEarly,
        /// A recovery forgets the commit on demand that was under way when its process died.
        LogForgotten,
        /// An epoch is taken from memory while transactions change it.
        EpochUngated,
        /// Lines that a commit on demand changes are not marked for the next epoch.
        EpochUnmarked,
        /// A thread that waits for commits on demand does not wait for the epoch that has them.
        SyncNotAwaited,
        /// A thread whose commits are not known is taken for one without commits.
        UnknownTakenForNone,
        /// A transaction on objects of both classes is acknowledged as one on demand.
        StrongerClassIgnored,
        /// An object that is detached before its commits are published leaves those that it shares
        /// them with.
        LeftUnpublished,
        /// A detach says that the pool has all commits when it could not publish them.
        MemoryGivenUp,
        /// An attach does not ask for commits that a dead process left in memory.
        MemoryForgotten,
        /// A sweep removes a file of memory by a judgement made before it had the file's lock.
        JudgedUnlocked,
        /// Memory is that of any file with the ID of its pool.
        OriginIgnored,
        /// A process tells the guard that its commits are durable before they are.
        AcknowledgedUnflushed,
        /// A commit that the guard's bound has no room for returns before it is durable.
        BudgetIgnored,
    }

    /// Mutants of shared objects, in the mapped half: `crates/indelible/tests/shared` finds them.
    SHARED {
        /// A consumer waits for a message whose producer is dead.
        DeadProducerKept,
        /// A message is put into a queue, and a consumer that sleeps is not woken.
        WakeLost,
        /// Messages are acknowledged before the log that has them is psynced.
        AcknowledgedEarly,
    }

    /// Mutants of objects' memory, in the mapped half: `crates/indelible/tests/evicted.rs` finds
    /// them.
    MEMORY {
        /// A cut drops pages once stores are let pass again.
        EvictedOutsideGate,
    }

    /// Heaps, mapped half: `crates/indelible/tests/root_blocks.rs`, `blank_objects.rs` and
    /// `contents.rs` find them.
    HEAP {
        /// The block of a root is freed.
        RootBlockFreed,
        /// An allocation makes a heap of a blank object, whatever the program's use of it.
        HeapMadeUnasked,
        /// A resize cuts off bytes that the object's type needs.
        ContentsCutOff,
    }

    /// Mutants of far pointers, in the mapped half: `crates/indelible/tests/far` finds them.
    FAR {
        /// An entry of the table of other objects is not marked as dirty, so that a psync makes a
        /// pointer durable without it.
        FarEntryUnmarked,
        /// An entry that was taken away is used again for another object while pointers through it
        /// are there.
        FarEntryInUseFreed,
        /// A far pointer is followed to wherever its offset is, though the object ends before.
        FarBeyondFollowed,
        /// Entries that pointers beside described values lead through are taken away.
        FarBesideForgotten,
        /// A value behind a pointer is not gone through if its bytes were, as another type.
        SecondTypeIgnored,
        /// A far pointer is followed to the object that its entry named once, though the entry was
        /// changed.
        FarCacheKept,
        /// A stream of objects leaves out an object that is reached through others alone.
        FarClosureShort,
        /// An entry that was retargeted is given to pointers that are made later for its new
        /// object.
        FarEntryShared,
        /// A pointer that no security context allows to follow attaches its object all the same.
        DeniedAttached,
    }

    /// Mutants of views and contexts, in the mapped half: `crates/indelible/tests/views` finds
    /// them.
    VIEWS {
        /// The object in a slot is attached for stores though the slot asks for loads.
        SlotRightsIgnored,
        /// A fault takes an object away that threads use, because its slot was emptied.
        ViewAdoptedInUse,
        /// A slot's requested rights are granted, whatever the security contexts allow.
        ContextIgnored,
        /// A mask of a security context takes no right away.
        MaskIgnored,
        /// The rights of a security context stay as they were when the view was attached.
        RevokedKept,
        /// A thread within one security context has the rights of all of the view's.
        AllContextsEntered,
        /// Pages that an object of a class got later are open to every thread.
        NewPagesOpen,
        /// A dropped guard of security contexts restores its thread's former contexts, in any order
        /// of drops.
        GuardRestores,
    }

    /// Mutants of data retention, in the mapped half: tests of that half find them.
    RETENTION {
        /// The fingerprint of a type leaves the structs within it out.
        NestingIgnored,
        /// The fingerprint of a type leaves the order and the places of its fields out.
        OrderIgnored,
        /// An extension of any type is taken for the program's if it has as many bytes.
        ExtensionTypeIgnored,
        /// An extension is linked before its initial value is computed.
        ExtensionLinkedFirst,
        /// An extension is allocated and linked outside the gate of the heap.
        ExtensionUngated,
        /// The link to an extension is not marked as dirty.
        ExtensionUnmarked,
        /// A thread that is second to link an extension keeps its block.
        LoserKept,
        /// A thread that is second to link an extension takes the place of the first.
        LaterLinkWins,
        /// A copy of a value has the first of its extensions alone.
        CopyCutShort,
        /// The first extension of a value is freed with it, and no other.
        ChainKept,
        /// The walk over values takes the first block of a chain for all of it.
        ChainUnwalked,
        /// The old value of a root is freed before the new one has its place.
        OldFreedFirst,
        /// A reset frees the block of the root, and none that its value owns.
        ResetLeaks,
        /// A migration in steps takes an element for converted before its converter succeeded.
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
