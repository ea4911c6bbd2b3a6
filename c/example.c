/* Encodes or decodes standard input with a BPE1 section or one of ck's binary exports.
 *
 *     cc -std=c99 -O2 -o example example.c
 *     ./example encode model.bpe1 < text > ids            one id per line
 *     ./example decode model.bpe1 < ids > text
 *     ./example encode model.bin 4096 89 < text           a section at an offset, with its length
 *     ./example encode folder < text                      an export
 */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTEWELD_IMPLEMENTATION
#include "byteweld.h"

typedef struct buffer {
    uint8_t *data;
    size_t size;
} buffer;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "example: %s: %s\n", what, why);
    exit(2);
}

static void *allocate(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL)
        fail("memory", "not enough");
    return memory;
}

/* Read a stream to its end, or at most `limit` bytes. */
static buffer read_stream(FILE *file, const char *name, size_t limit)
{
    buffer all = {NULL, 0};
    size_t capacity = 0, wanted, got;
    do {
        if (all.size == capacity) {
            uint8_t *grown;
            if (capacity > SIZE_MAX / 2)
                fail(name, "too large");
            capacity = capacity == 0 ? 4096 : 2 * capacity;
            grown = (uint8_t *)realloc(all.data, capacity);
            if (grown == NULL)
                fail("memory", "not enough");
            all.data = grown;
        }
        wanted = capacity - all.size;
        if (wanted > limit - all.size)
            wanted = limit - all.size;
        got = wanted > 0 ? fread(all.data + all.size, 1, wanted, file) : 0;
        all.size += got;
    } while (got > 0);
    if (ferror(file))
        fail(name, "cannot be read");
    return all;
}

static buffer read_file(const char *path, size_t offset, size_t length)
{
    buffer content;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail(path, strerror(errno));
    if (offset > LONG_MAX || (offset > 0 && fseek(file, (long)offset, SEEK_SET) != 0))
        fail(path, "has no such offset");
    content = read_stream(file, path, length);
    fclose(file);
    return content;
}

static buffer read_part(const char *folder, byteweld_file file)
{
    const char *name = byteweld_file_name(file);
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = (char *)allocate(size);
    buffer content;
    snprintf(path, size, "%s/%s", folder, name);
    content = read_file(path, 0, SIZE_MAX);
    free(path);
    return content;
}

static int is_export(const char *folder)
{
    size_t size = strlen(folder) + sizeof("/tokenizer_meta.json");
    char *path = (char *)allocate(size);
    FILE *file;
    snprintf(path, size, "%s/tokenizer_meta.json", folder);
    file = fopen(path, "rb");
    free(path);
    if (file == NULL)
        return 0;
    fclose(file);
    return 1;
}

static void check(byteweld_status status, const byteweld_error *error, const char *path)
{
    if (status == BYTEWELD_OK)
        return;
    fprintf(stderr, "example: %s: %s: byte %lu: %s\n", path, byteweld_file_name(error->file),
            (unsigned long)error->offset, byteweld_message(status));
    exit(2);
}

/* The buffers and the memory stay until the end of the program: the vocabulary refers to them. */
static void load(byteweld_vocab *vocab, const char *path, size_t offset, size_t length)
{
    byteweld_error error;
    size_t needed = 0;
    if (is_export(path)) {
        if (length != SIZE_MAX)
            fail(path, "is a folder, which has no OFFSET and LENGTH");
        buffer meta = read_part(path, BYTEWELD_META);
        buffer offsets = read_part(path, BYTEWELD_OFFSETS);
        buffer strings = read_part(path, BYTEWELD_STRINGS);
        buffer merges = read_part(path, BYTEWELD_MERGES);
        byteweld_export files;
        files.meta = meta.data;
        files.meta_size = meta.size;
        files.offsets = offsets.data;
        files.offsets_size = offsets.size;
        files.strings = strings.data;
        files.strings_size = strings.size;
        files.merges = merges.data;
        files.merges_size = merges.size;
        check(byteweld_ck_memory(&files, &needed, &error), &error, path);
        check(byteweld_ck_load(vocab, &files, allocate(needed), needed, &error), &error, path);
    } else {
        buffer section = read_file(path, offset, length);
        if (length != SIZE_MAX && section.size < length)
            fail(path, "has fewer bytes than OFFSET and LENGTH say");
        check(byteweld_bpe1_memory(section.data, section.size, &needed, &error), &error, path);
        check(byteweld_bpe1_load(vocab, section.data, section.size, allocate(needed), needed,
                                 &error),
              &error, path);
    }
}

static void encode(const byteweld_vocab *vocab, const char *path)
{
    byteweld_error error;
    buffer text = read_stream(stdin, "standard input", SIZE_MAX);
    size_t needed = byteweld_scratch(vocab, text.data, text.size), count = 0, i;
    uint32_t *ids;
    if (text.size > SIZE_MAX / sizeof(uint32_t))
        fail("standard input", "too large");
    ids = (uint32_t *)allocate(text.size * sizeof(uint32_t));
    check(byteweld_encode(vocab, text.data, text.size, ids, text.size, &count, allocate(needed),
                          needed, &error),
          &error, path);
    for (i = 0; i < count; i++)
        printf("%" PRIu32 "\n", ids[i]);
}

static void decode(const byteweld_vocab *vocab)
{
    byteweld_error error;
    uint32_t *ids = NULL;
    uint8_t *text;
    size_t count = 0, capacity = 0, size = 0;
    unsigned long id;
    while (scanf("%lu", &id) == 1) {
        if (count == capacity) {
            if (capacity > SIZE_MAX / 2 / sizeof(uint32_t))
                fail("standard input", "too large");
            capacity = capacity == 0 ? 1024 : 2 * capacity;
            ids = (uint32_t *)realloc(ids, capacity * sizeof(uint32_t));
            if (ids == NULL)
                fail("memory", "not enough");
        }
        ids[count++] = id < BYTEWELD_NO_ID ? (uint32_t)id : BYTEWELD_NO_ID;
    }
    if (!feof(stdin))
        fail("standard input", "expected ids");
    /* Without room for it, the size of the text is all that comes back. */
    if (byteweld_decode(vocab, ids, count, NULL, 0, &size, &error) == BYTEWELD_UNKNOWN_ID) {
        fprintf(stderr, "example: standard input: id number %lu is %" PRIu32 ": %s\n",
                (unsigned long)error.offset + 1, ids[error.offset],
                byteweld_message(BYTEWELD_UNKNOWN_ID));
        exit(2);
    }
    text = (uint8_t *)allocate(size);
    check(byteweld_decode(vocab, ids, count, text, size, &size, &error), &error, "standard input");
    if (fwrite(text, 1, size, stdout) != size)
        fail("standard output", "cannot be written");
}

static size_t number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value >= SIZE_MAX)
        fail(text, "expected a number of bytes");
    return (size_t)value;
}

int main(int argc, char **argv)
{
    byteweld_vocab vocab;
    size_t offset = argc == 5 ? number(argv[3]) : 0;
    size_t length = argc == 5 ? number(argv[4]) : SIZE_MAX;
    if ((argc != 3 && argc != 5)
        || (strcmp(argv[1], "encode") != 0 && strcmp(argv[1], "decode") != 0)) {
        fprintf(stderr, "usage: example encode|decode FILE-OR-FOLDER [OFFSET LENGTH]\n");
        return 2;
    }
    load(&vocab, argv[2], offset, length);
    if (strcmp(argv[1], "encode") == 0)
        encode(&vocab, argv[2]);
    else
        decode(&vocab);
    if (fflush(stdout) != 0)
        fail("standard output", "cannot be written");
    return 0;
}
