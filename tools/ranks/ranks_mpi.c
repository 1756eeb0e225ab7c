/* ranks_mpi.c - ranks.h over MPI.
 *
 * One thread of each rank speaks MPI, between steps. It waits with pauses: a rank that waits leaves
 * its processor to the others, and sees a signal that asks to stop. When a rank dies mpirun stops
 * the others with SIGTERM, which is such a signal; rank 0 then still has a statement to write. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "tools/ranks/ranks.h"
#include "tools/terminal/program_system.h"
#include "tools/terminal/signals.h"

enum { TAG_REQUEST = 1, TAG_NUMBER, TAG_TOKEN, TAG_TEXT, TAG_FAILED, TAG_OVER };
enum { SPINS = 2000, PAUSE_NS = 50000, SEAL_BYTES = 65 };

/* A text of any rank, until it is told. */
typedef struct rank_text {
    int32_t n_drawn, end;
    bool over;
    char *bytes;
    size_t n_bytes, capacity;
    int64_t sequence; /* of its last token in the journal */
} rank_text;

/* A token of another rank, for the journal. */
typedef struct token_message {
    int32_t index, place, token;
} token_message;

/* What the head of a text's message is. */
typedef struct text_head {
    int32_t index, n_drawn, end, n_bytes;
} text_head;

/* The one state of a program that mpirun has started. */
static struct {
    int own, count;
    uint8_t key[DPI_RELEASE_KEY_BYTES];
    dpi_spread spread;
    bool is_spread;
    bool is_kept; /* rank 0 has a journal */
    int32_t n_texts;
    rank_text *texts; /* [n_texts] */
    /* What earlier processes have drawn: index and number of tokens of a text, its tokens, the next
     * text; and where the number of each text is. Ranks that have no journal. */
    int32_t *recalled;
    int64_t *recalled_at; /* [n_texts], 0: nothing */
    /* Rank 0 */
    dpi_journal *journal;
    int32_t n_given, n_told;
    bool own_over;
    int n_dismissed; /* ranks that were told that there is no text left: each asks until then */
    int failed; /* the exit code of another rank */
    dpi_status status; /* of the release of this rank */
    dpi_error why;
} ranks = {.count = 1};

int ranks_own(void) { return ranks.own; }

int ranks_count(void) { return ranks.count; }

/* ---- Begin and end --------------------------------------------------------------------------- */

int ranks_open(void) {
    static char name[64];
    const char *count = getenv("OMPI_COMM_WORLD_SIZE");
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (!count || initialized)
        return CLI_OK;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return cli_fail(CLI_FAILED, "MPI cannot be started");
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.own);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
    if (ranks.own > 0) {
        snprintf(name, sizeof name, "%s: rank %d", cli_own_name(), ranks.own);
        cli_set_name(name);
    }
    return CLI_OK;
}

static bool pause_once(int *n) {
    if ((*n)++ < SPINS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    return signals_stop() == 0;
}

/* False: a signal asks to stop, and the request is given up. */
static bool wait_for(MPI_Request *request) {
    int done = 0, n = 0;
    for (;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return true;
        if (!pause_once(&n))
            return false;
    }
}

static bool has_message(int from, int tag, MPI_Status *status) {
    int found = 0;
    MPI_Iprobe(from, tag, MPI_COMM_WORLD, &found, status);
    return found;
}

/* The others wait for the end of rank 0, with pauses: MPI_Finalize waits without. */
void ranks_close(int code) {
    int initialized = 0, n = 0;
    MPI_Status status;
    MPI_Initialized(&initialized);
    if (!initialized)
        return;
    if (code != CLI_OK)
        MPI_Abort(MPI_COMM_WORLD, code);
    for (int i = 1; ranks.own == 0 && i < ranks.count; i++)
        MPI_Send(NULL, 0, MPI_BYTE, i, TAG_OVER, MPI_COMM_WORLD);
    while (ranks.own > 0 && !has_message(0, TAG_OVER, &status) && pause_once(&n))
        ;
    if (signals_stop())
        MPI_Abort(MPI_COMM_WORLD, 128 + signals_stop());
    if (ranks.own > 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

/* ---- Options --------------------------------------------------------------------------------- */

static dpi_status fail(dpi_error *err, dpi_status status, const char *message) {
    if (err) {
        *err = (dpi_error){.code = status, .offset = UINT64_MAX};
        snprintf(err->message, sizeof err->message, "%s", message);
    }
    return status;
}

static dpi_status add_sums(void *user, int64_t *sums, int32_t n, dpi_error *err) {
    MPI_Request request;
    (void)user;
    MPI_Ireduce(ranks.own == 0 ? MPI_IN_PLACE : sums, sums, n, MPI_INT64_T, MPI_SUM, 0,
                MPI_COMM_WORLD, &request);
    return wait_for(&request) ? DPI_STATUS_OK : fail(err, DPI_STATUS_CANCELLED, "cancelled");
}

static dpi_status share_token(void *user, int32_t *token, dpi_error *err) {
    MPI_Request request;
    (void)user;
    MPI_Ibcast(token, 1, MPI_INT32_T, 0, MPI_COMM_WORLD, &request);
    return wait_for(&request) ? DPI_STATUS_OK : fail(err, DPI_STATUS_CANCELLED, "cancelled");
}

/* MPI counts in int. After a signal it makes no progress any more: MPI_Abort ends the process. */
static dpi_status add_training(void *user, int64_t *sums, int64_t n, dpi_error *err) {
    enum { PIECE = 1 << 24 };
    dpi_status status = DPI_STATUS_OK;
    for (int64_t at = 0; at < n && status == DPI_STATUS_OK; at += PIECE)
        status = add_sums(user, sums + at, (int32_t)(n - at < PIECE ? n - at : PIECE), err);
    return status;
}

static dpi_status share_training(void *user, void *data, size_t n_bytes, dpi_error *err) {
    enum { PIECE = 1 << 28 };
    (void)user;
    for (size_t at = 0; at < n_bytes; at += PIECE) {
        const size_t n = n_bytes - at < PIECE ? n_bytes - at : PIECE;
        MPI_Request request;
        MPI_Ibcast((char *)data + at, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        if (!wait_for(&request))
            return fail(err, DPI_STATUS_CANCELLED, "cancelled");
    }
    return DPI_STATUS_OK;
}

const dpi_train_ranks *ranks_training(void) {
    static dpi_train_ranks training;
    training = (dpi_train_ranks){.index = ranks.own, .count = ranks.count, .add = add_training,
                                 .share = share_training};
    return ranks.count > 1 ? &training : NULL;
}

/* Rank 0 has the counter; the others ask for a number. */
static int32_t next_text(void *user) {
    int32_t number = -1;
    MPI_Request request;
    (void)user;
    if (ranks.own == 0)
        return ranks.n_given < ranks.n_texts ? ranks.n_given++ : -1;
    MPI_Irecv(&number, 1, MPI_INT32_T, 0, TAG_NUMBER, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_REQUEST, MPI_COMM_WORLD);
    return wait_for(&request) ? number : -1;
}

/* As the recalled of dpi_release_options. */
static void recalled_text(void *user, int32_t index, const int32_t **tokens, int32_t *n) {
    const int64_t at = ranks.recalled_at ? ranks.recalled_at[index] : 0;
    (void)user;
    *n = at > 0 ? ranks.recalled[at] : 0;
    *tokens = at > 0 ? ranks.recalled + at + 1 : NULL;
}

/* Ranks of one machine share its processors where mpirun has not given each its own. */
static int32_t threads_of_rank(void) {
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const int n = here ? atoi(here) : 1;
    if (n <= 1 || system_is_bound())
        return 0;
    return dpi_processors() > n ? dpi_processors() / n : 1;
}

int32_t ranks_threads(void) { return ranks.count > 1 ? threads_of_rank() : 0; }

int ranks_join(const args *a, dpi_release_options *o) {
    int drawn = 1;
    if (a->v[OPT_SPREAD].given && ranks.count == 1)
        return cli_fail(CLI_USAGE, "--spread needs mpirun with two ranks or more");
    if (ranks.count == 1)
        return CLI_OK;
    if (o->n_shards > 0)
        return cli_fail(CLI_USAGE, "--shard: allowed is one of it and mpirun");
    ranks.journal = o->journal;
    ranks.is_kept = o->journal;
    if (ranks.journal)
        memcpy(ranks.key, dpi_journal_key(ranks.journal), sizeof ranks.key);
    else if (ranks.own == 0)
        drawn = getentropy(ranks.key, sizeof ranks.key) == 0;
    MPI_Bcast(ranks.key, sizeof ranks.key, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&ranks.is_kept, sizeof ranks.is_kept, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (!drawn)
        return cli_fail(CLI_FAILED, "the system has given no random bits");
    o->key = ranks.key;
    if (o->session.n_threads == 0)
        o->session.n_threads = threads_of_rank();
    o->recalled = recalled_text;
    o->as_drawn = ranks.own > 0; /* rank 0 has each token at once */
    ranks.is_spread = a->v[OPT_SPREAD].i;
    if (!ranks.is_spread) {
        o->next_text = next_text;
        return CLI_OK;
    }
    ranks.spread = (dpi_spread){
        .index = ranks.own, .count = ranks.count, .add = add_sums, .token = share_token};
    o->spread = &ranks.spread;
    return CLI_OK;
}

/* ---- Agreement ------------------------------------------------------------------------------- */

/* Rank 0 has the message of a failure that all have seen. It ends the job when the message is told;
 * a rank that ended first would end rank 0 before it. */
static int leave_to_first(int code) {
    int n = 0;
    while (pause_once(&n))
        ;
    return code;
}

/* Digests of all ranks; "" where one has failed. Rank 0 says who differs. */
static int compare(const char *what, const char hex[SEAL_BYTES]) {
    char *all = calloc((size_t)ranks.count, SEAL_BYTES);
    int code = CLI_OK;
    MPI_Request request;
    if (!all)
        return cli_no_memory("the ranks");
    MPI_Iallgather(hex, SEAL_BYTES, MPI_CHAR, all, SEAL_BYTES, MPI_CHAR, MPI_COMM_WORLD, &request);
    if (!wait_for(&request))
        return 128 + signals_stop(); /* `all` stays: MPI may still write to it */
    for (int i = 0; i < ranks.count && code == CLI_OK; i++) {
        const char *other = all + (size_t)i * SEAL_BYTES;
        if (other[0] == '\0' || all[0] == '\0')
            code = CLI_FAILED; /* that rank has said why */
        else if (strcmp(other, all) != 0)
            code = ranks.own > 0 ? leave_to_first(CLI_USAGE)
                                 : cli_fail(CLI_USAGE, "rank %d has other %s than rank 0", i, what);
    }
    free(all);
    return code;
}

static int agree(const dpi_release *release, const dpi_report *report, int32_t what,
                 const char *name) {
    char hex[SEAL_BYTES] = "";
    dpi_error err;
    const dpi_status status = dpi_release_digest(release, report, what, ranks.key, hex, &err);
    if (status != DPI_STATUS_OK) {
        hex[0] = '\0';
        cli_fail_library(CLI_FAILED, &err);
    }
    return compare(name, hex);
}

int ranks_agree(const dpi_release *release, const dpi_report *report) {
    if (ranks.count == 1)
        return CLI_OK;
    int code = agree(release, report, DPI_AGREE_CLAIM, "options, or another model,");
    return code == CLI_OK ? agree(release, report, DPI_AGREE_PROMPTS, "prompts") : code;
}

int ranks_go(int code) {
    if (ranks.count > 1)
        MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return code;
}

/* Texts that have tokens, on rank 0: how many numbers they take, or these. */
static int64_t list_recalled(int32_t *list) {
    int64_t n_list = 0;
    for (int32_t i = 0; ranks.journal && i < ranks.n_texts; i++) {
        const int32_t *tokens;
        int32_t n;
        dpi_journal_text(ranks.journal, i, &tokens, &n);
        if (n == 0)
            continue;
        if (list) {
            list[n_list] = i;
            list[n_list + 1] = n;
            memcpy(list + n_list + 2, tokens, (size_t)n * sizeof *tokens);
        }
        n_list += n + 2;
    }
    return n_list;
}

/* What rank 0 has of earlier processes, to all. */
static int share_recalled(void) {
    enum { PIECE = 1 << 20 };
    int64_t n = list_recalled(NULL);
    MPI_Bcast(&n, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    ranks.recalled = dpi_private_malloc((size_t)(n + 1) * sizeof *ranks.recalled);
    ranks.recalled_at = calloc((size_t)ranks.n_texts, sizeof *ranks.recalled_at);
    if (!ranks.recalled || !ranks.recalled_at)
        return cli_no_memory("the texts");
    if (ranks.own == 0)
        list_recalled(ranks.recalled);
    for (int64_t at = 0; at < n; at += PIECE)
        MPI_Bcast(ranks.recalled + at, (int)(n - at < PIECE ? n - at : PIECE), MPI_INT32_T, 0,
                  MPI_COMM_WORLD);
    for (int64_t at = 0; at < n; at += 2 + ranks.recalled[at + 1])
        ranks.recalled_at[ranks.recalled[at]] = at + 1;
    return CLI_OK;
}

int ranks_begun(const dpi_release *release, int code) {
    static int own, worst; /* MPI may still write to them when a signal has ended the wait */
    MPI_Request request;
    if (ranks.count == 1)
        return code;
    ranks.n_texts = dpi_release_run(release)->n_texts;
    if (!ranks.is_spread)
        ranks.texts = calloc((size_t)ranks.n_texts, sizeof *ranks.texts);
    own = code;
    MPI_Iallreduce(&own, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    if (!wait_for(&request))
        return 128 + signals_stop();
    if (worst == CLI_OK)
        worst = agree(release, NULL, DPI_AGREE_RECORDS, "records");
    return worst == CLI_OK ? share_recalled() : worst;
}

/* ---- A rank that is given texts -------------------------------------------------------------- */

static bool keep(rank_text *t, const char *bytes, size_t n_bytes) {
    if (!dpi_private_grow(&t->bytes, &t->capacity, t->n_bytes + n_bytes, 1))
        return false;
    if (n_bytes > 0)
        memcpy(t->bytes + t->n_bytes, bytes, n_bytes);
    t->n_bytes += n_bytes;
    return true;
}

static void forget(rank_text *t) {
    dpi_private_free(t->bytes);
    *t = (rank_text){0};
}

/* What an event adds to its text. False: out of memory. */
static bool note_event(rank_text *t, const dpi_release_event *e) {
    if (e->type != DPI_EVENT_TOKEN && e->type != DPI_EVENT_END)
        return true;
    t->n_drawn = e->n_drawn;
    t->end = e->end;
    t->over = e->type == DPI_EVENT_END;
    return keep(t, e->text, e->n_bytes);
}

/* The head and the text as one message. */
static bool send_text(int32_t index, const rank_text *t) {
    const text_head head = {index, t->n_drawn, t->end, (int32_t)t->n_bytes};
    char *message = dpi_private_malloc(sizeof head + t->n_bytes);
    if (!message)
        return false;
    memcpy(message, &head, sizeof head);
    if (t->n_bytes > 0)
        memcpy(message + sizeof head, t->bytes, t->n_bytes);
    MPI_Send(message, (int)(sizeof head + t->n_bytes), MPI_BYTE, 0, TAG_TEXT, MPI_COMM_WORLD);
    dpi_private_free(message);
    return true;
}

/* To rank 0, which writes it: not those that it had. */
static void send_token(const dpi_release_event *e) {
    const token_message message = {e->index, e->n_drawn - 1, e->token};
    const int32_t *tokens;
    int32_t n;
    recalled_text(NULL, e->index, &tokens, &n);
    if (e->n_drawn > n)
        MPI_Send(&message, sizeof message, MPI_BYTE, 0, TAG_TOKEN, MPI_COMM_WORLD);
}

static bool pass_on(const dpi_release_event *e) {
    if (e->type != DPI_EVENT_TOKEN && e->type != DPI_EVENT_END)
        return true;
    rank_text *t = ranks.texts ? &ranks.texts[e->index] : NULL;
    if (ranks.is_kept && e->type == DPI_EVENT_TOKEN)
        send_token(e);
    bool kept = t && note_event(t, e);
    if (kept && t->over) {
        kept = send_text(e->index, t);
        forget(t);
    }
    return kept;
}

static int draw_given(dpi_release *release) {
    dpi_release_event e = {0};
    dpi_error err;
    dpi_status status;
    bool kept = true;
    while ((status = dpi_release_advance(release, &e, &err)) == DPI_STATUS_OK && kept &&
           e.type != DPI_EVENT_NONE)
        kept = ranks.is_spread || pass_on(&e);
    if (!kept)
        return cli_no_memory("the text");
    if (status == DPI_STATUS_CANCELLED)
        return 128 + signals_stop();
    return status == DPI_STATUS_OK ? CLI_OK : cli_fail_library(CLI_FAILED, &err);
}

/* After a failure rank 0 ends the run, and with it this process. */
int ranks_work(dpi_release *release) {
    int code = draw_given(release);
    if (code == CLI_OK || ranks.is_spread)
        return code;
    MPI_Send(&code, 1, MPI_INT, 0, TAG_FAILED, MPI_COMM_WORLD);
    for (int i = 0; i < 5 && !signals_stop(); i++)
        sleep(1);
    return code;
}

/* ---- Rank 0 ---------------------------------------------------------------------------------- */

static bool receive_text(int from, int n_bytes) {
    text_head head;
    char *message = dpi_private_malloc((size_t)n_bytes);
    if (!message)
        return false;
    MPI_Recv(message, n_bytes, MPI_BYTE, from, TAG_TEXT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memcpy(&head, message, sizeof head);
    rank_text *t = &ranks.texts[head.index];
    const bool kept = keep(t, message + sizeof head, (size_t)head.n_bytes);
    t->n_drawn = head.n_drawn;
    t->end = head.end;
    t->over = kept;
    dpi_private_free(message);
    return kept;
}

/* A token of another rank into the journal. */
static void receive_token(int from) {
    token_message m;
    MPI_Recv(&m, sizeof m, MPI_BYTE, from, TAG_TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (ranks.status != DPI_STATUS_OK)
        return;
    ranks.status = dpi_journal_put(ranks.journal, m.index, m.place, m.token, 0,
                                   &ranks.texts[m.index].sequence, &ranks.why);
}

/* All messages that have come. False: out of memory. */
static bool serve(void) {
    MPI_Status status;
    bool ok = true;
    while (ok && has_message(MPI_ANY_SOURCE, MPI_ANY_TAG, &status)) {
        const int from = status.MPI_SOURCE;
        int n_bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &n_bytes);
        if (status.MPI_TAG == TAG_REQUEST) {
            MPI_Recv(NULL, 0, MPI_BYTE, from, TAG_REQUEST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const int32_t number = next_text(NULL);
            ranks.n_dismissed += number < 0;
            MPI_Send(&number, 1, MPI_INT32_T, from, TAG_NUMBER, MPI_COMM_WORLD);
        } else if (status.MPI_TAG == TAG_TOKEN) {
            receive_token(from);
        } else if (status.MPI_TAG == TAG_TEXT) {
            ok = receive_text(from, n_bytes);
        } else {
            MPI_Recv(&ranks.failed, 1, MPI_INT, from, status.MPI_TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }
    return ok;
}

/* The disk has the tokens of another rank before they are told. */
static bool is_durable(const rank_text *t) {
    if (ranks.journal && t->sequence > 0 && ranks.status == DPI_STATUS_OK)
        ranks.status = dpi_journal_wait(ranks.journal, t->sequence, &ranks.why);
    return !ranks.journal || ranks.status == DPI_STATUS_OK;
}

/* Where the run has failed texts may be missing: those that are whole are told. A job tells them
 * when it goes on. */
static bool tell(dpi_release_event *event) {
    const bool ends = (ranks.status != DPI_STATUS_OK || ranks.failed) && !ranks.journal;
    while (ends && ranks.n_told < ranks.n_texts && !ranks.texts[ranks.n_told].over)
        ranks.n_told++;
    if (ranks.n_told == ranks.n_texts || !ranks.texts[ranks.n_told].over ||
        !is_durable(&ranks.texts[ranks.n_told]))
        return false;
    const rank_text *t = &ranks.texts[ranks.n_told];
    *event = (dpi_release_event){.type = DPI_EVENT_END, .index = ranks.n_told, .token = -1,
                                 .n_drawn = t->n_drawn, .end = t->end,
                                 .text = t->n_bytes > 0 ? t->bytes : "", .n_bytes = t->n_bytes};
    ranks.n_told++;
    return true;
}

/* One event of this rank's own texts. True: it is one to be told, of prompts. */
static bool advance_own(dpi_release *release, dpi_release_event *event) {
    ranks.status = dpi_release_advance(release, event, &ranks.why);
    if (ranks.status != DPI_STATUS_OK || event->type == DPI_EVENT_NONE) {
        ranks.own_over = true;
        return false;
    }
    if (event->type == DPI_EVENT_PROMPT)
        return true;
    if (!note_event(&ranks.texts[event->index], event))
        ranks.status = fail(&ranks.why, DPI_STATUS_MEMORY, "no memory for a text");
    return false;
}

static dpi_status end_of_ranks(dpi_release_event *event, int *code, dpi_error *err) {
    if (ranks.status != DPI_STATUS_OK) {
        *err = ranks.why;
        return ranks.status;
    }
    if (ranks.failed) {
        *code = ranks.failed;
        return fail(err, DPI_STATUS_STATE, "another rank has failed");
    }
    *event = (dpi_release_event){.type = DPI_EVENT_NONE, .index = ranks.n_texts, .token = -1,
                                 .text = ""};
    return DPI_STATUS_OK;
}

dpi_status ranks_advance(dpi_release *release, dpi_release_event *event, int *code,
                         dpi_error *err) {
    int n = 0;
    if (ranks.count == 1 || ranks.is_spread)
        return dpi_release_advance(release, event, err);
    if (!ranks.texts)
        return fail(err, DPI_STATUS_MEMORY, "no memory for the texts");
    if (ranks.n_told > 0)
        forget(&ranks.texts[ranks.n_told - 1]);
    for (;;) {
        if (!serve())
            ranks.status = fail(&ranks.why, DPI_STATUS_MEMORY, "no memory for a text");
        if (ranks.failed && !ranks.own_over)
            dpi_release_cancel(release);
        if (tell(event))
            return DPI_STATUS_OK;
        const bool ends = ranks.status != DPI_STATUS_OK || ranks.failed;
        if (ends && ranks.journal)
            return end_of_ranks(event, code, err);
        if (ranks.n_told == ranks.n_texts && (ends || ranks.n_dismissed == ranks.count - 1))
            return end_of_ranks(event, code, err);
        if (!ranks.own_over) {
            if (advance_own(release, event))
                return DPI_STATUS_OK;
        } else if (!pause_once(&n)) {
            ranks.status = fail(&ranks.why, DPI_STATUS_CANCELLED, "cancelled");
        }
    }
}
