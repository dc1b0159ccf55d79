/* An editor's rows, moved by memmove. */
#include "library.h"

extendible struct row {
    int index;
    int size;
    char text[12];
    EXTENSION(1) {
        int tabs;
        unsigned sum;
        INIT(struct row *it) { it->tabs = it->size; }
    }
};

struct editor {
    int count, room;
    struct row *rows;
};
PMO_TYPE(editor, PMO_FIELD(int, count), PMO_FIELD(int, room), PMO_POINTS_TO(struct row *, rows, row))

static struct editor *editor;

static void insert(int at, int size)
{
    if (editor->count == editor->room) {
        int room = editor->room * 2 + 4;
        struct row *rows = pmo_calloc(heap, (size_t)room, sizeof *rows);
        CHECK(rows);
        if (editor->rows) {
            memcpy(rows, editor->rows, sizeof(struct row) * (size_t)editor->count);
            CHECK(pmo_extended_free(editor->rows, (size_t)editor->room, PMO_TYPEOF(row)) == 0);
        }
        editor->rows = rows;
        editor->room = room;
    }
    memmove(editor->rows + at + 1, editor->rows + at,
            sizeof(editor->rows[0]) * (size_t)(editor->count - at));
    for (int i = at + 1; i <= editor->count; i++)
        editor->rows[i].index++;
    struct row *row = &editor->rows[at];
    CHECK(PMO_UNEXTEND(row) == 0);
    row->index = at;
    row->size = size;
    snprintf(row->text, sizeof row->text, "%d", size);
    if (size % 3) {
        row->tabs = size * 2;
        row->sum = (unsigned)size * 7;
    }
    editor->count++;
}

static void delete_row(int at)
{
    memmove(&editor->rows[at], &editor->rows[at + 1],
            sizeof(editor->rows[0]) * (size_t)(editor->count - at - 1));
    for (int i = at; i < editor->count - 1; i++)
        editor->rows[i].index--;
    editor->count--;
    CHECK(PMO_UNEXTEND(&editor->rows[editor->count]) == 0);
}

static void check(void)
{
    size_t blocks = editor->rows ? 2 : 1;
    for (int i = 0; i < editor->count; i++) {
        const struct row *row = &editor->rows[i];
        int size = row->size, extended = size % 3 != 0;
        CHECK(row->index == i && atoi(row->text) == size);
        CHECK(row->tabs == (extended ? size * 2 : size));
        CHECK(row->sum == (extended ? (unsigned)size * 7 : 0));
        blocks += (size_t)extended;
    }
    expect_blocks(blocks);
    printf("%d rows\n", editor->count);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    editor = open_root(argv[1], PMO_TYPEOF(editor));
    for (int step = 0; strcmp(argv[2], "run") == 0; step++) {
        if (editor->count > 60 || (editor->count > 0 && below(3) == 0))
            delete_row(below(editor->count));
        else
            insert(below(editor->count + 1), below(1000));
        if (step % 3 == 0)
            psynced();
    }
    check();
    return 0;
}
