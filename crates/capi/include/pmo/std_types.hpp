// Descriptions of the standard library's types. Part of pmo.hpp.
#ifndef PMO_STD_TYPES_HPP
#define PMO_STD_TYPES_HPP

#include <pmo/types.hpp>

#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <ratio>
#include <tuple>
#include <variant>

// The layout of types of libstdc++ and libc++ follows their binary interfaces.
#if defined _GLIBCXX_USE_CXX11_ABI && _GLIBCXX_USE_CXX11_ABI
#define PMO_LIBRARY "libstdc++11 "
#elif defined _LIBCPP_VERSION
#define PMO_LIBRARY "libc++ "
#else
#define PMO_LIBRARY "std "
#endif

namespace pmo {
namespace detail {

// Containers with any of an object's allocators have one layout.
template <class A> using in_object = std::enable_if_t<std::is_base_of_v<object_allocator<typename A::value_type>, A>>;

// A standard struct whose bytes are one part.
template <class Self, class Part> const pmo_type *whole(const std::string &name, const char *part_name)
{
    static const made_type made(PMO_STRUCT, name, sizeof(Self), alignof(Self), {part<Part>(part_name, 0)});
    return made.get();
}

template <class C> constexpr const char *string_name = PMO_LIBRARY "string";
template <> inline constexpr const char *string_name<wchar_t> = PMO_LIBRARY "wstring";
template <> inline constexpr const char *string_name<char16_t> = PMO_LIBRARY "u16string";
template <> inline constexpr const char *string_name<char32_t> = PMO_LIBRARY "u32string";

} // namespace detail

template <class C, class Traits, class A>
struct type_of<std::basic_string<C, Traits, A>, detail::in_object<A>> : opaque<std::basic_string<C, Traits, A>> {
    static constexpr const char *text = detail::string_name<C>;
};

// The last parameter is the allocator; behind the arguments are the types that tools show, and the
// functions that order or hash.
#define PMO_CONTAINER(container, parameters, arguments, elements, functions)                                           \
    template <PMO_INNER parameters, class A>                                                                           \
    struct type_of<std::container<PMO_INNER arguments, A>, detail::in_object<A>>                                       \
        : detail::ordered<std::container<PMO_INNER arguments, A>, detail::types<PMO_INNER elements>,                   \
                          detail::types<PMO_INNER functions>> {                                                        \
        static constexpr const char *text = PMO_LIBRARY #container;                                                    \
    };
PMO_CONTAINER(vector, (class T), (T), (T), ())
PMO_CONTAINER(list, (class T), (T), (T), ())
PMO_CONTAINER(forward_list, (class T), (T), (T), ())
PMO_CONTAINER(deque, (class T), (T), (T), ())
PMO_CONTAINER(set, (class T, class C), (T, C), (T), (C))
PMO_CONTAINER(multiset, (class T, class C), (T, C), (T), (C))
PMO_CONTAINER(map, (class K, class V, class C), (K, V, C), (K, V), (C))
PMO_CONTAINER(multimap, (class K, class V, class C), (K, V, C), (K, V), (C))
PMO_CONTAINER(unordered_set, (class T, class H, class E), (T, H, E), (T), (H, E))
PMO_CONTAINER(unordered_multiset, (class T, class H, class E), (T, H, E), (T), (H, E))
PMO_CONTAINER(unordered_map, (class K, class V, class H, class E), (K, V, H, E), (K, V), (H, E))
PMO_CONTAINER(unordered_multimap, (class K, class V, class H, class E), (K, V, H, E), (K, V), (H, E))
#undef PMO_CONTAINER

// Adapters, by the container that they adapt.
#define PMO_ADAPTER(adapter, parameters, arguments, functions)                                                         \
    template <PMO_INNER parameters>                                                                                    \
    struct type_of<std::adapter<PMO_INNER arguments>>                                                                  \
        : detail::ordered<std::adapter<PMO_INNER arguments>, detail::types<C>, detail::types<PMO_INNER functions>> {   \
        static constexpr const char *text = PMO_LIBRARY #adapter;                                                      \
    };
PMO_ADAPTER(stack, (class T, class C), (T, C), ())
PMO_ADAPTER(queue, (class T, class C), (T, C), ())
PMO_ADAPTER(priority_queue, (class T, class C, class Compare), (T, C, Compare), (Compare))
#undef PMO_ADAPTER

template <class T> struct type_of<std::optional<T>> : opaque<std::optional<T>, T> {
    static constexpr const char *text = PMO_LIBRARY "optional";
};
template <class... T> struct type_of<std::variant<T...>> : opaque<std::variant<T...>, T...> {
    static constexpr const char *text = PMO_LIBRARY "variant";
};
template <> struct type_of<std::monostate> : opaque<std::monostate> {
    static constexpr const char *text = "monostate";
};

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

// Elements are where std::get finds them; empty ones have no bytes.
template <class... T> struct type_of<std::tuple<T...>> {
    using self = std::tuple<T...>;
    static std::string name()
    {
        if constexpr (sizeof...(T) == 0)
            return "tuple<>";
        else
            return "tuple<" + detail::named<T...>::names() + ">";
    }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_STRUCT, name(), sizeof(self), alignof(self),
                                            fields(std::index_sequence_for<T...>()));
        return made.get();
    }

private:
    template <std::size_t... I> static std::vector<pmo_field> fields(std::index_sequence<I...>)
    {
        static const std::array<std::string, sizeof...(T)> names{std::to_string(I)...};
        std::vector<pmo_field> fields;
        (add<I>(fields, names[I].c_str()), ...);
        return fields;
    }
    template <std::size_t I> static void add(std::vector<pmo_field> &fields, const char *name)
    {
        using element = std::tuple_element_t<I, self>;
        alignas(self) static unsigned char bytes[sizeof(self)];
        auto *found = reinterpret_cast<const unsigned char *>(std::addressof(std::get<I>(reinterpret_cast<self &>(bytes))));
        if constexpr (!std::is_empty_v<element>)
            fields.push_back(detail::part<element>(name, static_cast<std::size_t>(found - bytes)));
    }
};

template <class T> struct type_of<std::atomic<T>> {
    static std::string name() { return "atomic<" + detail::name_of<T>() + ">"; }
    static const pmo_type *get() { return detail::whole<std::atomic<T>, T>(name(), "value"); }
};

template <class T> struct type_of<std::complex<T>> {
    static std::string name() { return "complex<" + detail::name_of<T>() + ">"; }
    static const pmo_type *get() { return detail::whole<std::complex<T>, T[2]>(name(), "parts"); }
};

template <std::size_t N> struct type_of<std::bitset<N>> {
    using word = std::conditional_t<N == 0, unsigned char, unsigned long>;
    static std::string name() { return "bitset<" + std::to_string(N) + ">"; }
    static const pmo_type *get()
    {
        return detail::whole<std::bitset<N>, word[sizeof(std::bitset<N>) / sizeof(word)]>(name(), "words");
    }
};

template <class Rep, class Period> struct type_of<std::chrono::duration<Rep, Period>> {
    static std::string name()
    {
        return "duration<" + detail::name_of<Rep>() + ", " + std::to_string(Period::num) + "/" + std::to_string(Period::den) + ">";
    }
    static const pmo_type *get() { return detail::whole<std::chrono::duration<Rep, Period>, Rep>(name(), "count"); }
};

// Times of a steady clock compare with those of the same boot alone.
template <class Clock, class Duration> struct type_of<std::chrono::time_point<Clock, Duration>> {
    static std::string name()
    {
        const char *clock = std::is_same_v<Clock, std::chrono::system_clock> ? "system"
                            : std::is_same_v<Clock, std::chrono::steady_clock> ? "steady"
                                                                                : "other";
        return std::string("time<") + clock + ", " + detail::name_of<Duration>() + ">";
    }
    static const pmo_type *get() { return detail::whole<std::chrono::time_point<Clock, Duration>, Duration>(name(), "since"); }
};

} // namespace pmo

#undef PMO_LIBRARY

#endif
