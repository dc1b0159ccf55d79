// A document's nodes in C++: a class that owns a tree, walks it by templates, and sorts an array of
// nodes.
#include <pmo.hpp>
#include "library.h"
#include <algorithm>
#include <cstring>
#include <vector>

extendible struct node {
    int value;
    int children;
    node *first, *next;
    EXTENSION(1) {
        int depth;
        char tag[8];
        INIT(node *it) { it->depth = it->value; }
    }
};

constexpr int SHOWN = 10;

struct page {
    node *root;
    int shown;
    node sorted[SHOWN];
};
PMO_TYPE(page, PMO_POINTS_TO(struct node *, root, node), PMO_FIELD(int, shown), PMO_NESTED(struct node[10], sorted, node))

class document {
public:
    explicit document(page *in) : page_(in)
    {
        if (!page_->root)
            page_->root = make(0);
    }

    void add(node *parent, int value)
    {
        node *child = make(value);
        if (value % 2) {
            child->depth = value * 5;
            std::snprintf(child->tag, sizeof child->tag, "%d", value);
        }
        child->next = parent->first;
        parent->first = child;
        parent->children++;
    }

    void drop_first(node *parent)
    {
        node *child = parent->first;
        while (child->first)
            drop_first(child);
        parent->first = child->next;
        parent->children--;
        CHECK(pmo_free(child) == 0);
    }

    template <class Visit> void walk(const Visit &visit, node *from = nullptr) const
    {
        for (node *child = (from ? from : page_->root)->first; child; child = child->next) {
            visit(*child);
            walk(visit, child);
        }
    }

    std::vector<node *> all() const
    {
        std::vector<node *> found;
        walk([&](node &each) { found.push_back(&each); });
        return found;
    }

    void sort()
    {
        page_->shown = 0;
        for (node *each : all())
            if (page_->shown < SHOWN)
                page_->sorted[page_->shown++] = *each;
        std::sort(page_->sorted, page_->sorted + page_->shown,
                  [](const node &a, const node &b) { return a.depth < b.depth; });
        std::reverse(page_->sorted, page_->sorted + page_->shown);
    }

    node *root() const { return page_->root; }

private:
    static node *make(int value)
    {
        node *made = static_cast<node *>(pmo_malloc(heap, sizeof(node)));
        CHECK(made);
        made->value = value;
        return made;
    }

    page *page_;
};

static size_t check(const node &each)
{
    bool extended = each.value % 2;
    CHECK(each.depth == (extended ? each.value * 5 : each.value));
    CHECK(extended ? std::atoi(each.tag) == each.value : each.tag[0] == 0);
    return extended;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    page *in = static_cast<page *>(open_root(argv[1], PMO_TYPEOF(page)));
    document of(in);
    for (int step = 0; std::strcmp(argv[2], "run") == 0; step++) {
        std::vector<node *> all = of.all();
        node *parent = all.empty() || below(3) == 0 ? of.root() : all[static_cast<size_t>(below(static_cast<int>(all.size())))];
        if (parent->first && (all.size() > 60 || below(3) == 0))
            of.drop_first(parent);
        else if (all.size() <= 60)
            of.add(parent, below(1000));
        if (step % 5 == 0)
            of.sort();
        if (step % 3 == 0)
            psynced();
    }
    size_t blocks = 2, count = 0;
    of.walk([&](const node &each) { blocks += 1 + check(each), count++; });
    for (int i = 0; i < SHOWN; i++) {
        blocks += check(in->sorted[i]);
        CHECK(i == 0 || i >= in->shown || in->sorted[i - 1].depth >= in->sorted[i].depth);
    }
    expect_blocks(blocks);
    std::printf("%d nodes\n", static_cast<int>(count));
    return 0;
}
