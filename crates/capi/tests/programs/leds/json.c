/* A JSON library's items: zeroed by allocation hooks, copied, freed by hooks. */
#include "library.h"

extendible struct json {
    struct json *next, *prev, *child;
    int type;
    int valueint;
    EXTENSION(1) {
        double valuedouble;
        int line;
        INIT(struct json *it) { it->valuedouble = it->valueint; }
    }
};

struct file {
    struct json *top;
};
PMO_TYPE(file, PMO_POINTS_TO(struct json *, top, json))

enum { NUMBER = 1, OBJECT = 2, REFERENCE = 256 };

static void *take(size_t size)
{
    return pmo_malloc(heap, size);
}

static void give(void *item)
{
    CHECK(pmo_free(item) == 0);
}

static const struct hooks {
    void *(*allocate)(size_t size);
    void (*deallocate)(void *item);
} hooks = {take, give};

static struct json *new_item(int type, int value)
{
    struct json *item = (struct json *)hooks.allocate(sizeof(struct json));
    CHECK(item);
    memset(item, 0, sizeof(struct json));
    item->type = type;
    item->valueint = value;
    return item;
}

static struct json *create_reference(const struct json *item)
{
    struct json *reference = new_item(0, 0);
    memcpy(reference, item, sizeof(struct json));
    reference->type |= REFERENCE;
    reference->next = reference->prev = NULL;
    return reference;
}

static void add(struct json *object, struct json *item)
{
    item->next = object->child;
    if (item->next)
        item->next->prev = item;
    item->prev = NULL;
    object->child = item;
}

static struct json *detach_item(struct json *object, struct json *item)
{
    if (item->prev)
        item->prev->next = item->next;
    else
        object->child = item->next;
    if (item->next)
        item->next->prev = item->prev;
    item->next = item->prev = NULL;
    return item;
}

static void delete_item(struct json *item)
{
    while (item) {
        struct json *next = item->next;
        if (!(item->type & REFERENCE))
            delete_item(item->child);
        CHECK(PMO_UNEXTEND(item) == 0);
        hooks.deallocate((void *)item);
        item = next;
    }
}

static int count(const struct json *object)
{
    int all = 0;
    for (const struct json *item = object->child; item; item = item->next)
        all++;
    return all;
}

static struct json *nth(struct json *object, int n)
{
    struct json *item = object->child;
    while (n--)
        item = item->next;
    return item;
}

static void set(struct json *item, int value)
{
    item->valueint = value;
    item->line = value * 3;
    item->valuedouble = value + 0.5;
}

static void step(struct json *object)
{
    int all = count(object);
    switch (all > 40 ? 3 : below(all > 0 ? 4 : 1)) {
    case 0: {
        struct json *item = new_item(NUMBER, below(1000));
        if (below(2))
            set(item, below(1000) + 1);
        add(object, item);
        break;
    }
    case 1:
        add(object, create_reference(nth(object, below(all))));
        break;
    case 2:
        /* References keep their values. */
        set(nth(object, below(all)), below(1000) + 1);
        break;
    default:
        delete_item(detach_item(object, nth(object, below(all))));
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    struct file *file = open_root(argv[1], PMO_TYPEOF(file));
    if (!file->top)
        file->top = new_item(OBJECT, 0);
    for (int i = 0; strcmp(argv[2], "run") == 0; i++) {
        step(file->top);
        if (i % 3 == 0)
            psynced();
    }
    size_t blocks = 2;
    for (const struct json *item = file->top->child; item; item = item->next) {
        blocks += item->line ? 2 : 1;
        CHECK((item->type & ~REFERENCE) == NUMBER && (!item->next || item->next->prev == item));
        CHECK(item->line ? item->line == item->valueint * 3 && item->valuedouble == item->valueint + 0.5
                         : item->valuedouble == item->valueint);
    }
    expect_blocks(blocks);
    printf("%d items\n", count(file->top));
    return 0;
}
