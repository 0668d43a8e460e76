/* SPDX-License-Identifier: MIT */
/*
 * The files of a site as requests name them, with the hot ones held ready: small files in memory,
 * larger ones open.  It knows names, files and their validators; it knows no connection.
 * Thread: the loop's.  Contract: file_cache.c.
 */
#ifndef GI_WEB_FILE_CACHE_H
#define GI_WEB_FILE_CACHE_H

#include <gori/block.h>
#include <gori/file.h>
#include <stdbool.h>

/* Bodies up to here are copied behind their head, so that one reference sends both. */
#define GI_WEB_JOIN_BYTES 8192u

/** Result of gi_web_cache_find: the name means a folder and lacks the slash at its end. */
#define GI_WEB_IS_FOLDER 1

/** A file that is known.  Good until the next call that is given the cache. */
struct gi_web_file {
    struct gi_web_file *next; /* in the bucket */
    struct gori_link by_age;  /* in `small` or `large` of the cache */
    gori_time check_at;       /* of the loop's time: asked anew from then on */
    struct gori_block *ready; /* the whole answer of the second `ready_second`, or its head alone */
    int64_t ready_second;
    struct gori_block *body; /* all of it, of a small file; NULL when it is empty or large */
    struct gori_file *file;  /* a large one, else NULL */
    struct gori_file_info info;
    uint32_t hash;
    uint32_t charge;          /* bytes counted for it */
    uint32_t name_size;       /* text: the name, as the request has it, decoded */
    uint32_t type_size;       /* then the line Content-Type */
    uint32_t validators_size; /* then Last-Modified, ETag and Accept-Ranges */
    uint8_t etag_offset;      /* in those lines */
    uint8_t etag_size;        /* with its quotes */
    bool has_modified;        /* and so a line Last-Modified */
    bool used;                /* since the last look for something to forget */
    bool settled;             /* its time of change tells it from the next version */
    uint8_t text[];
};

struct gi_web_age_list {
    struct gori_link files; /* oldest first */
    uint32_t count;
    uint32_t count_max;
};

/** How a cache is made; all are set. */
struct gi_web_cache_config {
    const struct gori_allocator *allocator;
    const char *root;
    uint64_t bytes_max;
    uint32_t files_max;
    uint32_t open_files_max;
    uint32_t file_bytes_max; /* larger files are not held in memory */
    uint32_t name_bytes_max;
    gori_time revalidate;
    bool hidden_files;
};

struct gi_web_cache {
    struct gi_web_cache_config config; /* `root` is our own copy */
    struct gori_root *root;
    struct gori_file_info root_info;
    gori_time root_check_at;
    struct gi_web_file **buckets;
    uint32_t bucket_count; /* a power of two */
    uint64_t bytes;
    uint64_t hits;
    uint64_t misses;
    struct gi_web_age_list small;
    struct gi_web_age_list large;
    char *disk_name; /* scratch: the name of the file below the root, terminated */
};

/** Opens the root and makes an empty cache.  Errors: those of gori_root_open; GORI_ENOMEM. */
GORI_MUST_USE int gi_web_cache_init(struct gi_web_cache *cache,
                                    const struct gi_web_cache_config *config);

/** Forgets everything and closes the root. */
void gi_web_cache_fini(struct gi_web_cache *cache);

/**
 * The file for a decoded name: it begins with a slash, and has no empty, "." or ".." part.
 * `wall_seconds` is the time of day.  Result: 0, or GI_WEB_IS_FOLDER.
 * Errors: those of gori_root_open_file; GORI_ENOTFOUND for a hidden name too.
 */
GORI_MUST_USE int gi_web_cache_find(struct gi_web_cache *cache, struct gori_slice name,
                                    gori_time loop_now, int64_t wall_seconds,
                                    struct gi_web_file **ret_file);

static inline struct gori_slice gi_web_file_type_line(const struct gi_web_file *file)
{
    return (struct gori_slice){file->text + file->name_size, file->type_size};
}

static inline struct gori_slice gi_web_file_validator_lines(const struct gi_web_file *file)
{
    return (struct gori_slice){file->text + file->name_size + file->type_size,
                               file->validators_size};
}

static inline struct gori_slice gi_web_file_etag(const struct gi_web_file *file)
{
    return (struct gori_slice){gi_web_file_validator_lines(file).data + file->etag_offset,
                               file->etag_size};
}

/** Whether the body is in memory. */
static inline bool gi_web_file_is_small(const struct gi_web_file *file)
{
    return file->file == NULL;
}

#endif
