// Persistent memory objects for C++17: pmo.h with owners, exceptions, and an allocator for
// containers of the standard library in an object.
//
//     pmo::pool pool = pmo::pool::open_or_format("notes.pmo", 64 << 20);
//     pmo::heap heap = pool.heap("notes", 1 << 20);
//     auto &notes = heap.root<pmo::map<pmo::string, pmo::vector<pmo::string>>>("notes");
//     notes[heap.text("today")].emplace_back("water the plants");
//     heap.psync();
//
// All changes since the last psync become durable as one step; after a crash at any instant the
// object, containers included, is as some psync left it.
#ifndef PMO_HPP
#define PMO_HPP

#include <pmo.h>

#include <pmo/allocator.hpp>
#include <pmo/containers.hpp>
#include <pmo/error.hpp>
#include <pmo/far.hpp>
#include <pmo/mutex.hpp>
#include <pmo/retention.hpp>
#include <pmo/seal_key.hpp>
#include <pmo/std_types.hpp>
#include <pmo/transaction.hpp>
#include <pmo/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmo {

namespace detail {

// Collects what a C function calls back with; exceptions wait until it has returned.
template <class T> class collector {
public:
    void add(const T &item) noexcept
    {
        try {
            items_.push_back(item);
        } catch (...) {
            failed_ = std::current_exception();
        }
    }
    void slot(const struct ::pmo_key_slot &item) noexcept
    {
        try {
            items_.push_back(
                {item.slot, static_cast<pmo_key_kind>(item.kind), item.created, item.expires, item.damaged != 0, item.label});
        } catch (...) {
            failed_ = std::current_exception();
        }
    }
    void text(const char *item) noexcept
    {
        try {
            items_.emplace_back(item);
        } catch (...) {
            failed_ = std::current_exception();
        }
    }
    void line(std::uint64_t offset, const char *what) noexcept
    {
        try {
            items_.push_back("at " + std::to_string(offset) + ": " + what);
        } catch (...) {
            failed_ = std::current_exception();
        }
    }
    void line(std::uint64_t offset, const char *place, const char *into) noexcept
    {
        try {
            items_.push_back("at " + std::to_string(offset) + ": " + place + " leads into " + into);
        } catch (...) {
            failed_ = std::current_exception();
        }
    }
    std::vector<T> take(int result)
    {
        check(result);
        if (failed_)
            std::rethrow_exception(failed_);
        return std::move(items_);
    }

private:
    std::vector<T> items_;
    std::exception_ptr failed_;
};

// A callback for C; its exceptions wait until the C function has returned.
template <class F> struct caller {
    F &function;
    std::exception_ptr failed;

    static void call(std::uint64_t first, std::uint64_t second, void *context) noexcept
    {
        auto *self = static_cast<caller *>(context);
        try {
            if (!self->failed)
                self->function(first, second);
        } catch (...) {
            self->failed = std::current_exception();
        }
    }
    void rethrow()
    {
        if (failed)
            std::rethrow_exception(failed);
    }
};

} // namespace detail

// ---- attached objects ----

class pool;

// An attached object; the destructor detaches it, and stores since the last psync are lost.
class object {
public:
    object(object &&other) noexcept : base_(std::exchange(other.base_, nullptr)) {}
    object &operator=(object &&other) noexcept
    {
        std::swap(base_, other.base_);
        return *this;
    }
    ~object()
    {
        if (base_ != nullptr)
            pmo_detach(base_);
    }

    void *data() const noexcept { return base_; }
    std::size_t size() const { return known().size; }
    bool writable() const { return known().writable != 0; }
    std::uint64_t psyncs() const { return known().psyncs; }

    // Makes all stores since the last psync durable, as one step. No thread stores meanwhile.
    void psync() { detail::check(pmo_psync(base_)); }
    // As psync, with a consistent cut: other threads may store meanwhile.
    void psync_cut() { detail::check(pmo_psync_flags(base_, PMO_PSYNC_CUT)); }
    // Takes the object and its heap back to the last psync (pmo_revert). Pointers to later
    // allocations become invalid.
    void revert() { detail::check(pmo_revert(base_)); }
    // Advances an object of pool::attach_snapshot or heap_snapshot to the newest psync; returns
    // whether there was one. Look up all references into the object again (pmo_refresh).
    bool refresh()
    {
        int newer = 0;
        detail::check(pmo_refresh(base_, &newer));
        return newer != 0;
    }
    // How stores are found.
    pmo_tracking tracking() const { return static_cast<pmo_tracking>(known().tracking); }
    std::string name() const { return known().name; }
    // Marks bytes as stored to, for stores that bypass the page tables (pmo_mark_dirty).
    void mark_dirty(const void *address, std::size_t size) { detail::check(pmo_mark_dirty(address, size)); }
    // Brings bytes into memory, and returns how many are there (pmo_prefault).
    std::size_t prefault(const void *address, std::size_t size) const
    {
        const std::int64_t filled = pmo_prefault(address, size);
        detail::check(filled < 0 ? -1 : 0);
        return static_cast<std::size_t>(filled);
    }
    // Addresses in the object that mean nothing in the next run, a line each (pmo_audit).
    std::vector<std::string> audit() const
    {
        detail::collector<std::string> all;
        auto each = [](const pmo_pointer *pointer, void *context) noexcept {
            static_cast<detail::collector<std::string> *>(context)->line(pointer->offset, pointer->place, pointer->into);
        };
        return all.take(pmo_audit(base_, each, &all) < 0 ? -1 : 0);
    }
    void grow(std::uint64_t size) { detail::check(pmo_grow(base_, size)); }
    void detach() { detail::check(pmo_detach(std::exchange(base_, nullptr))); }

protected:
    friend class pool;
    explicit object(void *base) : base_(detail::check(base)) {}

    struct ::pmo_object known() const
    {
        struct ::pmo_object known;
        detail::check(::pmo_object(base_, &known));
        return known;
    }

    void *base_;
};

// During its life, the object is the thread's current one, where current_allocators allocate.
class current {
public:
    explicit current(const object &in) noexcept : before_(std::exchange(detail::current_base(), in.data())) {}
    current(const current &) = delete;
    current &operator=(const current &) = delete;
    ~current() { detail::current_base() = before_; }

private:
    void *before_;
};

// An attached object with a heap in it.
class heap : public object {
public:
    // Flags: PMO_HEAP_DEBUG, PMO_HEAP_GROW. A blank object attached for writing gets a heap.
    explicit heap(object &&attached, unsigned flags = 0) : object(std::move(attached))
    {
        detail::check(writable() ? pmo_heap_open_or_format(base_, flags) : pmo_heap_open(base_, flags));
    }

    template <class T = std::byte> allocator<T> get_allocator() const { return allocator<T>(base_); }

    // A string in the heap, as a key.
    string text(std::string_view text) const { return string(text, get_allocator<char>()); }

    // Constructs a T in the heap, with the allocator as its last argument if it takes one.
    template <class T, class... Args> T *make(Args &&...args)
    {
        allocator<T> in = get_allocator<T>();
        T *block = in.allocate(1);
        try {
            in.construct(block, std::forward<Args>(args)...);
        } catch (...) {
            in.deallocate(block, 1);
            throw;
        }
        return block;
    }

    // Destroys a value of make, and frees its block. A failure changes nothing: PMO_ERR_ROOT_EXISTS
    // for the value of a root; use remove.
    template <class T> void destroy(T *value)
    {
        if (value == nullptr)
            return;
        if constexpr (!std::is_trivially_destructible<T>::value) {
            detail::check(pmo_can_free(value));
            value->~T();
        }
        detail::check(pmo_free(value));
    }

    // The root of that name, made of the arguments if missing. One of another type or layout is an
    // error, whose message shows both.
    template <class T, class... Args> T &root(const char *name, Args &&...args)
    {
        if (T *found = find<T>(name))
            return *found;
        T *made = make<T>(std::forward<Args>(args)...);
        if (pmo_root_create(base_, name, made, sizeof(T), type_of<T>::get()) != 0) {
            failure failed;
            destroy(made);
            throw failed;
        }
        return *made;
    }

    // The root of that name, or nullptr. An object attached for reading takes no stores to it.
    template <class T> T *find(const char *name) const
    {
        static_assert(detail::persists<T>::value);
        void *found = pmo_root(base_, name, type_of<std::remove_cv_t<T>>::get());
        if (found == nullptr && pmo_errno() != PMO_ERR_ROOT_MISSING)
            throw failure();
        return static_cast<T *>(found);
    }

    // The root of that name, of any version of its type: converted or reset by the steps; made if
    // missing.
    //
    //     auto &item = heap.root_from<item>("item", pmo::convert<v1::item, item>([](const v1::item &old, pmo::heap &) {
    //         return item{old.number, 1};
    //     }));
    //
    // See pmo_root_from. Old values are destroyed once the root has the new one. An exception of a
    // step leaves the old value.
    template <class T, class... Steps> T &root_from(const char *name, Steps... steps)
    {
        auto construct = [](heap &in, void *value) { in.get_allocator<T>().construct(static_cast<T *>(value)); };
        detail::opening opening{*this, construct, {}, {}, nullptr, nullptr, nullptr};
        (steps.join(opening), ...);
        opening.options.converters = opening.converters.data();
        opening.options.count = opening.converters.size();
        opening.options.make = detail::opening::make;
        opening.options.context = &opening;
        void *found = pmo_root_from(base_, name, type_of<T>::get(), &opening.options);
        if (opening.failed)
            std::rethrow_exception(opening.failed);
        if (found == nullptr)
            throw failure();
        return *static_cast<T *>(found);
    }

    // Destroys a root and removes its name; returns whether there was one.
    template <class T> bool remove(const char *name)
    {
        T *found = find<T>(name);
        if (found == nullptr)
            return false;
        detail::check(pmo_root_remove(base_, name));
        destroy(found);
        return true;
    }

    struct ::pmo_heap_stats stats() const
    {
        struct ::pmo_heap_stats stats;
        detail::check(::pmo_heap_stats(base_, &stats));
        return stats;
    }

    // All findings in the heap, a line each.
    std::vector<std::string> check() const
    {
        detail::collector<std::string> all;
        auto each = [](std::uint64_t offset, const char *what, void *context) noexcept {
            static_cast<detail::collector<std::string> *>(context)->line(offset, what);
        };
        return all.take(pmo_heap_check(base_, each, &all) < 0 ? -1 : 0);
    }
};

// ---- pools ----

// How two objects differ: runs of differing pages of 4 KiB, {first, how many}, and sizes in bytes.
struct difference {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pages;
    std::uint64_t older_size;
    std::uint64_t newer_size;
};

// An open pool; objects attached from it may outlive it.
class pool {
public:
    explicit pool(const char *path, unsigned flags = 0) : pool(pmo_open(path, flags)) {}
    explicit pool(const std::string &path, unsigned flags = 0) : pool(path.c_str(), flags) {}
    // With options.
    pool(const std::string &path, const pmo_pool_options &options) : pool(pmo_open_with(path.c_str(), &options)) {}
    static pool format(const std::string &path, std::uint64_t size, unsigned flags = 0)
    {
        return pool(pmo_format(path.c_str(), size, flags));
    }
    static pool open_or_format(const std::string &path, std::uint64_t size, unsigned flags = 0)
    {
        return pool(pmo_open_or_format(path.c_str(), size, flags));
    }
    static pool format(const std::string &path, std::uint64_t size, const pmo_pool_options &options)
    {
        return pool(pmo_format_with(path.c_str(), size, &options));
    }
    static pool open_or_format(const std::string &path, std::uint64_t size, const pmo_pool_options &options)
    {
        return pool(pmo_open_or_format_with(path.c_str(), size, &options));
    }
    pool(pool &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    pool &operator=(pool &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~pool()
    {
        if (handle_ != nullptr)
            pmo_close(handle_);
    }

    pmo_pool *handle() const noexcept { return handle_; }

    // Also looks for objects of far pointers in this pool, after those added before
    // (pmo_space_add).
    void add_to_space() { detail::check(pmo_space_add(handle_)); }
    void remove_from_space() { detail::check(pmo_space_remove(handle_)); }

    // See pmo_wait.
    void wait(std::uint64_t milliseconds) { detail::check(pmo_wait(handle_, milliseconds)); }

    void create(const char *name, std::uint64_t size) { detail::check(pmo_create(handle_, name, size)); }
    void create(const char *name, const pmo_create_options &options)
    {
        detail::check(pmo_create_with(handle_, name, &options));
    }
    void destroy(const char *name, std::string_view key = {})
    {
        detail::check(pmo_destroy(handle_, name, key.data(), key.size()));
    }
    // A transactional object, or one on demand, which begins with a T (pmo_attach_transactional).
    template <class T> transactional<T> attach_transactional(const char *name, std::string_view key = {})
    {
        return beginning_with<T>(pmo_attach_transactional(handle_, name, key.data(), key.size()));
    }
    // The heap of a transactional object, or of one on demand; if missing, a transactional object
    // of size bytes is created.
    pmo::transactional_heap transactional_heap(const char *name, std::uint64_t size, std::string_view key = {})
    {
        pmo_create_options options{};
        options.size = size;
        options.durability = PMO_DURABILITY_TRANSACTIONAL;
        options.read_key = options.write_key = key.data();
        options.read_key_len = options.write_key_len = key.size();
        if (!contains(name))
            create(name, options);
        return pmo::transactional_heap(detail::check(pmo_attach_transactional(handle_, name, key.data(), key.size())));
    }
    // For transactions on objects of both kinds (pmo_attach_with_on_demand).
    template <class T> transactional<T> attach_with_on_demand(const char *name, std::string_view key = {})
    {
        return beginning_with<T>(pmo_attach_with_on_demand(handle_, name, key.data(), key.size()));
    }
    // See pmo_set_epochs.
    void set_epochs(std::uint64_t milliseconds, std::uint64_t bytes)
    {
        detail::check(pmo_set_epochs(handle_, milliseconds, bytes));
    }
    // See pmo_set_durability.
    void set_durability(const char *name, pmo_durability durability, std::string_view key = {})
    {
        detail::check(pmo_set_durability(handle_, name, key.data(), key.size(), durability));
    }
    // See pmo_set_readable_outside.
    void set_readable_outside(const char *name, bool readable = true, std::string_view key = {})
    {
        detail::check(pmo_set_readable_outside(handle_, name, key.data(), key.size(), readable));
    }
    // For detached objects.
    void resize(const char *name, std::uint64_t size, std::string_view key = {})
    {
        detail::check(pmo_resize(handle_, name, size, key.data(), key.size()));
    }
    void rename(const char *name, const char *new_name, std::string_view key = {})
    {
        detail::check(pmo_rename(handle_, name, new_name, key.data(), key.size()));
    }
    // See pmo_snapshot.
    void snapshot(const char *name, const char *snapshot, std::string_view key = {})
    {
        detail::check(pmo_snapshot(handle_, name, snapshot, key.data(), key.size()));
    }
    // Snapshots of objects, {name, name of the snapshot}, as of one moment: all or none.
    void snapshot_all(const std::vector<struct ::pmo_snapshot> &snapshots, std::string_view key = {})
    {
        detail::check(pmo_snapshot_all(handle_, snapshots.data(), snapshots.size(), key.data(), key.size()));
    }
    // See pmo_create_from.
    void create_from(const char *name, const char *copy, std::string_view key = {})
    {
        detail::check(pmo_create_from(handle_, name, copy, key.data(), key.size(), nullptr));
    }
    // The same with options, such as keys.
    void create_from(const char *name, const char *copy, std::string_view key, const pmo_create_options &options)
    {
        detail::check(pmo_create_from(handle_, name, copy, key.data(), key.size(), &options));
    }
    // See pmo_create_from_ranges.
    void create_from_ranges(const char *name, const std::vector<struct ::pmo_page_range> &ranges,
                            const pmo_create_options &options, std::string_view key = {})
    {
        detail::check(pmo_create_from_ranges(handle_, name, ranges.data(), ranges.size(), key.data(), key.size(), &options));
    }
    // Copies an object or a snapshot to another pool; with rebase at other addresses, maybe to this
    // one (pmo_copy_to).
    void copy_to(const char *name, pool &other, const char *copy, bool rebase = false, std::string_view key = {})
    {
        const unsigned flags = rebase ? PMO_REBASE : 0;
        detail::check(pmo_copy_to(handle_, name, key.data(), key.size(), other.handle_, copy, flags, nullptr, nullptr));
    }
    // Moves a detached object to another pool, with rebase at other addresses (pmo_move_to).
    void move_to(const char *name, pool &other, bool rebase = false, std::string_view key = {})
    {
        const unsigned flags = rebase ? PMO_REBASE : 0;
        detail::check(pmo_move_to(handle_, name, key.data(), key.size(), other.handle_, flags, nullptr, nullptr));
    }
    // The ID of a read-only object with these bytes, which is their hash; made if missing
    // (pmo_create_by_content).
    std::array<std::uint8_t, 16> create_by_content(const char *name, std::string_view content)
    {
        std::array<std::uint8_t, 16> id{};
        detail::check(pmo_create_by_content(handle_, name, content.data(), content.size(), id.data()) < 0 ? -1 : 0);
        return id;
    }
    // See pmo_set_reach.
    void set_reach(const char *name, std::uint64_t reach, std::string_view key = {})
    {
        detail::check(pmo_set_reach(handle_, name, key.data(), key.size(), reach));
    }
    // See pmo_set_position_independent.
    void set_position_independent(const char *name, bool is = true, std::string_view key = {})
    {
        detail::check(pmo_set_position_independent(handle_, name, key.data(), key.size(), is));
    }
    // See pmo_rollback.
    void rollback(const char *name, const char *snapshot, std::string_view key = {})
    {
        detail::check(pmo_rollback(handle_, name, snapshot, key.data(), key.size()));
    }
    // See pmo_diff.
    difference diff(const char *older, const char *newer, std::string_view key = {}) const
    {
        detail::collector<std::pair<std::uint64_t, std::uint64_t>> all;
        auto each = [](std::uint64_t first, std::uint64_t count, void *context) noexcept {
            static_cast<detail::collector<std::pair<std::uint64_t, std::uint64_t>> *>(context)->add({first, count});
        };
        struct ::pmo_difference sizes{};
        const int result = ::pmo_diff(handle_, older, newer, key.data(), key.size(), each, &all, &sizes);
        return {all.take(result), sizes.older_size, sizes.newer_size};
    }
    // Destroys the snapshots named NAME@TIME that a policy such as "24h:1h,7d:1d" drops; returns
    // their names (pmo_thin).
    std::vector<std::string> thin(const char *name, const char *keep, std::string_view key = {})
    {
        detail::collector<std::string> all;
        auto each = [](const char *snapshot, void *context) noexcept {
            static_cast<detail::collector<std::string> *>(context)->text(snapshot);
        };
        return all.take(pmo_thin(handle_, name, keep, key.data(), key.size(), each, &all) < 0 ? -1 : 0);
    }
    // See pmo_delete.
    void delete_object(const char *name, std::string_view key = {})
    {
        detail::check(pmo_delete(handle_, name, key.data(), key.size()));
    }
    // See pmo_tie.
    void tie(const char *name, const char *to, std::string_view key = {})
    {
        detail::check(::pmo_tie(handle_, name, to, key.data(), key.size()));
    }
    // See pmo_tie_to_process, pmo_tie_to_thread.
    void tie_to_process(const char *name, std::string_view key = {})
    {
        detail::check(pmo_tie_to_process(handle_, name, key.data(), key.size()));
    }
    void tie_to_thread(const char *name, std::string_view key = {})
    {
        detail::check(pmo_tie_to_thread(handle_, name, key.data(), key.size()));
    }
    // Removes a tie; returns whether there was one.
    bool untie(const char *name, const char *from, std::string_view key = {})
    {
        int was_tied = 0;
        detail::check(pmo_untie(handle_, name, from, key.data(), key.size(), &was_tied));
        return was_tied != 0;
    }
    // The objects that an object is tied to.
    std::vector<struct ::pmo_tie> ties(const char *name) const
    {
        detail::collector<struct ::pmo_tie> all;
        auto each = [](const struct ::pmo_tie *tie, void *context) noexcept {
            static_cast<detail::collector<struct ::pmo_tie> *>(context)->add(*tie);
            return 0;
        };
        return all.take(pmo_ties(handle_, name, each, &all));
    }
    // See pmo_collect.
    struct ::pmo_collected collect()
    {
        struct ::pmo_collected collected;
        detail::check(pmo_collect(handle_, nullptr, nullptr, &collected));
        return collected;
    }
    // Calls progress with the objects examined, and of all. Its exceptions pass at the end.
    template <class F> struct ::pmo_collected collect(F &&progress)
    {
        detail::caller<std::remove_reference_t<F>> caller{progress, {}};
        struct ::pmo_collected collected;
        detail::check(pmo_collect(handle_, caller.call, &caller, &collected));
        caller.rethrow();
        return collected;
    }
    // See pmo_scrub.
    struct ::pmo_scrubbed scrub(const char *name, std::string_view key = {})
    {
        struct ::pmo_scrubbed scrubbed;
        detail::check(pmo_scrub(handle_, name, key.data(), key.size(), nullptr, nullptr, &scrubbed));
        return scrubbed;
    }
    // Lengthens the pool, beside its other users.
    void grow(std::uint64_t length)
    {
        detail::check(::pmo_pool_grow(handle_, length));
    }
    struct ::pmo_pool_info info() const
    {
        struct ::pmo_pool_info info;
        detail::check(::pmo_pool_info(handle_, &info));
        return info;
    }
    // All objects, in no order.
    std::vector<struct ::pmo_stat> list() const
    {
        detail::collector<struct ::pmo_stat> all;
        auto each = [](const struct ::pmo_stat *stat, void *context) noexcept {
            static_cast<detail::collector<struct ::pmo_stat> *>(context)->add(*stat);
            return 0;
        };
        return all.take(pmo_list(handle_, each, &all));
    }
    bool contains(const char *name) const
    {
        struct ::pmo_stat stat;
        if (::pmo_stat(handle_, name, &stat) == 0)
            return true;
        if (pmo_errno() != PMO_ERR_NOT_FOUND)
            throw failure();
        return false;
    }
    struct ::pmo_stat stat(const char *name) const
    {
        struct ::pmo_stat stat;
        detail::check(::pmo_stat(handle_, name, &stat));
        return stat;
    }

    // Flags: PMO_AUDIT, PMO_AUDIT_OBJECTS.
    object attach(const char *name, std::string_view key = {}, unsigned flags = 0) const
    {
        return object(pmo_attach(handle_, name, PMO_WRITE | static_cast<int>(flags), key.data(), key.size()));
    }
    object attach_read(const char *name, std::string_view key = {}) const
    {
        return object(pmo_attach(handle_, name, PMO_READ, key.data(), key.size()));
    }
    // For reading, beside a writer: the state of the last psync, until refresh
    // (pmo_attach_snapshot). Flags: PMO_ANYWHERE.
    object attach_snapshot(const char *name, std::string_view key = {}, unsigned flags = 0) const
    {
        const int wanted = PMO_SNAPSHOT | static_cast<int>(flags);
        return object(pmo_attach(handle_, name, wanted, key.data(), key.size()));
    }

    // See pmo_create_sealed.
    void create_sealed(const char *name, const pmo_create_options &options, const seal_key &seal, const char *label = "")
    {
        detail::check(pmo_create_sealed(handle_, name, &options, seal.handle(), label));
    }
    void create_sealed(const char *name, std::uint64_t size, const seal_key &seal, const char *label = "")
    {
        pmo_create_options options{};
        options.size = size;
        create_sealed(name, options, seal, label);
    }
    // Flags: PMO_AUDIT, PMO_AUDIT_OBJECTS.
    object attach_sealed(const char *name, const seal_key &seal, std::string_view key = {}, unsigned flags = 0) const
    {
        const int wanted = PMO_WRITE | static_cast<int>(flags);
        return object(pmo_attach_sealed(handle_, name, wanted, key.data(), key.size(), seal.handle()));
    }
    object attach_read_sealed(const char *name, const seal_key &seal, std::string_view key = {}) const
    {
        return object(pmo_attach_sealed(handle_, name, PMO_READ, key.data(), key.size(), seal.handle()));
    }
    // For reading, beside a writer (pmo_attach_snapshot_sealed). Flags: PMO_ANYWHERE.
    object attach_snapshot_sealed(const char *name, const seal_key &seal, std::string_view key = {}, unsigned flags = 0) const
    {
        const int wanted = PMO_SNAPSHOT | static_cast<int>(flags);
        return object(pmo_attach_sealed(handle_, name, wanted, key.data(), key.size(), seal.handle()));
    }
    void resize_sealed(const char *name, std::uint64_t size, const seal_key &seal, std::string_view key = {})
    {
        detail::check(pmo_resize_sealed(handle_, name, size, key.data(), key.size(), seal.handle()));
    }
    // See pmo_reencrypt.
    void reencrypt(const char *name, const std::vector<const seal_key *> &seals, std::string_view key = {})
    {
        std::vector<const pmo_seal_key *> handles;
        for (const seal_key *seal : seals)
            handles.push_back(seal->handle());
        detail::check(pmo_reencrypt(handle_, name, key.data(), key.size(), handles.data(), handles.size()));
    }
    // Seals the object by a new key, which next alone opens (pmo_renew_key).
    void renew_key(const char *name, const seal_key &seal, const seal_key &next, std::string_view key = {})
    {
        detail::check(pmo_renew_key(handle_, name, key.data(), key.size(), seal.handle(), next.handle()));
    }
    // See pmo_rename_sealed.
    void rename_sealed(const char *name, const char *new_name, const seal_key &seal, std::string_view key = {})
    {
        detail::check(pmo_rename_sealed(handle_, name, new_name, key.data(), key.size(), seal.handle()));
    }
    // See pmo_bind_name.
    void bind_name(const char *name, const seal_key &seal, std::string_view key = {})
    {
        detail::check(pmo_bind_name(handle_, name, key.data(), key.size(), seal.handle()));
    }
    // See pmo_set_anchor.
    void set_anchor(const char *name, const seal_key &seal, std::string_view key = {})
    {
        detail::check(pmo_set_anchor(handle_, name, key.data(), key.size(), seal.handle()));
    }
    // See pmo_change_signer.
    void change_signer(const char *name, const seal_key &seal, const std::string &path, std::string_view key = {})
    {
        detail::check(pmo_change_signer(handle_, name, key.data(), key.size(), seal.handle(), path.c_str()));
    }
    // The key slots of a sealed object; needs none of their keys.
    std::vector<key_slot> key_slots(const char *name, std::string_view key = {}) const
    {
        detail::collector<key_slot> all;
        auto each = [](const struct ::pmo_key_slot *slot, void *context) noexcept {
            static_cast<detail::collector<key_slot> *>(context)->slot(*slot);
            return 0;
        };
        return all.take(pmo_key_slots(handle_, name, key.data(), key.size(), each, &all));
    }
    // Lets another key open a detached, sealed object; returns the number of its slot
    // (pmo_add_key).
    unsigned add_key(const char *name, const seal_key &seal, const seal_key &added, const char *label = "",
                     std::string_view key = {})
    {
        const int slot = pmo_add_key(handle_, name, key.data(), key.size(), seal.handle(), added.handle(), label);
        detail::check(slot < 0 ? -1 : 0);
        return static_cast<unsigned>(slot);
    }
    // Exchanges a key, as one step; nullptr leaves the slot's label (pmo_change_key).
    unsigned change_key(const char *name, const seal_key &seal, const seal_key &changed, const char *label = nullptr,
                        std::string_view key = {})
    {
        const int slot = pmo_change_key(handle_, name, key.data(), key.size(), seal.handle(), changed.handle(), label);
        detail::check(slot < 0 ? -1 : 0);
        return static_cast<unsigned>(slot);
    }
    void remove_key(const char *name, const seal_key &seal, unsigned slot, std::string_view key = {})
    {
        detail::check(pmo_remove_key(handle_, name, key.data(), key.size(), seal.handle(), slot));
    }

    // The heap in the object of that name; if missing, an object of size bytes is created, with the
    // key for reading and writing. Flags: those of a heap and of attach.
    pmo::heap heap(const char *name, std::uint64_t size, unsigned flags = 0, std::string_view key = {})
    {
        pmo_create_options options{};
        options.size = size;
        options.read_key = options.write_key = key.data();
        options.read_key_len = options.write_key_len = key.size();
        return heap(name, options, flags);
    }
    // With options; attached with the write key.
    pmo::heap heap(const char *name, const pmo_create_options &options, unsigned flags = 0)
    {
        if (!contains(name))
            create(name, options);
        const unsigned audit = flags & (PMO_AUDIT | PMO_AUDIT_OBJECTS);
        std::string_view key{static_cast<const char *>(options.write_key), options.write_key_len};
        return pmo::heap(attach(name, key, audit), flags & ~audit);
    }
    // In a sealed object.
    pmo::heap heap_sealed(const char *name, std::uint64_t size, const seal_key &seal, unsigned flags = 0)
    {
        if (!contains(name))
            create_sealed(name, size, seal);
        const unsigned audit = flags & (PMO_AUDIT | PMO_AUDIT_OBJECTS);
        return pmo::heap(attach_sealed(name, seal, {}, audit), flags & ~audit);
    }
    // For reading: any number of processes at a time.
    pmo::heap heap_read(const char *name, std::string_view key = {}) const { return pmo::heap(attach_read(name, key)); }
    // For reading, beside a writer.
    pmo::heap heap_snapshot_sealed(const char *name, const seal_key &seal, std::string_view key = {}) const
    {
        return pmo::heap(attach_snapshot_sealed(name, seal, key));
    }
    pmo::heap heap_snapshot(const char *name, std::string_view key = {}) const
    {
        return pmo::heap(attach_snapshot(name, key));
    }

private:
    explicit pool(pmo_pool *handle) : handle_(detail::check(handle)) {}

    template <class T> static transactional<T> beginning_with(void *base)
    {
        transactional<T> attached(detail::check(base));
        detail::check(pmo_tx_begin_with(base, sizeof(T)));
        return attached;
    }

    pmo_pool *handle_;
};

// psync of several objects of one pool as one step.
template <class... Objects> void psync_all(Objects &...objects)
{
    void *all[] = {objects.data()...};
    detail::check(pmo_psync_all(all, sizeof...(Objects), 0));
}

// As psync_all, with a consistent cut: other threads may store meanwhile.
template <class... Objects> void psync_all_cut(Objects &...objects)
{
    void *all[] = {objects.data()...};
    detail::check(pmo_psync_all(all, sizeof...(Objects), PMO_PSYNC_CUT));
}

} // namespace pmo

#endif
