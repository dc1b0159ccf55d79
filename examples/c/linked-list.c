/* A linked list in an object: Listing 2 of the paper that describes psync, as it is printed there.
 *
 *     linked-list POOL insert NUMBER...
 *     linked-list POOL show
 *
 * Each insertion prints a line once it is durable. The object begins with the head, whose data
 * means nothing; nodes follow back to back.
 */
#include <limits.h>
#include <pmo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    long data;
    struct node *next;
};

enum { SIZE = 1 << 20 };

/* The listing. It inserts behind the first node that is not smaller, so that only numbers in order
 * stay sorted. */
static void insert(struct node *head, struct node *new_node, long data)
{
    struct node *tmp;

    attach(head, 'w');
    struct node *c = head;
    while (c->next != NULL && c->data < data)
        c = c->next;
    if (c->next == NULL) c->next = new_node;
    else { tmp = c->next; c->next = new_node;
        c->next->next = tmp; }
    psync(head);
    detach(head);
}

static void fail(void)
{
    fprintf(stderr, "%s\n", pmo_error_message());
    exit(1);
}

/* The node behind the last linked one, where a crash may have left one. */
static struct node *make_node(struct node *head, long data)
{
    if (attach(head, 'w') == NULL)
        fail();
    head->data = LONG_MIN;
    size_t count = 1;
    for (struct node *c = head; c->next != NULL; c = c->next)
        count++;
    if (count == SIZE / sizeof *head) {
        fprintf(stderr, "the list is full\n");
        exit(1);
    }
    struct node *node = head + count;
    node->data = data;
    node->next = NULL;
    if (psync(head) != 0 || detach(head) != 0)
        fail();
    return node;
}

static void show(struct node *head)
{
    if (attach(head, 'r') == NULL)
        fail();
    for (struct node *c = head->next; c != NULL; c = c->next)
        printf("%ld\n", c->data);
    detach(head);
}

/* The list's address, the same in every run. */
static struct node *find(const char *path)
{
    pmo_pool *pool = pmo_open_or_format(path, 64 << 20, 0);
    if (pool == NULL || pmo_use(path) != 0)
        fail();
    struct pmo_stat stat;
    if (pmo_stat(pool, "list", &stat) == 0)
        return (struct node *)(uintptr_t)stat.address;
    struct node *head = pcreate("list", SIZE, NULL);
    if (head == NULL)
        fail();
    return head;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s POOL insert NUMBER... | show\n", argv[0]);
        return 2;
    }
    struct node *head = find(argv[1]);
    if (strcmp(argv[2], "show") == 0)
        show(head);
    for (int i = 3; i < argc && strcmp(argv[2], "insert") == 0; i++) {
        long data = atol(argv[i]);
        insert(head, make_node(head, data), data);
        printf("inserted %ld\n", data);
        fflush(stdout);
    }
    return 0;
}
