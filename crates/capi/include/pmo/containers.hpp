// The containers of the standard library, with pmo::allocator. Part of pmo.hpp.
#ifndef PMO_CONTAINERS_HPP
#define PMO_CONTAINERS_HPP

#include <pmo/allocator.hpp>

#include <cstdint>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmo {

template <class C> using basic_string = std::basic_string<C, std::char_traits<C>, allocator<C>>;
using string = basic_string<char>;
using wstring = basic_string<wchar_t>;
using u16string = basic_string<char16_t>;
using u32string = basic_string<char32_t>;

// A hash that never changes: tables in objects outlive libraries.
struct string_hash {
    std::size_t operator()(std::string_view text) const noexcept
    {
        std::uint64_t hash = 0xcbf29ce484222325;
        for (unsigned char c : text)
            hash = (hash ^ c) * 0x100000001b3;
        return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
};

// An order that takes all kinds of strings.
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
template <class T> using forward_list = std::forward_list<T, allocator<T>>;
template <class T> using deque = std::deque<T, allocator<T>>;
template <class K, class Compare = less> using set = std::set<K, Compare, allocator<K>>;
template <class K, class Compare = less> using multiset = std::multiset<K, Compare, allocator<K>>;
template <class K, class V, class Compare = less>
using map = std::map<K, V, Compare, allocator<std::pair<const K, V>>>;
template <class K, class V, class Compare = less>
using multimap = std::multimap<K, V, Compare, allocator<std::pair<const K, V>>>;
template <class K, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
using unordered_set = std::unordered_set<K, Hash, Equal, allocator<K>>;
template <class K, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
using unordered_multiset = std::unordered_multiset<K, Hash, Equal, allocator<K>>;
template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
using unordered_map = std::unordered_map<K, V, Hash, Equal, allocator<std::pair<const K, V>>>;
template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
using unordered_multimap = std::unordered_multimap<K, V, Hash, Equal, allocator<std::pair<const K, V>>>;
template <class T, class Container = deque<T>> using stack = std::stack<T, Container>;
template <class T, class Container = deque<T>> using queue = std::queue<T, Container>;
template <class T, class Container = vector<T>, class Compare = less>
using priority_queue = std::priority_queue<T, Container, Compare>;

} // namespace pmo

#endif
