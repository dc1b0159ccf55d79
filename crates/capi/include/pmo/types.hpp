// Descriptions of types, which roots are checked against. Part of pmo.hpp.
#ifndef PMO_TYPES_HPP
#define PMO_TYPES_HPP

#include <pmo/containers.hpp>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <cxxabi.h>

namespace pmo {
namespace detail {

template <class T, class = void> inline constexpr bool has_elements = false;
template <class T> inline constexpr bool has_elements<T, std::void_t<typename T::allocator_type, typename T::value_type>> = true;

} // namespace detail

// The layout of a T: specialised for numbers, pointers, arrays, pairs, containers; for structs by
// PMO_DESCRIBE, for other libraries' containers by pmo::opaque. A container's order or hash is part
// of it, by its description or its name, unless it is_unnamed.
template <class T, class = void> struct type_of {
    // A mark to test: the target of a pointer need not be described.
    using undescribed = void;
    static std::string name()
    {
        static_assert(detail::persists<T>::value);
        static_assert(!detail::has_elements<T>,
                      "a container of another library has no description yet; with C for its type, and T for that of its elements: "
                      "template <> struct pmo::type_of<C> : pmo::opaque<C, T> { static constexpr const char *text = \"library "
                      "version container\"; };");
        static_assert(detail::has_elements<T>, "no description of this type: PMO_DESCRIBE(type, PMO_MEMBER(member)...) makes one of "
                                               "a struct, pmo::opaque one of another library's container");
        return {};
    }
    static const pmo_type *get()
    {
        name();
        return nullptr;
    }
};

namespace detail {

// A type whose name is made of others' names, and whose parts, if any, are described.
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

// Types may refer to themselves: the name alone.
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
    static_assert(persists<T>::value);
    // The type's name is in its own description, below.
    return pmo_field{name, "", offset, sizeof(T), get<T>, nullptr};
}

template <class T, class = void> inline constexpr bool is_described = true;
template <class T> inline constexpr bool is_described<T, std::void_t<typename type_of<T>::undescribed>> = false;

// A pointer's target, if it is a described class; evaluated when all types are declared.
template <class T> std::vector<pmo_field> target()
{
    if constexpr (std::is_class_v<T>) {
        if constexpr (is_described<std::remove_cv_t<T>>)
            return {pmo_field{"target", "", 0, sizeof(T), get<T>, nullptr}};
    }
    return {};
}

// Described arguments of templates: types by name, values as numbers.
template <class T> std::string argument() { return name_of<T>(); }
template <auto V> std::string argument() { return std::to_string(V); }

// The T of a type_of. Within a specialisation, the program's name for T may mean something of pmo.
template <class> struct described_by;
template <class T, class E> struct described_by<type_of<T, E>> {
    using type = T;
};

} // namespace detail

// The base of descriptions of other containers. Tools show its name and the types Parts, and take
// every word in its bytes that could be an address for one. The name is the constant text, and
// should include the version of the layout:
//
//     template <class T, class A>
//     struct pmo::type_of<boost::container::vector<T, A>>
//         : pmo::opaque<boost::container::vector<T, A>, T> {
//         static constexpr const char *text = "boost 1.74 vector";
//     };
template <class Self, class... Parts> struct opaque {
    static std::string name()
    {
        std::string name = type_of<Self>::text;
        if constexpr (sizeof...(Parts) > 0)
            name += "<" + detail::named<Parts...>::names() + ">";
        return name;
    }
    static const pmo_type *get()
    {
        static_assert(detail::persists<Self>::value);
        static const detail::made_type made(PMO_OPAQUE, name(), sizeof(Self), alignof(Self),
                                            {detail::part<Parts>("element", 0)...});
        return made.get();
    }
};

namespace detail {

template <class... T> struct types {};

// The functions that containers have if the program names none.
template <class F> inline constexpr bool is_default = is_one_of<F, less, string_hash>;
template <class T> inline constexpr bool is_default<std::less<T>> = true;
template <class T> inline constexpr bool is_default<std::hash<T>> = true;
template <class T> inline constexpr bool is_default<std::equal_to<T>> = true;
#if defined __cpp_lib_ranges
template <> inline constexpr bool is_default<std::ranges::less> = true;
template <> inline constexpr bool is_default<std::ranges::equal_to> = true;
#endif

// Whether F is no closure and no struct without a name, as GCC and Clang show types.
template <class F> constexpr bool has_a_name()
{
    constexpr std::string_view shown = __PRETTY_FUNCTION__;
    for (std::string_view part : {"<lambda(", "(lambda at ", "<unnamed struct>", "<unnamed class>", "(unnamed struct at ", "(unnamed class at "})
        if (shown.find(part) != std::string_view::npos)
            return false;
    return true;
}

// Stands for a memberless function F that is not described.
template <class F> struct function {};

} // namespace detail

// Whether a memberless order or hash is no part of a container's description: those that containers
// have by default. Data of programs that were built before other functions were a part open with
//
//     template <> inline constexpr bool pmo::is_unnamed<by_price> = true;
template <class F> inline constexpr bool is_unnamed = detail::is_default<F>;

template <class F> struct type_of<detail::function<F>> {
    static std::string name()
    {
        static_assert(detail::has_a_name<F>(), "a lambda has no name that lasts: order and hash of a container are structs with an operator()");
#if defined __GXX_RTTI
        const std::unique_ptr<char, void (*)(void *)> text(abi::__cxa_demangle(typeid(F).name(), nullptr, nullptr, nullptr), std::free);
        return text ? text.get() : typeid(F).name();
#else
        static_assert(detail::never<F>, "-fno-rtti hides the name of this order or hash: PMO_DESCRIBE(type, ) names it");
        return {};
#endif
    }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_STRUCT, name(), sizeof(F), alignof(F));
        return made.get();
    }
};

// Of any elements, as std::less.
template <class T> struct type_of<detail::function<std::greater<T>>> {
    static std::string name() { return "greater"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_STRUCT, name(), 1, 1);
        return made.get();
    }
};

namespace detail {

// The description of a container with these elements, and of functions that order or hash them.
template <class Self, class Parts, class Functions> struct ordered;
template <class Self, class... Parts> struct ordered<Self, types<Parts...>, types<>> : opaque<Self, Parts...> {};
template <class Self, class... Parts, class F, class... Rest>
struct ordered<Self, types<Parts...>, types<F, Rest...>>
    : std::conditional_t<!std::is_empty_v<F> || is_described<F>, ordered<Self, types<Parts..., F>, types<Rest...>>,
                         std::conditional_t<is_unnamed<F>, ordered<Self, types<Parts...>, types<Rest...>>,
                                            ordered<Self, types<Parts..., function<F>>, types<Rest...>>>> {
};

} // namespace detail

#define PMO_TYPE_BY_NAME(type, text)                                                                                   \
    template <> struct type_of<type> {                                                                                 \
        static std::string name() { return text; }                                                                     \
        static const pmo_type *get()                                                                                   \
        {                                                                                                              \
            static const detail::made_type made(PMO_SCALAR, text, sizeof(type), alignof(type));                        \
            return made.get();                                                                                         \
        }                                                                                                              \
    };
PMO_TYPE_BY_NAME(bool, "bool")
PMO_TYPE_BY_NAME(float, "float")
PMO_TYPE_BY_NAME(double, "double")
PMO_TYPE_BY_NAME(long double, "long double")
PMO_TYPE_BY_NAME(char, "char")
#undef PMO_TYPE_BY_NAME

// long and long long are the same.
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
    static_assert(detail::persists<T *>::value);
    static std::string name() { return "pointer"; }
    static const pmo_type *get()
    {
        static const detail::made_type made(PMO_POINTER, name(), sizeof(T *), alignof(T *), detail::target<T>());
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

} // namespace pmo

// Describes a struct, outside of any namespace: PMO_DESCRIBE(place, PMO_MEMBER(name),
// PMO_MEMBER(where)). A class with private members to describe says PMO_FRIEND in its body.
// PMO_DESCRIBE_WAS(v1::place, "place", …) describes an earlier version of place, for
// heap::root_from.
#define PMO_DESCRIBE(struct_name, ...) PMO_DESCRIBE_WAS(struct_name, #struct_name, __VA_ARGS__)
#define PMO_DESCRIBE_WAS(struct_name, its_name, ...)                                                                   \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"")                            \
    template <> struct pmo::type_of<struct_name> {                                                                     \
        using pmo_self = pmo::detail::described_by<type_of>::type;                                                     \
        static_assert(pmo::detail::persists<pmo_self>::value);                                                         \
        static std::string name() { return its_name; }                                                                 \
        static const pmo_type *get()                                                                                   \
        {                                                                                                              \
            static const pmo::detail::made_type made(PMO_STRUCT, name(), sizeof(pmo_self), alignof(pmo_self),          \
                                                     {__VA_ARGS__});                                                   \
            return made.get();                                                                                         \
        }                                                                                                              \
    };                                                                                                                 \
    _Pragma("GCC diagnostic pop")
#define PMO_MEMBER(member) pmo::detail::part<decltype(pmo_self::member)>(#member, offsetof(pmo_self, member))
#define PMO_FRIEND template <class, class> friend struct ::pmo::type_of

// Describes a class template: its parameters, its name, at most 4 arguments, and its members:
//
//     PMO_DESCRIBE_TEMPLATE((class T, std::size_t N), ring, (T, N),
//                           PMO_MEMBER(next), PMO_MEMBER(items))
#define PMO_DESCRIBE_TEMPLATE(parameters, template_name, arguments, ...)                                               \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"")                            \
    template <PMO_INNER parameters> struct pmo::type_of<template_name<PMO_INNER arguments>> {                          \
        using pmo_self = typename pmo::detail::described_by<type_of>::type;                                            \
        static std::string name() { return #template_name "<" + PMO_ARGUMENTS arguments + ">"; }                       \
        static const pmo_type *get()                                                                                   \
        {                                                                                                              \
            static_assert(pmo::detail::persists<pmo_self>::value);                                                     \
            static const pmo::detail::made_type made(PMO_STRUCT, name(), sizeof(pmo_self), alignof(pmo_self),          \
                                                     {__VA_ARGS__});                                                   \
            return made.get();                                                                                         \
        }                                                                                                              \
    };                                                                                                                 \
    _Pragma("GCC diagnostic pop")
#define PMO_INNER(...) __VA_ARGS__
#define PMO_ARGUMENTS(...) PMO_ARGUMENTS_OF(__VA_ARGS__, PMO_ARGUMENTS_4, PMO_ARGUMENTS_3, PMO_ARGUMENTS_2, PMO_ARGUMENTS_1, 0)(__VA_ARGS__)
#define PMO_ARGUMENTS_OF(a, b, c, d, chosen, ...) chosen
#define PMO_ARGUMENTS_1(a) pmo::detail::argument<a>()
#define PMO_ARGUMENTS_2(a, ...) PMO_ARGUMENTS_1(a) + ", " + PMO_ARGUMENTS_1(__VA_ARGS__)
#define PMO_ARGUMENTS_3(a, ...) PMO_ARGUMENTS_1(a) + ", " + PMO_ARGUMENTS_2(__VA_ARGS__)
#define PMO_ARGUMENTS_4(a, ...) PMO_ARGUMENTS_1(a) + ", " + PMO_ARGUMENTS_3(__VA_ARGS__)

#endif
