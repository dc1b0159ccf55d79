// Persistent memory objects for C++17: the interface of pmo.h with owners, exceptions, and an allocator
// with which the containers of the standard library live in an object.
//
//     pmo::pool pool = pmo::pool::open_or_format("notes.pmo", 64 << 20);
//     pmo::heap heap = pool.heap("notes", 1 << 20);
//     auto &notes = heap.root<pmo::map<pmo::string, pmo::vector<pmo::string>>>("notes");
//     notes[heap.text("today")].emplace_back("water the plants");
//     heap.psync();
//
// Everything since the psync before becomes durable as one step; after a crash at any instant the object,
// containers included, is exactly as some psync left it.
#ifndef PMO_HPP
#define PMO_HPP

#include <pmo.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <scoped_allocator>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmo {

// ---- errors ----

// The error of a function of pmo.h: code() is a PMO_ERR_*, what() the message.
class error : public std::exception {
public:
    error() : code_(pmo_errno()), message_(std::make_shared<std::string>(pmo_error_message())) {}
    int code() const noexcept { return code_; }
    const char *what() const noexcept override { return message_->c_str(); }

private:
    int code_;
    std::shared_ptr<std::string> message_; // shared, as copies of exceptions must not throw
};

namespace detail {

inline void check(int result)
{
    if (result != 0)
        throw error();
}

template <class P> P *check(P *result)
{
    if (result == nullptr)
        throw error();
    return result;
}

} // namespace detail

// ---- the allocator ----

namespace detail {

// Allocates in the object with this base. All of its state is that address, which is the object's in every
// run: containers that keep an allocator may lie in the object themselves.
template <class T> class object_allocator {
public:
    using value_type = T;
    // Elements, not blocks, move between objects.
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::false_type;
    using propagate_on_container_swap = std::false_type;
    using is_always_equal = std::false_type;

    // In the object that has this address.
    explicit object_allocator(const void *address)
    {
        struct ::pmo_object known;
        check(::pmo_object(address, &known));
        base_ = known.base;
    }
    template <class U> object_allocator(const object_allocator<U> &other) noexcept : base_(other.base()) {}

    T *allocate(std::size_t count)
    {
        if (count > static_cast<std::size_t>(-1) / sizeof(T))
            throw std::bad_array_new_length();
        std::size_t size = count * sizeof(T);
        void *block = alignof(T) > 16 ? pmo_aligned_alloc(base_, alignof(T), size) : pmo_malloc(base_, size);
        return static_cast<T *>(check(block));
    }

    // A block that cannot be freed is none, or is free already: the program is wrong, as with std::free.
    void deallocate(T *block, std::size_t) noexcept
    {
        if (pmo_free(block) != 0) {
            std::fprintf(stderr, "%s\n", pmo_error_message());
            std::abort();
        }
    }

    void *base() const noexcept { return base_; }

    template <class U> bool operator==(const object_allocator<U> &other) const noexcept { return base_ == other.base(); }
    template <class U> bool operator!=(const object_allocator<U> &other) const noexcept { return base_ != other.base(); }

private:
    void *base_;
};

} // namespace detail

// Gives what it constructs itself as the allocator, where that takes one: strings in vectors in maps are in the
// object, too. Allocations throw pmo::error.
template <class T> class allocator : public detail::object_allocator<T> {
public:
    template <class U> struct rebind {
        using other = allocator<U>;
    };

    using detail::object_allocator<T>::object_allocator;
    template <class U> allocator(const allocator<U> &other) noexcept : detail::object_allocator<T>(other) {}
    template <class U> allocator(const detail::object_allocator<U> &other) noexcept : detail::object_allocator<T>(other) {}

    template <class U, class... Args> void construct(U *where, Args &&...args)
    {
        using scoped = std::scoped_allocator_adaptor<detail::object_allocator<T>>;
        scoped(static_cast<detail::object_allocator<T> &>(*this)).construct(where, std::forward<Args>(args)...);
    }
};

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;

// A hash that stays what it is: tables that lie in objects outlive libraries.
struct string_hash {
    std::size_t operator()(std::string_view text) const noexcept
    {
        std::uint64_t hash = 0xcbf29ce484222325;
        for (unsigned char c : text)
            hash = (hash ^ c) * 0x100000001b3;
        return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
};

// An order in which all kinds of strings can be looked up.
struct less {
    using is_transparent = void;
    template <class A, class B> bool operator()(const A &a, const B &b) const
    {
        if constexpr (std::is_convertible_v<const A &, std::string_view> && std::is_convertible_v<const B &, std::string_view>)
            return std::string_view(a) < std::string_view(b);
        else
            return a < b;
    }
};

} // namespace pmo

namespace std {
template <> struct hash<pmo::string> : pmo::string_hash {};
} // namespace std

namespace pmo {

template <class T> using vector = std::vector<T, allocator<T>>;
template <class T> using list = std::list<T, allocator<T>>;
template <class T> using deque = std::deque<T, allocator<T>>;
template <class K, class Compare = less> using set = std::set<K, Compare, allocator<K>>;
template <class K, class V, class Compare = less>
using map = std::map<K, V, Compare, allocator<std::pair<const K, V>>>;
template <class K, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
using unordered_set = std::unordered_set<K, Hash, Equal, allocator<K>>;
template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
using unordered_map = std::unordered_map<K, V, Hash, Equal, allocator<std::pair<const K, V>>>;

// ---- types of roots ----

// The layout of a T: specialised for numbers, pointers, arrays, pairs and containers; for structs by
// PMO_DESCRIBE. How a container orders or hashes is not part of it.
template <class T, class = void> struct type_of;

namespace detail {

// A type whose name is made of others' and whose parts, if any, are described.
class made_type {
public:
    made_type(pmo_kind kind, std::string name, std::size_t size, std::size_t align, std::vector<pmo_field> fields = {})
        : name_(std::move(name)), fields_(std::move(fields)),
          type_{name_.c_str(), size, fields_.data(), fields_.size(), kind, align}
    {
    }
    made_type(const made_type &) = delete;
    made_type &operator=(const made_type &) = delete;
    const pmo_type *get() const { return &type_; }

private:
    std::string name_;
    std::vector<pmo_field> fields_;
    pmo_type type_;
};

// By name, without looking into it: types may lead back to themselves.
template <class T> std::string name_of() { return type_of<std::remove_cv_t<T>>::name(); }
template <class T> const pmo_type *get() { return type_of<std::remove_cv_t<T>>::get(); }

template <class... T> struct named;
template <class T> struct named<T> {
    static std::string names() { return name_of<T>(); }
};
template <class T, class... Rest> struct named<T, Rest...> {
    static std::string names() { return name_of<T>() + ", " + named<Rest...>::names(); }
};

template <class T> pmo_field part(const char *name, std::size_t offset)
{
    // The name of the type is in its own description, below.
    return pmo_field{name, "", offset, sizeof(T), get<T>};
}

// Containers of libstdc++ have their layout by its binary interface and by their elements.
#if defined _GLIBCXX_USE_CXX11_ABI && _GLIBCXX_USE_CXX11_ABI
#define PMO_LIBRARY "libstdc++11 "
#elif defined _LIBCPP_VERSION
#define PMO_LIBRARY "libc++ "
#else
#define PMO_LIBRARY "std "
#endif

template <class Self, class... Parts> struct container {
    static const pmo_type *describe(const char *name)
    {
        static const made_type type(PMO_OPAQUE, name + ("<" + named<Parts...>::names() + ">"), sizeof(Self),
                                    alignof(Self), {part<Parts>("element", 0)...});
        return type.get();
    }
};

} // namespace detail

#define PMO_TYPE_BY_NAME(type, kind, text)                                                                             \
    template <> struct type_of<type> {                                                                                 \
        static std::string name() { return text; }                                                                     \
        static const pmo_type *get()                                                                                   \
        {                                                                                                              \
            static const detail::made_type made(kind, text, sizeof(type), alignof(type));                             \
            return made.get();                                                                                         \
        }                                                                                                              \
    };
PMO_TYPE_BY_NAME(bool, PMO_SCALAR, "bool")
PMO_TYPE_BY_NAME(float, PMO_SCALAR, "float")
PMO_TYPE_BY_NAME(double, PMO_SCALAR, "double")
PMO_TYPE_BY_NAME(char, PMO_SCALAR, "char")
PMO_TYPE_BY_NAME(string, PMO_OPAQUE, PMO_LIBRARY "string")
#undef PMO_TYPE_BY_NAME

// Integers are what they hold: long and long long are the same.
template <class T> struct type_of<T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>>> {
    static std::string name()
    {
        const char *kind = std::is_enum_v<T> ? "enum" : std::is_signed_v<T> ? "int" : "uint";
        return kind + std::to_string(8 * sizeof(T));
    }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_SCALAR, name(), sizeof(T), alignof(T));
        return made.get();
    }
};

template <class T> struct type_of<T *> {
    static std::string name() { return "pointer"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_POINTER, name(), sizeof(T *), alignof(T *));
        return made.get();
    }
};

template <class T, std::size_t N> struct type_of<T[N]> {
    static std::string name() { return detail::name_of<T>() + "[" + std::to_string(N) + "]"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_ARRAY, name(), sizeof(T[N]), alignof(T), {detail::part<T>("element", 0)});
        return made.get();
    }
};

template <class T, std::size_t N> struct type_of<std::array<T, N>> : type_of<T[N]> {};

template <class A, class B> struct type_of<std::pair<A, B>> {
    static std::string name() { return "pair<" + detail::named<A, B>::names() + ">"; }
    static const pmo_type *get()
    {
        using self = std::pair<A, B>;
        constexpr std::size_t second = (sizeof(A) + alignof(B) - 1) / alignof(B) * alignof(B);
        static const detail::made_type made(PMO_STRUCT, name(), sizeof(self), alignof(self),
                                            {detail::part<A>("first", 0), detail::part<B>("second", second)});
        return made.get();
    }
};

#define PMO_CONTAINER(text, parameters, self, ...)                                                                     \
    template <parameters> struct type_of<self> {                                                                       \
        static std::string name() { return PMO_LIBRARY text "<" + detail::named<__VA_ARGS__>::names() + ">"; }         \
        static const pmo_type *get() { return detail::container<self, __VA_ARGS__>::describe(PMO_LIBRARY text); }      \
    };
#define PMO_COMMA ,
PMO_CONTAINER("vector", class T, vector<T>, T)
PMO_CONTAINER("list", class T, list<T>, T)
PMO_CONTAINER("deque", class T, deque<T>, T)
PMO_CONTAINER("set", class T PMO_COMMA class C, set<T PMO_COMMA C>, T)
PMO_CONTAINER("map", class K PMO_COMMA class V PMO_COMMA class C, map<K PMO_COMMA V PMO_COMMA C>, K, V)
PMO_CONTAINER("unordered_set", class T PMO_COMMA class H PMO_COMMA class E, unordered_set<T PMO_COMMA H PMO_COMMA E>, T)
PMO_CONTAINER("unordered_map", class K PMO_COMMA class V PMO_COMMA class H PMO_COMMA class E,
              unordered_map<K PMO_COMMA V PMO_COMMA H PMO_COMMA E>, K, V)
#undef PMO_COMMA
#undef PMO_CONTAINER
#undef PMO_LIBRARY

// Describes a struct, outside of any namespace: PMO_DESCRIBE(place, PMO_MEMBER(name), PMO_MEMBER(where)).
#define PMO_DESCRIBE(struct_name, ...)                                                                                 \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"")                            \
    template <> struct pmo::type_of<struct_name> {                                                                     \
        static std::string name() { return #struct_name; }                                                             \
        static const pmo_type *get()                                                                                   \
        {                                                                                                              \
            using pmo_self = struct_name;                                                                              \
            static const pmo::detail::made_type made(PMO_STRUCT, name(), sizeof(pmo_self), alignof(pmo_self),          \
                                                     {__VA_ARGS__});                                           \
            return made.get();                                                                                         \
        }                                                                                                              \
    };                                                                                                                 \
    _Pragma("GCC diagnostic pop")
#define PMO_MEMBER(member) pmo::detail::part<decltype(pmo_self::member)>(#member, offsetof(pmo_self, member))

// ---- attached objects ----

class pool;

// An attached object; the destructor detaches it, and what was not psynced is forgotten.
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
    // Marks bytes from an address in the object on as stored to: for stores that bypass the page tables (pmo_mark_dirty).
    void mark_dirty(const void *address, std::size_t size) { detail::check(pmo_mark_dirty(address, size)); }
    // Brings bytes from an address in the object on into memory, and returns how many of them are there then (pmo_prefault).
    std::size_t prefault(const void *address, std::size_t size) const
    {
        const std::int64_t filled = pmo_prefault(address, size);
        detail::check(filled < 0 ? -1 : 0);
        return static_cast<std::size_t>(filled);
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

// An attached object with a heap in it.
class heap : public object {
public:
    // Flags: PMO_HEAP_DEBUG, PMO_HEAP_GROW. A blank object attached for writing gets a heap.
    explicit heap(object &&attached, unsigned flags = 0) : object(std::move(attached))
    {
        detail::check(writable() ? pmo_heap_open_or_format(base_, flags) : pmo_heap_open(base_, flags));
    }

    template <class T = std::byte> allocator<T> get_allocator() const { return allocator<T>(base_); }

    // A string in the heap, to be a key.
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

    template <class T> void destroy(T *value)
    {
        if (value == nullptr)
            return;
        value->~T();
        get_allocator<T>().deallocate(value, 1);
    }

    // The root of that name, made of the arguments if there is none. One of another type, or another layout
    // of the type, is an error whose message shows both.
    template <class T, class... Args> T &root(const char *name, Args &&...args)
    {
        if (T *found = find<T>(name))
            return *found;
        T *made = make<T>(std::forward<Args>(args)...);
        if (pmo_root_create(base_, name, made, sizeof(T), type_of<T>::get()) != 0) {
            error failed;
            destroy(made);
            throw failed;
        }
        return *made;
    }

    // The root of that name, or nullptr if there is none. In an object attached for reading it is not to be
    // stored to.
    template <class T> T *find(const char *name) const
    {
        static_assert(!std::is_polymorphic_v<T>, "tables of virtual functions are elsewhere in the next run");
        void *found = pmo_root(base_, name, type_of<std::remove_cv_t<T>>::get());
        if (found == nullptr && pmo_errno() != PMO_ERR_ROOT_MISSING)
            throw error();
        return static_cast<T *>(found);
    }

    // Destroys a root and takes its name away; whether there was one.
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

    // Everything that is wrong in the heap, a line each.
    std::vector<std::string> check() const
    {
        struct collector {
            std::vector<std::string> lines;
            std::exception_ptr failed;
        } all;
        auto each = [](std::uint64_t offset, const char *what, void *context) noexcept {
            auto *all = static_cast<collector *>(context);
            try {
                all->lines.push_back("at " + std::to_string(offset) + ": " + what);
            } catch (...) {
                all->failed = std::current_exception();
            }
        };
        if (pmo_heap_check(base_, each, &all) < 0)
            throw error();
        if (all.failed)
            std::rethrow_exception(all.failed);
        return std::move(all.lines);
    }
};

// ---- pools ----

// An open pool; objects attached from it may outlive it.
class pool {
public:
    explicit pool(const char *path, unsigned flags = 0) : pool(pmo_open(path, flags)) {}
    explicit pool(const std::string &path, unsigned flags = 0) : pool(path.c_str(), flags) {}
    static pool format(const std::string &path, std::uint64_t size, unsigned flags = 0)
    {
        return pool(pmo_format(path.c_str(), size, flags));
    }
    static pool open_or_format(const std::string &path, std::uint64_t size, unsigned flags = 0)
    {
        return pool(pmo_open_or_format(path.c_str(), size, flags));
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

    /** See pmo_wait. */
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
    bool contains(const char *name) const
    {
        struct ::pmo_stat stat;
        if (::pmo_stat(handle_, name, &stat) == 0)
            return true;
        if (pmo_errno() != PMO_ERR_NOT_FOUND)
            throw error();
        return false;
    }
    struct ::pmo_stat stat(const char *name) const
    {
        struct ::pmo_stat stat;
        detail::check(::pmo_stat(handle_, name, &stat));
        return stat;
    }

    object attach(const char *name, std::string_view key = {}) const
    {
        return object(pmo_attach(handle_, name, PMO_WRITE, key.data(), key.size()));
    }
    object attach_read(const char *name, std::string_view key = {}) const
    {
        return object(pmo_attach(handle_, name, PMO_READ, key.data(), key.size()));
    }

    // The heap in the object of that name; an object of size bytes is created if there is none.
    pmo::heap heap(const char *name, std::uint64_t size, unsigned flags = 0)
    {
        if (!contains(name))
            create(name, size);
        return pmo::heap(attach(name), flags);
    }
    // The same for reading: any number of processes at a time.
    pmo::heap heap_read(const char *name) const { return pmo::heap(attach_read(name)); }

private:
    explicit pool(pmo_pool *handle) : handle_(detail::check(handle)) {}

    pmo_pool *handle_;
};

// psync of several objects of one pool as one step.
template <class... Objects> void psync_all(Objects &...objects)
{
    void *all[] = {objects.data()...};
    detail::check(pmo_psync_all(all, sizeof...(Objects), 0));
}

} // namespace pmo

#endif
