/* byteweld.h: reads BPE1 sections and ck's binary exports, encodes and decodes. One file, C99.
 *
 * It allocates nothing and reads no files: the caller passes buffers, and functions say how many
 * bytes they need. It keeps no state of its own, so a loaded vocabulary may be used by several
 * threads, each with its own scratch memory. Numbers are read byte by byte, so neither the byte
 * order of the machine nor the alignment of the buffers matters. Malformed input of any kind is an
 * error with its offset; time is at most n log n in the size of a file or a text.
 *
 * In one source file:
 *
 *     #define BYTEWELD_IMPLEMENTATION
 *     #include "byteweld.h"
 *
 * README.md next to this file has an example; example.c is a complete program. The formats are
 * described in docs/formats/bpe1.md and docs/formats/ck-binary.md of byteweld.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#ifndef BYTEWELD_H
#define BYTEWELD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------- errors */

typedef enum byteweld_status {
    BYTEWELD_OK = 0,
    /* of a call */
    BYTEWELD_MEMORY,        /* the memory or scratch is smaller than needed */
    BYTEWELD_CAPACITY,      /* the output does not fit; its size is in *count or *size */
    BYTEWELD_TOO_LARGE,     /* larger than this machine or this reader can handle */
    BYTEWELD_DECODE_ONLY,   /* the vocabulary has a pattern that this reader cannot run */
    BYTEWELD_UNKNOWN_ID,    /* no token has this id; the offset is its index */
    /* of a BPE1 section */
    BYTEWELD_BAD_MAGIC,
    BYTEWELD_BAD_VERSION,
    BYTEWELD_TRUNCATED,
    BYTEWELD_BAD_CHECKSUM,
    BYTEWELD_BAD_PATTERN,
    BYTEWELD_BAD_COUNTS,
    BYTEWELD_BAD_VOCAB_SIZE,
    BYTEWELD_BAD_SPECIAL,
    BYTEWELD_BAD_ID,
    BYTEWELD_BAD_LENGTH,
    BYTEWELD_BAD_TOKEN,
    BYTEWELD_DUPLICATE_TOKEN,
    BYTEWELD_BAD_MERGE,
    BYTEWELD_DUPLICATE_MERGE,
    BYTEWELD_TRAILING_BYTES,
    /* of an export */
    BYTEWELD_BAD_META,
    BYTEWELD_BAD_SIZE,
    BYTEWELD_BAD_OFFSET,
    BYTEWELD_BAD_STRING
} byteweld_status;

typedef enum byteweld_file {
    BYTEWELD_SECTION = 0,
    BYTEWELD_META,          /* tokenizer_meta.json */
    BYTEWELD_OFFSETS,       /* vocab_offsets.bin */
    BYTEWELD_STRINGS,       /* vocab_strings.bin */
    BYTEWELD_MERGES         /* vocab_merges.bin */
} byteweld_file;

/* Where and why a call failed. Every function that takes one accepts NULL. */
typedef struct byteweld_error {
    byteweld_status status;
    byteweld_file file;
    size_t offset;
} byteweld_error;

/* A sentence about a status, for people. */
const char *byteweld_message(byteweld_status status);

/* The name of a file, for people. */
const char *byteweld_file_name(byteweld_file file);

/* ---------------------------------------------------------------------- vocabularies */

typedef enum byteweld_pattern {
    BYTEWELD_NO_PATTERN,        /* all of a text is one pre-token */
    BYTEWELD_CK_RUNTIME,        /* text is split as ck's own runtime does */
    BYTEWELD_OTHER_PATTERN      /* encoding is refused; decoding works */
} byteweld_pattern;

typedef struct byteweld_token {
    const uint8_t *bytes;
    uint32_t size;
} byteweld_token;

typedef struct byteweld_merge {
    uint32_t right;
    uint32_t rank;
    uint32_t output;
} byteweld_merge;

#define BYTEWELD_NO_ID UINT32_MAX

/* A loaded vocabulary. Read its fields, but do not change them. It refers to the caller's memory
 * and to the buffers it was loaded from; both must stay as long as it is used. */
typedef struct byteweld_vocab {
    uint32_t vocab_size;            /* ids are 0 to vocab_size - 1 */
    uint32_t merge_count;
    uint32_t bos, eos, pad, unk;    /* ids */
    byteweld_pattern pattern;
    const uint8_t *pattern_text;    /* as in the section; NULL if it has none */
    size_t pattern_size;
    const uint8_t *fingerprint;     /* 32 bytes; NULL if the file has none. It is not checked. */
    const byteweld_token *tokens;   /* by id */
    const uint32_t *first;          /* by left id, and one more: the first of its merges */
    const byteweld_merge *merges;   /* by left id, then right id */
    uint32_t byte_ids[256];         /* BYTEWELD_NO_ID for a byte outside the ASCII alphabet */
} byteweld_vocab;

/* The four files of an export, as the caller has read them. */
typedef struct byteweld_export {
    const uint8_t *meta;
    size_t meta_size;
    const uint8_t *offsets;
    size_t offsets_size;
    const uint8_t *strings;
    size_t strings_size;
    const uint8_t *merges;
    size_t merges_size;
} byteweld_export;

/* How many bytes of memory loading needs. It is in proportion to the size of the buffers, whatever
 * the counts in them say. */
byteweld_status byteweld_bpe1_memory(const uint8_t *section, size_t section_size, size_t *needed,
                                     byteweld_error *error);
byteweld_status byteweld_ck_memory(const byteweld_export *files, size_t *needed,
                                   byteweld_error *error);

/* Load a section of version 1 or 2, or an export. If that fails, *vocab is all zeros. */
byteweld_status byteweld_bpe1_load(byteweld_vocab *vocab, const uint8_t *section,
                                   size_t section_size, void *memory, size_t memory_size,
                                   byteweld_error *error);
byteweld_status byteweld_ck_load(byteweld_vocab *vocab, const byteweld_export *files, void *memory,
                                 size_t memory_size, byteweld_error *error);

/* ---------------------------------------------------------------------- text and ids */

/* How many bytes of scratch memory encoding this text needs: 24 times its longest pre-token. */
size_t byteweld_scratch(const byteweld_vocab *vocab, const uint8_t *text, size_t text_size);

/* Encode a text: in each pre-token, the merge of the lowest rank first, the leftmost of these
 * first. Any bytes are a text. Special tokens in it are ordinary text: add their ids yourself. In
 * an ASCII export, each character outside the alphabet, and each byte that is not UTF-8, becomes
 * unk. *count is the number of ids, which is at most the size of the text. */
byteweld_status byteweld_encode(const byteweld_vocab *vocab, const uint8_t *text, size_t text_size,
                                uint32_t *ids, size_t capacity, size_t *count, void *scratch,
                                size_t scratch_size, byteweld_error *error);

/* Decode ids, special tokens included. *size is the size of the text, also if it does not fit. */
byteweld_status byteweld_decode(const byteweld_vocab *vocab, const uint32_t *ids, size_t count,
                                uint8_t *text, size_t capacity, size_t *size,
                                byteweld_error *error);

#ifdef __cplusplus
}
#endif

#endif /* BYTEWELD_H */

/* ====================================================================== implementation */

#ifdef BYTEWELD_IMPLEMENTATION
#ifndef BYTEWELD_IMPLEMENTED
#define BYTEWELD_IMPLEMENTED

#include <string.h>

/* Define it to count the steps of sorting, searching and merging, as byteweld's tests do. */
#ifndef BYTEWELD_STEP
#define BYTEWELD_STEP() ((void)0)
#endif

#ifdef __cplusplus
extern "C" {
#endif

const char *byteweld_message(byteweld_status status)
{
    switch (status) {
    case BYTEWELD_OK:
        return "no error";
    case BYTEWELD_MEMORY:
        return "the memory is smaller than needed";
    case BYTEWELD_CAPACITY:
        return "the output does not fit";
    case BYTEWELD_TOO_LARGE:
        return "the input is too large";
    case BYTEWELD_DECODE_ONLY:
        return "the vocabulary has a pattern that this reader cannot run; it can only decode";
    case BYTEWELD_UNKNOWN_ID:
        return "no token has this id";
    case BYTEWELD_BAD_MAGIC:
        return "expected the magic BPE1";
    case BYTEWELD_BAD_VERSION:
        return "the version is not 1 or 2";
    case BYTEWELD_TRUNCATED:
        return "the section ends inside its header or a token record";
    case BYTEWELD_BAD_CHECKSUM:
        return "the checksum is wrong: the section is damaged or not complete";
    case BYTEWELD_BAD_PATTERN:
        return "the pattern is longer than the section, or not UTF-8";
    case BYTEWELD_BAD_COUNTS:
        return "the header claims more tokens or merges than the section holds";
    case BYTEWELD_BAD_VOCAB_SIZE:
        return "vocab_size is not the number of ids";
    case BYTEWELD_BAD_SPECIAL:
        return "bos, eos, pad or unk is not an id of its own after the bytes";
    case BYTEWELD_BAD_ID:
        return "a token record has an id that is too large or was listed before";
    case BYTEWELD_BAD_LENGTH:
        return "a token is empty or longer than the rest of the section";
    case BYTEWELD_BAD_TOKEN:
        return "a byte or special token has other bytes than it must have";
    case BYTEWELD_DUPLICATE_TOKEN:
        return "two ids have the same bytes";
    case BYTEWELD_BAD_MERGE:
        return "a merge does not join two tokens to the one it makes";
    case BYTEWELD_DUPLICATE_MERGE:
        return "two merges have the same rank or the same pair";
    case BYTEWELD_TRAILING_BYTES:
        return "bytes follow the last record";
    case BYTEWELD_BAD_META:
        return "expected the JSON object of ck.bpe.binary.v1 with its nine keys";
    case BYTEWELD_BAD_SIZE:
        return "the table does not have the size that the JSON file says";
    case BYTEWELD_BAD_OFFSET:
        return "the offset is not the end of the previous string";
    case BYTEWELD_BAD_STRING:
        return "the string is empty, has no end or is not in ck's letters";
    }
    return "unknown status";
}

const char *byteweld_file_name(byteweld_file file)
{
    switch (file) {
    case BYTEWELD_SECTION:
        return "section";
    case BYTEWELD_META:
        return "tokenizer_meta.json";
    case BYTEWELD_OFFSETS:
        return "vocab_offsets.bin";
    case BYTEWELD_STRINGS:
        return "vocab_strings.bin";
    case BYTEWELD_MERGES:
        return "vocab_merges.bin";
    }
    return "unknown file";
}

static byteweld_status byteweld__fail(byteweld_error *error, byteweld_status status,
                                      byteweld_file file, size_t offset)
{
    if (error != NULL) {
        error->status = status;
        error->file = file;
        error->offset = offset;
    }
    return status;
}

static byteweld_status byteweld__done(byteweld_error *error)
{
    return byteweld__fail(error, BYTEWELD_OK, BYTEWELD_SECTION, 0);
}

/* ---------------------------------------------------------------------- small parts */

static uint32_t byteweld__u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* CRC-32C (Castagnoli), four bits at a time: the table has only 64 bytes. */
static uint32_t byteweld__crc32c(const uint8_t *data, size_t size)
{
    static const uint32_t table[16] = {
        0x00000000U, 0x105EC76FU, 0x20BD8EDEU, 0x30E349B1U, 0x417B1DBCU, 0x5125DAD3U,
        0x61C69362U, 0x7198540DU, 0x82F63B78U, 0x92A8FC17U, 0xA24BB5A6U, 0xB21572C9U,
        0xC38D26C4U, 0xD3D3E1ABU, 0xE330A81AU, 0xF36E6F75U
    };
    uint32_t crc = 0xFFFFFFFFU;
    size_t i;
    for (i = 0; i < size; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ table[crc & 15U];
        crc = crc >> 4 ^ table[crc & 15U];
    }
    return ~crc;
}

/* The length of the character at the start of some bytes; 0 if they are not UTF-8. */
static size_t byteweld__utf8(const uint8_t *at, size_t size, uint32_t *code)
{
    uint32_t first, value, least;
    size_t length, i;
    if (size == 0)
        return 0;
    first = at[0];
    if (first < 0x80) {
        *code = first;
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
        least = 0x80;
        value = first & 0x1FU;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        least = 0x800;
        value = first & 0x0FU;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        least = 0x10000;
        value = first & 0x07U;
    } else {
        return 0;
    }
    if (size < length)
        return 0;
    for (i = 1; i < length; i++) {
        if ((at[i] & 0xC0U) != 0x80U)
            return 0;
        value = value << 6 | (at[i] & 0x3FU);
    }
    if (value < least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return 0;
    *code = value;
    return length;
}

/* How many bytes are UTF-8, from the start: all of them, or those before the first that is not. */
static size_t byteweld__valid_utf8(const uint8_t *text, size_t size)
{
    uint32_t code;
    size_t at = 0;
    while (at < size) {
        size_t length = byteweld__utf8(text + at, size - at, &code);
        if (length == 0)
            break;
        at += length;
    }
    return at;
}

/* The 256 bytes, for tokens of one byte to point to. */
static const uint8_t byteweld__bytes[256] = {
#define BYTEWELD__8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define BYTEWELD__64(n)                                                                            \
    BYTEWELD__8(n), BYTEWELD__8(n + 8), BYTEWELD__8(n + 16), BYTEWELD__8(n + 24),                  \
        BYTEWELD__8(n + 32), BYTEWELD__8(n + 40), BYTEWELD__8(n + 48), BYTEWELD__8(n + 56)
    BYTEWELD__64(0), BYTEWELD__64(64), BYTEWELD__64(128), BYTEWELD__64(192)
#undef BYTEWELD__64
#undef BYTEWELD__8
};

static const char *const byteweld__special_texts[4] = {"<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>"};

#define BYTEWELD__SPECIAL_SIZE 7U

static byteweld_token byteweld__token(const void *bytes, size_t size)
{
    byteweld_token token;
    token.bytes = (const uint8_t *)bytes;
    token.size = (uint32_t)size;
    return token;
}

/* ---------------------------------------------------------------------- the caller's memory */

#define BYTEWELD__ALIGN (sizeof(void *) > sizeof(uint32_t) ? sizeof(void *) : sizeof(uint32_t))

typedef struct byteweld__arena {
    uint8_t *at;
    uint64_t used;
} byteweld__arena;

/* Take an array; without memory, only count its bytes. */
static void *byteweld__take(byteweld__arena *arena, uint64_t count, size_t size)
{
    uint64_t bytes = (count * size + BYTEWELD__ALIGN - 1) / BYTEWELD__ALIGN * BYTEWELD__ALIGN;
    void *taken = arena->at;
    if (arena->at != NULL)
        arena->at += (size_t)bytes;
    arena->used += bytes;
    return taken;
}

/* What loading needs: the arrays that stay, and two to sort with. */
typedef struct byteweld__arrays {
    byteweld_token *tokens;
    uint32_t *first;
    byteweld_merge *merges;
    uint8_t *pool;
    uint32_t *order;
    uint32_t *spare;
} byteweld__arrays;

static uint64_t byteweld__lay_out(byteweld__arrays *arrays, uint8_t *memory, uint32_t vocab_size,
                                  uint32_t merge_count, size_t pool_size)
{
    byteweld__arena arena;
    uint32_t most = vocab_size > merge_count ? vocab_size : merge_count;
    arena.at = memory;
    arena.used = 0;
    arrays->tokens = (byteweld_token *)byteweld__take(&arena, vocab_size, sizeof(byteweld_token));
    arrays->first = (uint32_t *)byteweld__take(&arena, (uint64_t)vocab_size + 1, sizeof(uint32_t));
    arrays->merges = (byteweld_merge *)byteweld__take(&arena, merge_count, sizeof(byteweld_merge));
    arrays->pool = (uint8_t *)byteweld__take(&arena, pool_size, 1);
    arrays->order = (uint32_t *)byteweld__take(&arena, most, sizeof(uint32_t));
    arrays->spare = (uint32_t *)byteweld__take(&arena, most, sizeof(uint32_t));
    return arena.used;
}

/* How many bytes to skip to align a pointer. */
static size_t byteweld__skip(const void *memory)
{
    return (BYTEWELD__ALIGN - (size_t)((uintptr_t)memory % BYTEWELD__ALIGN)) % BYTEWELD__ALIGN;
}

static byteweld_status byteweld__needed(uint32_t vocab_size, uint32_t merge_count, size_t pool_size,
                                        size_t *needed, byteweld_error *error)
{
    byteweld__arrays arrays;
    uint64_t used = byteweld__lay_out(&arrays, NULL, vocab_size, merge_count, pool_size);
    used += BYTEWELD__ALIGN - 1;
    if (used > SIZE_MAX)
        return byteweld__fail(error, BYTEWELD_TOO_LARGE, BYTEWELD_SECTION, 0);
    *needed = (size_t)used;
    return byteweld__done(error);
}

static byteweld_status byteweld__divide(byteweld__arrays *arrays, void *memory, size_t memory_size,
                                        uint32_t vocab_size, uint32_t merge_count,
                                        size_t pool_size, byteweld_error *error)
{
    size_t needed = 0;
    byteweld_status status = byteweld__needed(vocab_size, merge_count, pool_size, &needed, error);
    if (status != BYTEWELD_OK)
        return status;
    if (memory == NULL || memory_size < needed)
        return byteweld__fail(error, BYTEWELD_MEMORY, BYTEWELD_SECTION, 0);
    byteweld__lay_out(arrays, (uint8_t *)memory + byteweld__skip(memory), vocab_size, merge_count,
                      pool_size);
    return BYTEWELD_OK;
}

/* ---------------------------------------------------------------------- sorting */

typedef int (*byteweld__compare)(const void *context, uint32_t a, uint32_t b);

/* Merge sort, stable and not recursive; the result is in one of the two arrays. Each comparison
 * that it makes writes the smaller value, so tokens are compared in time linear in their bytes
 * for each of the log n passes. */
static uint32_t *byteweld__sort(uint32_t *values, uint32_t *spare, size_t count,
                                byteweld__compare compare, const void *context)
{
    size_t width;
    for (width = 1; width < count; width *= 2) {
        size_t start = 0;
        uint32_t *swapped;
        while (start < count) {
            size_t middle = count - start > width ? start + width : count;
            size_t end = count - middle > width ? middle + width : count;
            size_t left = start, right = middle, to = start;
            while (left < middle && right < end) {
                BYTEWELD_STEP();
                if (compare(context, values[right], values[left]) < 0)
                    spare[to++] = values[right++];
                else
                    spare[to++] = values[left++];
            }
            while (left < middle)
                spare[to++] = values[left++];
            while (right < end)
                spare[to++] = values[right++];
            start = end;
        }
        swapped = values;
        values = spare;
        spare = swapped;
    }
    return values;
}

static int byteweld__compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int byteweld__compare_tokens(const void *context, uint32_t a, uint32_t b)
{
    const byteweld_token *tokens = (const byteweld_token *)context;
    uint32_t least = tokens[a].size < tokens[b].size ? tokens[a].size : tokens[b].size;
    int order = memcmp(tokens[a].bytes, tokens[b].bytes, least);
    return order != 0 ? order : byteweld__compare_u32(tokens[a].size, tokens[b].size);
}

/* Merge records as in a file: left, right, output and, if they have 16 bytes, rank. */
typedef struct byteweld__records {
    const uint8_t *at;
    size_t size;
} byteweld__records;

static uint32_t byteweld__field(const byteweld__records *records, uint32_t number, size_t field)
{
    return byteweld__u32(records->at + (size_t)number * records->size + 4 * field);
}

static int byteweld__compare_pairs(const void *context, uint32_t a, uint32_t b)
{
    const byteweld__records *records = (const byteweld__records *)context;
    int order =
        byteweld__compare_u32(byteweld__field(records, a, 0), byteweld__field(records, b, 0));
    if (order != 0)
        return order;
    return byteweld__compare_u32(byteweld__field(records, a, 1), byteweld__field(records, b, 1));
}

static int byteweld__compare_ranks(const void *context, uint32_t a, uint32_t b)
{
    const byteweld__records *records = (const byteweld__records *)context;
    return byteweld__compare_u32(byteweld__field(records, a, 3), byteweld__field(records, b, 3));
}

/* Sort, and return the index of the first value that equals the one before it; 0 if none does. */
static size_t byteweld__find_equal(uint32_t **values, uint32_t *spare, size_t count,
                                   byteweld__compare compare, const void *context)
{
    size_t i;
    *values = byteweld__sort(*values, spare, count, compare, context);
    for (i = 1; i < count; i++) {
        if (compare(context, (*values)[i - 1], (*values)[i]) == 0)
            return i;
    }
    return 0;
}

/* ---------------------------------------------------------------------- merges */

static int byteweld__is_join(const byteweld_token *tokens, uint32_t left, uint32_t right,
                             uint32_t output)
{
    const byteweld_token *a = &tokens[left], *b = &tokens[right], *made = &tokens[output];
    return (uint64_t)a->size + b->size == made->size && memcmp(made->bytes, a->bytes, a->size) == 0
           && memcmp(made->bytes + a->size, b->bytes, b->size) == 0;
}

/* Write the merges in the order of their pairs, and where those of each left id start. */
static void byteweld__index_merges(byteweld__arrays *arrays, const byteweld__records *records,
                                   const uint32_t *order, uint32_t vocab_size, uint32_t count)
{
    uint32_t i, left, next = 0;
    for (i = 0; i < count; i++) {
        for (left = byteweld__field(records, order[i], 0); next <= left; next++)
            arrays->first[next] = i;
        arrays->merges[i].right = byteweld__field(records, order[i], 1);
        arrays->merges[i].output = byteweld__field(records, order[i], 2);
        arrays->merges[i].rank =
            records->size == 16 ? byteweld__field(records, order[i], 3) : order[i];
    }
    for (; next <= vocab_size; next++)
        arrays->first[next] = count;
}

/* The index of the merge of a pair, or BYTEWELD_NO_ID. */
static uint32_t byteweld__find_merge(const byteweld_vocab *vocab, uint32_t left, uint32_t right)
{
    uint32_t low = vocab->first[left], high = vocab->first[left + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        BYTEWELD_STEP();
        if (vocab->merges[middle].right < right)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < vocab->first[left + 1] && vocab->merges[low].right == right)
        return low;
    return BYTEWELD_NO_ID;
}

static void byteweld__finish(byteweld_vocab *vocab, const byteweld__arrays *arrays,
                             uint32_t vocab_size, uint32_t merge_count)
{
    vocab->vocab_size = vocab_size;
    vocab->merge_count = merge_count;
    vocab->tokens = arrays->tokens;
    vocab->first = arrays->first;
    vocab->merges = arrays->merges;
}

/* ---------------------------------------------------------------------- BPE1 */

typedef struct byteweld__header {
    uint32_t version, vocab_size, token_count, merge_count;
    uint32_t roles[4];
    size_t pattern_size;
    size_t records;     /* offset */
    size_t end;         /* of the records: before the checksum, if there is one */
} byteweld__header;

static byteweld_status byteweld__read_header(byteweld__header *header, const uint8_t *data,
                                             size_t size, byteweld_error *error)
{
    uint64_t least;
    size_t i, j;
    if (size < 4 || memcmp(data, "BPE1", 4) != 0)
        return byteweld__fail(error, BYTEWELD_BAD_MAGIC, BYTEWELD_SECTION, 0);
    if (size < 36)
        return byteweld__fail(error, BYTEWELD_TRUNCATED, BYTEWELD_SECTION, size);
    header->version = byteweld__u32(data + 4);
    header->vocab_size = byteweld__u32(data + 8);
    for (i = 0; i < 4; i++)
        header->roles[i] = byteweld__u32(data + 12 + 4 * i);
    header->token_count = byteweld__u32(data + 28);
    header->merge_count = byteweld__u32(data + 32);
    header->pattern_size = 0;
    header->records = 36;
    header->end = size;
    if (header->version == 2) {
        if (size < 76)
            return byteweld__fail(error, BYTEWELD_TRUNCATED, BYTEWELD_SECTION, size);
        header->end = size - 4;
        if (byteweld__crc32c(data, header->end) != byteweld__u32(data + header->end))
            return byteweld__fail(error, BYTEWELD_BAD_CHECKSUM, BYTEWELD_SECTION, header->end);
        header->pattern_size = byteweld__u32(data + 36);
        if (header->pattern_size > header->end - 72)
            return byteweld__fail(error, BYTEWELD_BAD_PATTERN, BYTEWELD_SECTION, 36);
        header->records = 72 + header->pattern_size;
    } else if (header->version != 1) {
        return byteweld__fail(error, BYTEWELD_BAD_VERSION, BYTEWELD_SECTION, 4);
    }
    least = (uint64_t)header->token_count * 9 + (uint64_t)header->merge_count * 16;
    if (least > header->end - header->records)
        return byteweld__fail(error, BYTEWELD_BAD_COUNTS, BYTEWELD_SECTION, header->records);
    if (header->vocab_size < 260 || header->vocab_size - 260 > header->token_count)
        return byteweld__fail(error, BYTEWELD_BAD_VOCAB_SIZE, BYTEWELD_SECTION, 8);
    for (i = 0; i < 4; i++) {
        int is_bad = header->roles[i] < 256 || header->roles[i] >= header->vocab_size;
        for (j = 0; j < i; j++)
            is_bad = is_bad || header->roles[i] == header->roles[j];
        if (is_bad)
            return byteweld__fail(error, BYTEWELD_BAD_SPECIAL, BYTEWELD_SECTION, 12 + 4 * i);
    }
    i = byteweld__valid_utf8(data + header->records - header->pattern_size, header->pattern_size);
    if (i != header->pattern_size)
        return byteweld__fail(error, BYTEWELD_BAD_PATTERN, BYTEWELD_SECTION, 72 + i);
    return BYTEWELD_OK;
}

static int byteweld__is_special(const byteweld__header *header, uint32_t id)
{
    return id == header->roles[0] || id == header->roles[1] || id == header->roles[2]
           || id == header->roles[3];
}

/* Read the token records; *at is where they start, and then where they end. */
static byteweld_status byteweld__read_tokens(const byteweld__header *header,
                                             byteweld__arrays *arrays, const uint8_t *data,
                                             size_t *at, byteweld_error *error)
{
    byteweld_token *tokens = arrays->tokens;
    uint32_t *is_listed = arrays->spare;
    uint32_t number, id, count = 260, ordinary = 0;
    size_t offset = *at, equal;
    uint32_t *order = arrays->order;
    memset(is_listed, 0, (size_t)header->vocab_size * sizeof(uint32_t));
    for (id = 0; id < header->vocab_size; id++)
        tokens[id] = byteweld__token(id < 256 ? &byteweld__bytes[id] : NULL, 1);
    for (id = 0; id < 4; id++)
        tokens[header->roles[id]] =
            byteweld__token(byteweld__special_texts[id], BYTEWELD__SPECIAL_SIZE);
    for (number = 0; number < header->token_count; number++) {
        uint32_t length;
        if (header->end - offset < 8)
            return byteweld__fail(error, BYTEWELD_TRUNCATED, BYTEWELD_SECTION, offset);
        id = byteweld__u32(data + offset);
        length = byteweld__u32(data + offset + 4);
        if (length == 0 || length > header->end - offset - 8)
            return byteweld__fail(error, BYTEWELD_BAD_LENGTH, BYTEWELD_SECTION, offset + 4);
        if (id >= header->vocab_size || is_listed[id])
            return byteweld__fail(error, BYTEWELD_BAD_ID, BYTEWELD_SECTION, offset);
        is_listed[id] = 1;
        if (tokens[id].bytes == NULL) {
            tokens[id] = byteweld__token(data + offset + 8, length);
            count++;
        } else if (tokens[id].size != length
                   || memcmp(tokens[id].bytes, data + offset + 8, length) != 0) {
            return byteweld__fail(error, BYTEWELD_BAD_TOKEN, BYTEWELD_SECTION, offset);
        }
        offset += 8 + (size_t)length;
    }
    if (count != header->vocab_size)
        return byteweld__fail(error, BYTEWELD_BAD_VOCAB_SIZE, BYTEWELD_SECTION, 8);
    for (id = 0; id < header->vocab_size; id++) {
        if (!byteweld__is_special(header, id))
            order[ordinary++] = id;
    }
    equal = byteweld__find_equal(&order, arrays->spare, ordinary, byteweld__compare_tokens, tokens);
    if (equal != 0) {
        /* The one that comes later in the section; at least one of them has a record. */
        uint32_t a = order[equal - 1], b = order[equal];
        size_t one = a < 256 ? 0 : (size_t)(tokens[a].bytes - data) - 8;
        size_t two = b < 256 ? 0 : (size_t)(tokens[b].bytes - data) - 8;
        return byteweld__fail(error, BYTEWELD_DUPLICATE_TOKEN, BYTEWELD_SECTION,
                              one > two ? one : two);
    }
    *at = offset;
    return BYTEWELD_OK;
}

static byteweld_status byteweld__read_merges(const byteweld__header *header,
                                             byteweld__arrays *arrays, const uint8_t *data,
                                             size_t at, byteweld_error *error)
{
    byteweld__records records;
    uint32_t count = header->merge_count, number;
    uint32_t *order = arrays->order, *spare = arrays->spare;
    size_t equal;
    if ((uint64_t)count * 16 > header->end - at)
        return byteweld__fail(error, BYTEWELD_BAD_COUNTS, BYTEWELD_SECTION, at);
    records.at = data + at;
    records.size = 16;
    for (number = 0; number < count; number++) {
        size_t field;
        for (field = 0; field < 3; field++) {
            uint32_t id = byteweld__field(&records, number, field);
            if (id >= header->vocab_size || byteweld__is_special(header, id))
                return byteweld__fail(error, BYTEWELD_BAD_MERGE, BYTEWELD_SECTION,
                                      at + 16 * (size_t)number);
        }
        order[number] = number;
    }
    equal = byteweld__find_equal(&order, spare, count, byteweld__compare_ranks, &records);
    if (equal == 0) {
        spare = order == arrays->order ? arrays->spare : arrays->order;
        for (number = 0; number < count; number++)
            order[number] = number;
        equal = byteweld__find_equal(&order, spare, count, byteweld__compare_pairs, &records);
    }
    if (equal != 0)
        return byteweld__fail(error, BYTEWELD_DUPLICATE_MERGE, BYTEWELD_SECTION,
                              at + 16 * (size_t)order[equal]);
    /* After duplicates were found: many merges that make one huge token would take long. */
    for (number = 0; number < count; number++) {
        if (!byteweld__is_join(arrays->tokens, byteweld__field(&records, number, 0),
                               byteweld__field(&records, number, 1),
                               byteweld__field(&records, number, 2)))
            return byteweld__fail(error, BYTEWELD_BAD_MERGE, BYTEWELD_SECTION,
                                  at + 16 * (size_t)number);
    }
    at += 16 * (size_t)count;
    if (at != header->end)
        return byteweld__fail(error, BYTEWELD_TRAILING_BYTES, BYTEWELD_SECTION, at);
    byteweld__index_merges(arrays, &records, order, header->vocab_size, count);
    return BYTEWELD_OK;
}

byteweld_status byteweld_bpe1_memory(const uint8_t *section, size_t section_size, size_t *needed,
                                     byteweld_error *error)
{
    byteweld__header header;
    byteweld_status status = byteweld__read_header(&header, section, section_size, error);
    *needed = 0;
    if (status != BYTEWELD_OK)
        return status;
    return byteweld__needed(header.vocab_size, header.merge_count, 0, needed, error);
}

byteweld_status byteweld_bpe1_load(byteweld_vocab *vocab, const uint8_t *section,
                                   size_t section_size, void *memory, size_t memory_size,
                                   byteweld_error *error)
{
    static const char ck_runtime[] = "ck-runtime";
    byteweld__header header;
    byteweld__arrays arrays;
    byteweld_status status;
    size_t at;
    uint32_t byte;
    memset(vocab, 0, sizeof(*vocab));
    status = byteweld__read_header(&header, section, section_size, error);
    if (status != BYTEWELD_OK)
        return status;
    status = byteweld__divide(&arrays, memory, memory_size, header.vocab_size, header.merge_count,
                              0, error);
    if (status != BYTEWELD_OK)
        return status;
    at = header.records;
    status = byteweld__read_tokens(&header, &arrays, section, &at, error);
    if (status == BYTEWELD_OK)
        status = byteweld__read_merges(&header, &arrays, section, at, error);
    if (status != BYTEWELD_OK)
        return status;
    byteweld__finish(vocab, &arrays, header.vocab_size, header.merge_count);
    vocab->bos = header.roles[0];
    vocab->eos = header.roles[1];
    vocab->pad = header.roles[2];
    vocab->unk = header.roles[3];
    for (byte = 0; byte < 256; byte++)
        vocab->byte_ids[byte] = byte;
    vocab->pattern = BYTEWELD_NO_PATTERN;
    if (header.version == 2)
        vocab->fingerprint = section + 40;
    if (header.pattern_size != 0) {
        vocab->pattern_text = section + 72;
        vocab->pattern_size = header.pattern_size;
        vocab->pattern = header.pattern_size == sizeof(ck_runtime) - 1
                                 && memcmp(section + 72, ck_runtime, sizeof(ck_runtime) - 1) == 0
                             ? BYTEWELD_CK_RUNTIME
                             : BYTEWELD_OTHER_PATTERN;
    }
    return byteweld__done(error);
}

/* ---------------------------------------------------------------------- ck's export */

/* What the JSON file says. */
typedef struct byteweld__meta {
    int is_ascii;
    uint32_t vocab_size, merge_count, reserved;
} byteweld__meta;

typedef struct byteweld__json {
    const uint8_t *data;
    size_t size;
    size_t at;
} byteweld__json;

#define BYTEWELD__MAX_META 65536U

static void byteweld__skip_space(byteweld__json *json)
{
    while (json->at < json->size) {
        uint8_t c = json->data[json->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            break;
        json->at++;
    }
}

/* Skip white space and then one character; 0 if another one is there. */
static int byteweld__skip_one(byteweld__json *json, char c)
{
    byteweld__skip_space(json);
    if (json->at >= json->size || json->data[json->at] != (uint8_t)c)
        return 0;
    json->at++;
    return 1;
}

/* Read a string without escapes, which none of the values needs. */
static int byteweld__read_string(byteweld__json *json, const uint8_t **text, size_t *size)
{
    size_t start;
    if (!byteweld__skip_one(json, '"'))
        return 0;
    start = json->at;
    while (json->at < json->size) {
        uint8_t c = json->data[json->at++];
        if (c == '"') {
            *text = json->data + start;
            *size = json->at - 1 - start;
            return 1;
        }
        if (c == '\\' || c < 0x20)
            return 0;
    }
    return 0;
}

static int byteweld__is(const uint8_t *text, size_t size, const char *expected)
{
    return size == strlen(expected) && memcmp(text, expected, size) == 0;
}

/* Read an integer in 0 to 2^31 - 1. */
static int byteweld__read_integer(byteweld__json *json, uint32_t *value)
{
    size_t start;
    *value = 0;
    byteweld__skip_space(json);
    start = json->at;
    while (json->at < json->size && json->data[json->at] >= '0' && json->data[json->at] <= '9') {
        uint32_t digit = (uint32_t)json->data[json->at] - '0';
        if (*value > (0x7FFFFFFFU - digit) / 10 || (json->at > start && json->data[start] == '0'))
            return 0;
        *value = *value * 10 + digit;
        json->at++;
    }
    return json->at > start;
}

/* Whether a value is the plain name of a file, or a path to it that does not go up. */
static int byteweld__names(const uint8_t *text, size_t size, const char *name)
{
    size_t length = strlen(name), i, start = 0;
    if (size < length || memcmp(text + size - length, name, length) != 0)
        return 0;
    if (size > length && text[size - length - 1] != '/')
        return 0;
    for (i = 0; i < size; i++) {
        if (text[i] == '/') {
            if (byteweld__is(text + start, i - start, ".."))
                return 0;
            start = i + 1;
        }
    }
    return 1;
}

static byteweld_status byteweld__read_meta(byteweld__meta *meta, const byteweld_export *files,
                                           byteweld_error *error)
{
    static const char *const keys[9] = {"schema", "mode", "vocab_size", "num_merges",
                                        "num_reserved_special_tokens", "max_piece_bytes",
                                        "offsets", "strings", "merges"};
    byteweld__json json;
    uint32_t numbers[9] = {0};
    unsigned found = 0;
    int ok, more = 1;
    uint64_t expected;
    json.data = files->meta;
    json.size = files->meta_size;
    json.at = 0;
    meta->is_ascii = 0;
    ok = json.size <= BYTEWELD__MAX_META && byteweld__valid_utf8(json.data, json.size) == json.size
         && byteweld__skip_one(&json, '{');
    while (ok && more) {
        const uint8_t *text = NULL;
        size_t size = 0;
        unsigned key = 0;
        ok = byteweld__read_string(&json, &text, &size);
        while (ok && key < 9 && !byteweld__is(text, size, keys[key]))
            key++;
        ok = ok && key < 9 && (found >> key & 1U) == 0 && byteweld__skip_one(&json, ':');
        if (!ok)
            break;
        found |= 1U << key;
        if (key >= 2 && key <= 5) {
            ok = byteweld__read_integer(&json, &numbers[key]);
        } else {
            ok = byteweld__read_string(&json, &text, &size);
            if (ok && key == 0) {
                ok = byteweld__is(text, size, "ck.bpe.binary.v1");
            } else if (ok && key == 1) {
                meta->is_ascii = byteweld__is(text, size, "ascii_bpe");
                ok = meta->is_ascii || byteweld__is(text, size, "bytelevel_bpe");
            } else if (ok) {
                ok = byteweld__names(text, size, byteweld_file_name((byteweld_file)(key - 4)));
            }
        }
        if (!ok)
            break;
        more = byteweld__skip_one(&json, ',');
    }
    ok = ok && byteweld__skip_one(&json, '}');
    byteweld__skip_space(&json);
    if (!ok || json.at != json.size || found != 0x1FFU)
        return byteweld__fail(error, BYTEWELD_BAD_META, BYTEWELD_META, json.at);
    meta->vocab_size = numbers[2];
    meta->merge_count = numbers[3];
    meta->reserved = numbers[4];
    expected = (uint64_t)4 + meta->reserved + (meta->is_ascii ? 98U : 256U) + meta->merge_count;
    if (meta->vocab_size != expected)
        return byteweld__fail(error, BYTEWELD_BAD_META, BYTEWELD_META, 0);
    if (files->offsets_size / 4 != meta->vocab_size || files->offsets_size % 4 != 0)
        return byteweld__fail(error, BYTEWELD_BAD_SIZE, BYTEWELD_OFFSETS, files->offsets_size);
    if (files->merges_size / 12 != meta->merge_count || files->merges_size % 12 != 0)
        return byteweld__fail(error, BYTEWELD_BAD_SIZE, BYTEWELD_MERGES, files->merges_size);
    return BYTEWELD_OK;
}

static int byteweld__is_ascii(uint32_t byte)
{
    return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte <= 0x7E);
}

/* The byte of a letter, or 256. ck meant to use GPT-2's letters, but differs for 35 bytes. */
static uint32_t byteweld__byte_of(uint32_t letter, int is_gpt2)
{
    if (letter >= 0x21 && letter <= 0x7E)
        return letter;
    if (letter >= 0xA1 && letter <= 0xFF)
        return is_gpt2 && letter == 0xAD ? 256 : letter;
    if (letter >= 0x100 && letter <= 0x120)
        return letter - 0x100;
    if (is_gpt2 && letter >= 0x121 && letter <= 0x142)
        return letter - 0x121 + 0x7F;
    if (is_gpt2 && letter == 0x143)
        return 0xAD;
    if (!is_gpt2 && letter >= 0x17F && letter <= 0x1A0)
        return letter - 0x100;
    return 256;
}

/* Write the bytes of a string of letters, of which there are at most as many; return how many, or
 * 0 if something else is in it. */
static size_t byteweld__read_letters(const byteweld_token *string, int is_ascii, int is_gpt2,
                                     uint8_t *bytes)
{
    size_t at = 0, count = 0;
    while (at < string->size) {
        uint32_t letter = 0, byte;
        size_t length = byteweld__utf8(string->bytes + at, string->size - at, &letter);
        if (length == 0)
            return 0;
        if (is_ascii)
            byte = byteweld__is_ascii(letter) ? letter : 256;
        else
            byte = byteweld__byte_of(letter, is_gpt2);
        if (byte > 255)
            return 0;
        bytes[count++] = (uint8_t)byte;
        at += length;
    }
    return count;
}

/* Find all strings, and check that they are where the table of offsets says. */
static byteweld_status byteweld__read_strings(const byteweld__meta *meta, byteweld_token *tokens,
                                              const byteweld_export *files, byteweld_error *error)
{
    size_t at = 0;
    uint32_t id;
    for (id = 0; id < meta->vocab_size; id++) {
        const uint8_t *start, *end;
        if (byteweld__u32(files->offsets + 4 * (size_t)id) != at)
            return byteweld__fail(error, BYTEWELD_BAD_OFFSET, BYTEWELD_OFFSETS, 4 * (size_t)id);
        if (at >= files->strings_size)
            return byteweld__fail(error, BYTEWELD_BAD_STRING, BYTEWELD_STRINGS, at);
        start = files->strings + at;
        end = (const uint8_t *)memchr(start, 0, files->strings_size - at);
        if (end == NULL || end == start || (uint64_t)(end - start) > UINT32_MAX)
            return byteweld__fail(error, BYTEWELD_BAD_STRING, BYTEWELD_STRINGS, at);
        tokens[id] = byteweld__token(start, (size_t)(end - start));
        at += (size_t)(end - start) + 1;
    }
    if (at != files->strings_size)
        return byteweld__fail(error, BYTEWELD_TRAILING_BYTES, BYTEWELD_STRINGS, at);
    return BYTEWELD_OK;
}

static byteweld_status byteweld__bad_string(const byteweld_export *files, byteweld_status status,
                                            uint32_t id, byteweld_error *error)
{
    return byteweld__fail(error, status, BYTEWELD_STRINGS,
                          byteweld__u32(files->offsets + 4 * (size_t)id));
}

/* Turn the strings of all ordinary tokens into their bytes, and check those of all others. */
static byteweld_status byteweld__read_texts(const byteweld__meta *meta, byteweld__arrays *arrays,
                                            const byteweld_export *files, byteweld_error *error)
{
    static const char *const built_in[4] = {"<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>"};
    byteweld_token *tokens = arrays->tokens;
    uint32_t first_byte = 4 + meta->reserved;
    uint32_t first_merge = meta->vocab_size - meta->merge_count;
    uint32_t id, byte = 0, i;
    uint32_t *order;
    size_t equal, used = 0;
    int is_gpt2 = 0;
    if (!meta->is_ascii) {
        uint32_t letter = 0;
        byteweld_token *string = &tokens[first_byte + 0x7F];
        is_gpt2 = byteweld__utf8(string->bytes, string->size, &letter) == string->size
                  && letter == 0x121;
    }
    for (id = 0; id < meta->vocab_size; id++) {
        size_t size;
        if (id < first_byte) {
            if (byteweld__valid_utf8(tokens[id].bytes, tokens[id].size) != tokens[id].size
                || (id < 4 && !byteweld__is(tokens[id].bytes, tokens[id].size, built_in[id])))
                return byteweld__bad_string(files, BYTEWELD_BAD_TOKEN, id, error);
            continue;
        }
        size = byteweld__read_letters(&tokens[id], meta->is_ascii, is_gpt2, arrays->pool + used);
        if (size == 0)
            return byteweld__bad_string(files, BYTEWELD_BAD_STRING, id, error);
        if (id < first_merge) {
            while (meta->is_ascii && !byteweld__is_ascii(byte))
                byte++;
            if (size != 1 || arrays->pool[used] != byte)
                return byteweld__bad_string(files, BYTEWELD_BAD_TOKEN, id, error);
            byte++;
        }
        tokens[id] = byteweld__token(arrays->pool + used, size);
        used += size;
    }
    /* Special tokens among themselves, and all others among themselves. */
    for (i = 0; i < 2; i++) {
        uint32_t start = i == 0 ? 0 : first_byte, count = 0;
        uint32_t end = i == 0 ? first_byte : meta->vocab_size;
        order = arrays->order;
        for (id = start; id < end; id++)
            order[count++] = id;
        equal =
            byteweld__find_equal(&order, arrays->spare, count, byteweld__compare_tokens, tokens);
        if (equal != 0)
            return byteweld__bad_string(files, BYTEWELD_DUPLICATE_TOKEN, order[equal], error);
    }
    return BYTEWELD_OK;
}

byteweld_status byteweld_ck_memory(const byteweld_export *files, size_t *needed,
                                   byteweld_error *error)
{
    byteweld__meta meta;
    byteweld_status status = byteweld__read_meta(&meta, files, error);
    *needed = 0;
    if (status != BYTEWELD_OK)
        return status;
    return byteweld__needed(meta.vocab_size, meta.merge_count, files->strings_size, needed, error);
}

byteweld_status byteweld_ck_load(byteweld_vocab *vocab, const byteweld_export *files, void *memory,
                                 size_t memory_size, byteweld_error *error)
{
    byteweld__meta meta;
    byteweld__arrays arrays;
    byteweld__records records;
    byteweld_status status;
    uint32_t first_byte, first_merge, number, byte, id;
    uint32_t *order;
    memset(vocab, 0, sizeof(*vocab));
    status = byteweld__read_meta(&meta, files, error);
    if (status != BYTEWELD_OK)
        return status;
    status = byteweld__divide(&arrays, memory, memory_size, meta.vocab_size, meta.merge_count,
                              files->strings_size, error);
    if (status == BYTEWELD_OK)
        status = byteweld__read_strings(&meta, arrays.tokens, files, error);
    if (status == BYTEWELD_OK)
        status = byteweld__read_texts(&meta, &arrays, files, error);
    if (status != BYTEWELD_OK)
        return status;
    first_byte = 4 + meta.reserved;
    first_merge = meta.vocab_size - meta.merge_count;
    records.at = files->merges;
    records.size = 12;
    for (number = 0; number < meta.merge_count; number++) {
        uint32_t left = byteweld__field(&records, number, 0);
        uint32_t right = byteweld__field(&records, number, 1);
        uint32_t made = byteweld__field(&records, number, 2);
        if (made != first_merge + number || left < first_byte || left >= made || right < first_byte
            || right >= made || !byteweld__is_join(arrays.tokens, left, right, made))
            return byteweld__fail(error, BYTEWELD_BAD_MERGE, BYTEWELD_MERGES, 12 * (size_t)number);
        arrays.order[number] = number;
    }
    /* No two tokens have the same bytes, so no two merges have the same pair. */
    order = byteweld__sort(arrays.order, arrays.spare, meta.merge_count, byteweld__compare_pairs,
                           &records);
    byteweld__index_merges(&arrays, &records, order, meta.vocab_size, meta.merge_count);
    byteweld__finish(vocab, &arrays, meta.vocab_size, meta.merge_count);
    vocab->unk = 0;
    vocab->bos = 1;
    vocab->eos = 2;
    vocab->pad = 3;
    vocab->pattern = meta.is_ascii ? BYTEWELD_NO_PATTERN : BYTEWELD_CK_RUNTIME;
    id = first_byte;
    for (byte = 0; byte < 256; byte++)
        vocab->byte_ids[byte] = meta.is_ascii && !byteweld__is_ascii(byte) ? BYTEWELD_NO_ID : id++;
    return byteweld__done(error);
}

/* ---------------------------------------------------------------------- pre-tokens */

static int byteweld__is_letter(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static int byteweld__is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Anything but ASCII letters, digits, space, \n, \t and \r. */
static int byteweld__is_other(uint8_t c)
{
    return !byteweld__is_letter(c) && !byteweld__is_digit(c) && c != ' ' && c != '\n' && c != '\t'
           && c != '\r';
}

static size_t byteweld__run(const uint8_t *text, size_t size, size_t at, int (*is)(uint8_t))
{
    while (at < size && is(text[at]))
        at++;
    return at;
}

static int byteweld__is_space(uint8_t c)
{
    return c == ' ';
}

static int byteweld__is_newline(uint8_t c)
{
    return c == '\n';
}

/* The length of the first pre-token, by the first alternative that matches, with P for any byte
 * but [A-Za-z0-9 \n\t\r]:
 * P?[A-Za-z]+ | [0-9] | ' '?P+\n* | ' '+\n+ | ' '+(?=' '[A-Za-z0-9]) | ' '[A-Za-z]+ | ' '[0-9] |
 * ' '+ | \n+ | any byte */
static size_t byteweld__ck_runtime(const uint8_t *text, size_t size)
{
    uint8_t c = text[0];
    size_t end;
    if (byteweld__is_letter(c)
        || (byteweld__is_other(c) && size > 1 && byteweld__is_letter(text[1])))
        return byteweld__run(text, size, 1, byteweld__is_letter);
    if (byteweld__is_other(c) || (c == ' ' && size > 1 && byteweld__is_other(text[1]))) {
        end = byteweld__run(text, size, 1, byteweld__is_other);
        return byteweld__run(text, size, end, byteweld__is_newline);
    }
    if (c == '\n')
        return byteweld__run(text, size, 1, byteweld__is_newline);
    if (c != ' ')
        return 1;
    end = byteweld__run(text, size, 1, byteweld__is_space);
    if (end == size)
        return end;
    if (text[end] == '\n')
        return byteweld__run(text, size, end, byteweld__is_newline);
    if (byteweld__is_letter(text[end]) || byteweld__is_digit(text[end])) {
        if (end > 1)
            return end - 1; /* the last space belongs to the word or digit */
        return byteweld__is_digit(text[1]) ? 2 : byteweld__run(text, size, 1, byteweld__is_letter);
    }
    return end;
}

/* The length of the first piece of a text: a pre-token, or the part of it before the first
 * character outside the alphabet, or that character, for which *is_known is 0. */
static size_t byteweld__piece(const byteweld_vocab *vocab, const uint8_t *text, size_t size,
                              int *is_known)
{
    size_t end = 0;
    uint32_t code = 0;
    *is_known = 1;
    if (vocab->pattern == BYTEWELD_CK_RUNTIME)
        size = byteweld__ck_runtime(text, size);
    while (end < size && vocab->byte_ids[text[end]] != BYTEWELD_NO_ID)
        end++;
    if (end > 0)
        return end;
    *is_known = 0;
    end = byteweld__utf8(text, size, &code);
    return end == 0 ? 1 : end;
}

/* ---------------------------------------------------------------------- merging */

#define BYTEWELD__SCRATCH_ARRAYS 6U

/* The tokens of a piece as a list, and a heap of the positions where a pair can be merged. */
typedef struct byteweld__work {
    const byteweld_vocab *vocab;
    uint32_t *ids;
    uint32_t *previous;
    uint32_t *next;
    uint32_t *merge;    /* of the pair that starts here, or BYTEWELD_NO_ID */
    uint32_t *heap;     /* positions; that of the lowest rank, leftmost, is the first */
    uint32_t *place;    /* of a position in the heap, if it has a merge */
    uint32_t count;     /* in the heap */
} byteweld__work;

static int byteweld__goes_first(const byteweld__work *work, uint32_t a, uint32_t b)
{
    uint32_t rank_a = work->vocab->merges[work->merge[a]].rank;
    uint32_t rank_b = work->vocab->merges[work->merge[b]].rank;
    BYTEWELD_STEP();
    return rank_a < rank_b || (rank_a == rank_b && a < b);
}

static void byteweld__put(byteweld__work *work, uint32_t place, uint32_t position)
{
    work->heap[place] = position;
    work->place[position] = place;
}

static void byteweld__sift_up(byteweld__work *work, uint32_t place)
{
    uint32_t position = work->heap[place];
    while (place > 0) {
        uint32_t parent = (place - 1) / 2;
        if (!byteweld__goes_first(work, position, work->heap[parent]))
            break;
        byteweld__put(work, place, work->heap[parent]);
        place = parent;
    }
    byteweld__put(work, place, position);
}

static void byteweld__sift_down(byteweld__work *work, uint32_t place)
{
    uint32_t position = work->heap[place];
    while (place < work->count / 2) { /* it has a child */
        uint32_t child = 2 * place + 1;
        if (child + 1 < work->count
            && byteweld__goes_first(work, work->heap[child + 1], work->heap[child]))
            child++;
        if (!byteweld__goes_first(work, work->heap[child], position))
            break;
        byteweld__put(work, place, work->heap[child]);
        place = child;
    }
    byteweld__put(work, place, position);
}

static void byteweld__sift(byteweld__work *work, uint32_t position)
{
    byteweld__sift_up(work, work->place[position]);
    byteweld__sift_down(work, work->place[position]);
}

/* Change the merge of a position: insert it into the heap, move it, or remove it. */
static void byteweld__set_merge(byteweld__work *work, uint32_t position, uint32_t merge)
{
    uint32_t old = work->merge[position], place, last;
    if (old == merge)
        return;
    if (merge == BYTEWELD_NO_ID) {
        place = work->place[position];
        last = work->heap[--work->count];
        work->merge[position] = BYTEWELD_NO_ID;
        if (last != position) {
            byteweld__put(work, place, last);
            byteweld__sift(work, last);
        }
        return;
    }
    work->merge[position] = merge;
    if (old == BYTEWELD_NO_ID)
        byteweld__put(work, work->count++, position);
    byteweld__sift(work, position);
}

/* Find the merge of the pair that starts at a position. */
static uint32_t byteweld__merge_at(const byteweld__work *work, uint32_t position)
{
    uint32_t next = work->next[position];
    if (next == BYTEWELD_NO_ID)
        return BYTEWELD_NO_ID;
    return byteweld__find_merge(work->vocab, work->ids[position], work->ids[next]);
}

/* Merge a piece of at least two bytes. The token at position 0 is always the first. */
static void byteweld__merge_piece(byteweld__work *work, const uint8_t *text, uint32_t size)
{
    uint32_t i, position, next, after;
    work->count = 0;
    for (i = 0; i < size; i++) {
        work->ids[i] = work->vocab->byte_ids[text[i]];
        work->previous[i] = i == 0 ? BYTEWELD_NO_ID : i - 1;
        work->next[i] = i + 1 == size ? BYTEWELD_NO_ID : i + 1;
    }
    for (i = 0; i < size; i++) {
        work->merge[i] = byteweld__merge_at(work, i);
        if (work->merge[i] != BYTEWELD_NO_ID)
            byteweld__put(work, work->count++, i);
    }
    for (i = work->count / 2; i > 0; i--)
        byteweld__sift_down(work, i - 1);
    while (work->count > 0) {
        position = work->heap[0];
        next = work->next[position];
        after = work->next[next];
        work->ids[position] = work->vocab->merges[work->merge[position]].output;
        byteweld__set_merge(work, next, BYTEWELD_NO_ID);
        work->next[position] = after;
        if (after != BYTEWELD_NO_ID)
            work->previous[after] = position;
        byteweld__set_merge(work, position, byteweld__merge_at(work, position));
        if (work->previous[position] != BYTEWELD_NO_ID)
            byteweld__set_merge(work, work->previous[position],
                                byteweld__merge_at(work, work->previous[position]));
    }
}

size_t byteweld_scratch(const byteweld_vocab *vocab, const uint8_t *text, size_t text_size)
{
    size_t longest = 0, at = 0;
    const size_t each = BYTEWELD__SCRATCH_ARRAYS * sizeof(uint32_t);
    if (vocab->pattern == BYTEWELD_OTHER_PATTERN)
        return 0;
    while (at < text_size) {
        int is_known;
        size_t length = byteweld__piece(vocab, text + at, text_size - at, &is_known);
        if (is_known && length > longest)
            longest = length;
        at += length;
    }
    if (longest < 2)
        return 0;
    if (longest > (SIZE_MAX - BYTEWELD__ALIGN) / each)
        return SIZE_MAX;
    return longest * each + BYTEWELD__ALIGN - 1;
}

byteweld_status byteweld_encode(const byteweld_vocab *vocab, const uint8_t *text, size_t text_size,
                                uint32_t *ids, size_t capacity, size_t *count, void *scratch,
                                size_t scratch_size, byteweld_error *error)
{
    byteweld__work work;
    uint32_t *arrays = NULL;
    size_t at = 0, most = 0, skip = byteweld__skip(scratch);
    *count = 0;
    if (vocab->pattern == BYTEWELD_OTHER_PATTERN)
        return byteweld__fail(error, BYTEWELD_DECODE_ONLY, BYTEWELD_SECTION, 0);
    memset(&work, 0, sizeof(work));
    work.vocab = vocab;
    if (scratch != NULL && scratch_size > skip) {
        arrays = (uint32_t *)(void *)((uint8_t *)scratch + skip);
        most = (scratch_size - skip) / sizeof(uint32_t) / BYTEWELD__SCRATCH_ARRAYS;
    }
    while (at < text_size) {
        int is_known;
        size_t length = byteweld__piece(vocab, text + at, text_size - at, &is_known);
        uint32_t position = 0;
        if (!is_known || length == 1) {
            if (*count < capacity)
                ids[*count] = is_known ? vocab->byte_ids[text[at]] : vocab->unk;
            (*count)++;
            at += length;
            continue;
        }
        if (length >= UINT32_MAX)
            return byteweld__fail(error, BYTEWELD_TOO_LARGE, BYTEWELD_SECTION, at);
        if (arrays == NULL || length > most)
            return byteweld__fail(error, BYTEWELD_MEMORY, BYTEWELD_SECTION, at);
        work.ids = arrays;
        work.previous = arrays + length;
        work.next = arrays + 2 * length;
        work.merge = arrays + 3 * length;
        work.heap = arrays + 4 * length;
        work.place = arrays + 5 * length;
        byteweld__merge_piece(&work, text + at, (uint32_t)length);
        while (position != BYTEWELD_NO_ID) {
            if (*count < capacity)
                ids[*count] = work.ids[position];
            (*count)++;
            position = work.next[position];
        }
        at += length;
    }
    if (*count > capacity)
        return byteweld__fail(error, BYTEWELD_CAPACITY, BYTEWELD_SECTION, 0);
    return byteweld__done(error);
}

byteweld_status byteweld_decode(const byteweld_vocab *vocab, const uint32_t *ids, size_t count,
                                uint8_t *text, size_t capacity, size_t *size,
                                byteweld_error *error)
{
    size_t i;
    *size = 0;
    for (i = 0; i < count; i++) {
        const byteweld_token *token;
        if (ids[i] >= vocab->vocab_size)
            return byteweld__fail(error, BYTEWELD_UNKNOWN_ID, BYTEWELD_SECTION, i);
        token = &vocab->tokens[ids[i]];
        if (token->size > SIZE_MAX - *size)
            return byteweld__fail(error, BYTEWELD_TOO_LARGE, BYTEWELD_SECTION, i);
        if (*size <= capacity && token->size <= capacity - *size)
            memcpy(text + *size, token->bytes, token->size);
        *size += token->size;
    }
    if (*size > capacity)
        return byteweld__fail(error, BYTEWELD_CAPACITY, BYTEWELD_SECTION, 0);
    return byteweld__done(error);
}

#ifdef __cplusplus
}
#endif

#endif /* BYTEWELD_IMPLEMENTED */
#endif /* BYTEWELD_IMPLEMENTATION */
