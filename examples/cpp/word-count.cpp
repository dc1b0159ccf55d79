// Counts the words of a text in a std::map in an object, and continues after a kill.
//
//     word-count POOL count TEXT   counts line by line, with a psync after each; prints durable ones
//     word-count POOL show         prints all words, with how often and in which lines
#include <pmo.hpp>

#include <cctype>
#include <fstream>
#include <iostream>

struct entry {
    using allocator_type = pmo::allocator<char>;
    explicit entry(allocator_type in) : lines(in) {}
    std::uint64_t count = 0;
    pmo::vector<std::uint32_t> lines;
};
PMO_DESCRIBE(entry, PMO_MEMBER(count), PMO_MEMBER(lines))

struct book {
    using allocator_type = pmo::allocator<char>;
    explicit book(allocator_type in) : words(in) {}
    std::uint32_t lines = 0;
    pmo::map<pmo::string, entry> words;
};
PMO_DESCRIBE(book, PMO_MEMBER(lines), PMO_MEMBER(words))

static void count(const pmo::heap &heap, book &book, const std::string &line)
{
    book.lines++;
    std::string word;
    for (char c : line + "\n") {
        if (std::isalpha(static_cast<unsigned char>(c))) {
            word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else if (!word.empty()) {
            auto found = book.words.find(word);
            if (found == book.words.end())
                found = book.words.try_emplace(heap.text(word)).first;
            entry &entry = found->second;
            entry.count++;
            if (entry.lines.empty() || entry.lines.back() != book.lines)
                entry.lines.push_back(book.lines);
            word.clear();
        }
    }
}

int main(int argc, char **argv)
try {
    std::string what = argc > 2 ? argv[2] : "";
    if ((what != "count" || argc != 4) && (what != "show" || argc != 3)) {
        std::cerr << "usage: " << argv[0] << " POOL count TEXT | show\n";
        return 2;
    }
    pmo::pool pool = pmo::pool::open_or_format(argv[1], 64 << 20);
    pmo::heap heap = pool.heap("book", 1 << 20, PMO_HEAP_GROW);
    book &all = heap.root<book>("book");
    if (what == "count") {
        std::ifstream text(argv[3]);
        std::string line;
        for (std::uint32_t number = 1; std::getline(text, line); number++) {
            if (number <= all.lines)
                continue; // counted before
            count(heap, all, line);
            heap.psync();
            std::cout << "line " << number << std::endl;
        }
    } else {
        for (const auto &[word, entry] : all.words) {
            std::cout << word << " " << entry.count << ":";
            for (std::uint32_t line : entry.lines)
                std::cout << " " << line;
            std::cout << "\n";
        }
    }
    return 0;
} catch (const pmo::error &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
