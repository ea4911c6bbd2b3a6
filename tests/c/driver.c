/* Runs byteweld.h for tests/unit/test_c_reader.py: reads requests from standard input, writes
 * answers to standard output. All numbers are 32-bit, little-endian; a blob is its size and bytes.
 *
 *     S blob                  load a section
 *     K blob blob blob blob   load an export: meta, offsets, strings, merges
 *     E blob                  encode a text: a blob of ids
 *     D blob                  decode a blob of ids: a blob of bytes
 *
 * Each answer starts with status, file, offset and the number of steps. Every buffer is allocated
 * with exactly the size it may have, so that AddressSanitizer finds the first byte outside of it,
 * and the memory for loading and encoding is deliberately misaligned.
 */

#include <stdio.h>
#include <stdlib.h>

static unsigned long steps;
#define BYTEWELD_STEP() ((void)steps++)
#define BYTEWELD_IMPLEMENTATION
#include "byteweld.h"

typedef struct blob {
    uint8_t *data;
    size_t size;
} blob;

static blob buffers[4];
static uint8_t *memory;
static byteweld_vocab vocab;

static void *allocate(size_t size)
{
    void *data = malloc(size);
    if (data == NULL && size > 0)
        exit(3);
    return data;
}

static uint32_t read_u32(void)
{
    uint8_t bytes[4];
    if (fread(bytes, 1, 4, stdin) != 4)
        exit(4);
    return byteweld__u32(bytes);
}

static blob read_blob(void)
{
    blob read;
    read.size = read_u32();
    read.data = (uint8_t *)allocate(read.size);
    if (read.size > 0 && fread(read.data, 1, read.size, stdin) != read.size)
        exit(4);
    return read;
}

static void write_u32(uint32_t value)
{
    uint8_t bytes[4];
    bytes[0] = (uint8_t)(value & 255U);
    bytes[1] = (uint8_t)(value >> 8 & 255U);
    bytes[2] = (uint8_t)(value >> 16 & 255U);
    bytes[3] = (uint8_t)(value >> 24);
    fwrite(bytes, 1, 4, stdout);
}

static void answer(const byteweld_error *error)
{
    write_u32((uint32_t)error->status);
    write_u32((uint32_t)error->file);
    write_u32((uint32_t)error->offset);
    write_u32(steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
}

/* Memory of exactly `size` bytes that ends where the allocation ends, and is not aligned. */
static uint8_t *misaligned(size_t size, uint8_t **start)
{
    *start = (uint8_t *)allocate(size + 1);
    return *start + 1;
}

static void load(int kind)
{
    byteweld_error error = {BYTEWELD_OK, BYTEWELD_SECTION, 0};
    byteweld_export files;
    size_t needed = 0, count = kind == 'K' ? 4 : 1, i;
    uint8_t *start;
    byteweld_status status;
    for (i = 0; i < 4; i++) {
        free(buffers[i].data);
        buffers[i].data = NULL;
        buffers[i].size = 0;
    }
    free(memory);
    memory = NULL;
    for (i = 0; i < count; i++)
        buffers[i] = read_blob();
    files.meta = buffers[0].data;
    files.meta_size = buffers[0].size;
    files.offsets = buffers[1].data;
    files.offsets_size = buffers[1].size;
    files.strings = buffers[2].data;
    files.strings_size = buffers[2].size;
    files.merges = buffers[3].data;
    files.merges_size = buffers[3].size;
    memset(&vocab, 0, sizeof(vocab));
    if (kind == 'K')
        status = byteweld_ck_memory(&files, &needed, &error);
    else
        status = byteweld_bpe1_memory(buffers[0].data, buffers[0].size, &needed, &error);
    if (status == BYTEWELD_OK) {
        start = misaligned(needed, &memory);
        if (kind == 'K') {
            if (byteweld_ck_load(&vocab, &files, start, needed - 1, NULL) != BYTEWELD_MEMORY)
                exit(5);
            byteweld_ck_load(&vocab, &files, start, needed, &error);
        } else {
            if (byteweld_bpe1_load(&vocab, buffers[0].data, buffers[0].size, start, needed - 1,
                                   NULL)
                != BYTEWELD_MEMORY)
                exit(5);
            byteweld_bpe1_load(&vocab, buffers[0].data, buffers[0].size, start, needed, &error);
        }
    }
    answer(&error);
    write_u32(vocab.vocab_size);
    write_u32(vocab.merge_count);
    write_u32(vocab.bos);
    write_u32(vocab.eos);
    write_u32(vocab.pad);
    write_u32(vocab.unk);
    write_u32((uint32_t)vocab.pattern);
    write_u32((uint32_t)needed);
}

static void encode(void)
{
    byteweld_error error = {BYTEWELD_OK, BYTEWELD_SECTION, 0};
    blob text = read_blob();
    size_t needed = byteweld_scratch(&vocab, text.data, text.size), count = 0, total = 0, i;
    uint8_t *start, *scratch = misaligned(needed, &start);
    uint32_t *ids = NULL;
    byteweld_status status;
    status =
        byteweld_encode(&vocab, text.data, text.size, NULL, 0, &total, scratch, needed, &error);
    if (status == BYTEWELD_CAPACITY) {
        ids = (uint32_t *)allocate(total * sizeof(uint32_t));
        steps = 0;
        byteweld_encode(&vocab, text.data, text.size, ids, total, &count, scratch, needed, &error);
        if (count != total || total > text.size)
            exit(5);
        if (needed > 0
            && byteweld_encode(&vocab, text.data, text.size, ids, total, &count, scratch, 8, NULL)
                   != BYTEWELD_MEMORY)
            exit(5);
    }
    answer(&error);
    write_u32((uint32_t)(4 * total));
    for (i = 0; i < total; i++)
        write_u32(ids[i]);
    free(start);
    free(ids);
    free(text.data);
}

static void decode(void)
{
    byteweld_error error = {BYTEWELD_OK, BYTEWELD_SECTION, 0};
    blob given = read_blob();
    size_t count = given.size / 4, size = 0, i;
    uint32_t *ids = (uint32_t *)allocate(count * sizeof(uint32_t));
    uint8_t *text = NULL;
    byteweld_status status;
    for (i = 0; i < count; i++)
        ids[i] = byteweld__u32(given.data + 4 * i);
    status = byteweld_decode(&vocab, ids, count, NULL, 0, &size, &error);
    if (status == BYTEWELD_CAPACITY) {
        text = (uint8_t *)allocate(size);
        byteweld_decode(&vocab, ids, count, text, size, &size, &error);
    }
    answer(&error);
    write_u32(error.status == BYTEWELD_OK ? (uint32_t)size : 0);
    if (error.status == BYTEWELD_OK && size > 0)
        fwrite(text, 1, size, stdout);
    free(text);
    free(ids);
    free(given.data);
}

int main(void)
{
    int kind;
    while ((kind = getchar()) != EOF) {
        steps = 0;
        if (kind == 'S' || kind == 'K')
            load(kind);
        else if (kind == 'E')
            encode();
        else if (kind == 'D')
            decode();
        else
            return 4;
        fflush(stdout);
    }
    for (kind = 0; kind < 4; kind++)
        free(buffers[kind].data);
    free(memory);
    return 0;
}
