/* texts.h - the texts of a release that are drawn: sessions and samplers advance them token by
 * token, and events wait here until they are told. It knows no file and no record, but for the
 * prompts that it is given. Internal; private. */
#ifndef DPI_RELEASE_TEXTS_H
#define DPI_RELEASE_TEXTS_H

#include "dpinfer/generation.h"
#include "pipeline/release/rounds.h"

/* Room for a text that is drawn: sequences of the session, a sampler, the prompts of a batch. */
typedef struct dpi_place {
    int32_t first_seq;
    dpi_slots prompts;
    dpi_sampler *sampler;
    uint64_t bits;              /* seeded: the state of the sampler's random bits */
    dpi_prompts *own;           /* of its text, with texts of the round before; NULL: those of the
                                   plan */
    dpi_generation *generation; /* NULL: the place is free */
} dpi_place;

typedef struct dpi_waiting_event {
    int32_t type, token, n_drawn, end;
    size_t n_bytes;
    int64_t sequence; /* of the journal: the disk must have it before it is told; 0: it may be
                         told */
} dpi_waiting_event;

/* A text that has begun, with the events that were not told yet: texts are told in their order,
 * whichever ends first. Private memory. */
typedef struct dpi_release_text {
    struct dpi_release_text *next; /* the one after it */
    int32_t index;
    dpi_place *place;          /* NULL: all of it is drawn */
    int32_t n_read, n_prompts; /* n_prompts 0: its generation has not said yet */
    int32_t n_drawn;           /* tokens among its events */
    int32_t n_recalled;        /* of them, those that an earlier process has drawn */
    int32_t *recalled;         /* [n_recalled] */
    int32_t n_lost;            /* tokens that the disk did not get: nothing after them is told */
    bool is_cut;               /* an event is lost: nothing follows but its END, without text */
    dpi_waiting_event *events; /* [n_events], of which n_told are told */
    size_t n_events, n_told, capacity;
    char *bytes; /* [n_bytes] the text of all events, of which n_bytes_told are told */
    size_t n_bytes, n_bytes_told, bytes_capacity;
} dpi_release_text;

/* The texts of one pass, in their order. */
typedef struct dpi_pass_texts {
    int32_t n;
    dpi_release_text **texts; /* [n_places] */
    dpi_generation **generations;
    dpi_generation_event *events;
} dpi_pass_texts;

typedef struct dpi_texts {
    const dpi_plan *plan;
    dpi_source *source;
    dpi_books *books; /* what the disk must have before a token is told */
    dpi_session *session;
    dpi_place *places; /* [n_places] */
    int32_t n_places;
    dpi_pass_texts drawn;
    dpi_rounds rounds; /* the texts that have ended, as far as prompts of later ones have them */
    dpi_release_text *first; /* of those that have begun and are not told to their end, in order */
    int32_t next;            /* index of the text that begins next; n_texts: there is none */
    bool next_known;         /* with next_text: it was called */
    int32_t looked_at;       /* index that next_is_drawn is of; -1: none yet */
    bool next_is_drawn;      /* an earlier process has drawn all of it: looked at once, and not in
                                each pass in which it waits */
    int32_t n_begun;
    int32_t n_ended;    /* texts that are drawn */
    int64_t n_read;     /* prompts of all texts that are read */
    int64_t n_drawn;    /* tokens of all texts */
    int32_t stopped_at; /* with a failure: index of the text that has failed */
    dpi_error failure;  /* code: what a call returns when no event waits; OK: none yet */
} dpi_texts;

/* What is given must outlive the texts. */
void dpi_texts_init(dpi_texts *texts, const dpi_plan *plan, dpi_source *source, dpi_books *books);
/* Places, their samplers and the session, once the source is open. Errors: MEMORY; those of
 * dpi_session_create. */
dpi_status dpi_texts_open(dpi_texts *texts, dpi_error *err);
/* Wipes. */
void dpi_texts_free(dpi_texts *texts);

/* Whether no text is left that could begin. */
bool dpi_texts_is_last(const dpi_texts *texts);

/* One pass of all texts that are drawn, and the begin of the next one if there is room. What comes
 * of it waits in the texts; a failure is kept. The text that has read a prompt; NULL: none. */
const dpi_release_text *dpi_texts_pass(dpi_texts *texts);
/* Whether an event waits that may be told: of the first text, as_drawn of any. */
bool dpi_texts_has_event(const dpi_texts *texts);
/* The first of them. False: none waits. */
bool dpi_texts_tell(dpi_texts *texts, dpi_release_event *event);
/* Whether nothing is left to do but to wait until the disk has what is to be told, and that. */
bool dpi_texts_waits(const dpi_texts *texts);
void dpi_texts_wait(dpi_texts *texts);
/* Frees the texts whose END is told. */
void dpi_texts_drop_told(dpi_texts *texts);

#endif
