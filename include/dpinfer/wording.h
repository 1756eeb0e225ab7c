/* wording.h - how texts are worded: public settings about where a text begins and ends, and about
 * what may stand in it.
 *
 *     dpi_wording  ->  dpi_word_rules_create  ->  generation.h, pace.h, drawing.h
 *
 * A wording is chosen without the records. What follows from it is a function of the tokens that
 * were released: it costs nothing, and every guarantee holds as it is (dp/PRIVACY.md sections 24
 * and 27). docs/prompts.md says what each setting is good for.
 */
#ifndef DPINFER_WORDING_H
#define DPINFER_WORDING_H

#include "dpinfer/prompts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DPI_STOPS_MAX = 16,
    DPI_BANS_MAX = 256,
    DPI_BIASES_MAX = 1024,
    DPI_WORDING_TEXT_MAX = 256, /* bytes of a stop and of a ban */
    DPI_ANSWER_MAX = 4096,      /* bytes of an answer */
    DPI_WORDS_MAX = 1000000,
    DPI_REPEAT_SCALE = 16
};

typedef struct dpi_token_bias {
    int32_t token;
    int32_t reserved;
    double bias; /* added to its logits, -100..100 */
} dpi_token_bias;

/* All of it is public. Texts are UTF-8 without NUL. A word is a run of characters that are no white
 * space of Unicode. */
typedef struct dpi_wording {
    size_t struct_size;
    dpi_bytes answer;     /* how every answer begins, 1..DPI_ANSWER_MAX bytes: it stands in all
                             prompts behind the header of the answer, and texts go on from it. It is
                             no part of a text. {label} may stand in it, as in prompts. data NULL
                             (default): none */
    int32_t keep_answer;  /* 1: each text begins with the answer; default 0 */
    int32_t keep_space;   /* 1: white space stays at both ends of a text; 0 (default): it is no part
                             of it */
    const dpi_bytes *stops; /* [n_stops] each 1..DPI_WORDING_TEXT_MAX bytes: a text ends before the
                               one that is first complete; of two that end at the same place before
                               the longer one. They are looked for in characters, whatever tokens
                               these come in, and not in the answer */
    int32_t n_stops;      /* 0 (default)..DPI_STOPS_MAX */
    int32_t min_words;    /* 0 (default)..DPI_WORDS_MAX: the model does not end a text that has
                             fewer words, and a stop behind fewer is text like any other. A text of
                             all its tokens, or of a grammar that allows nothing else, ends all the
                             same */
    int32_t max_words;    /* a text ends behind so many words, at the white space that follows them:
                             1..DPI_WORDS_MAX, at least min_words; 0 (default): no bound */
    int32_t n_bans;       /* 0 (default)..DPI_BANS_MAX */
    const dpi_bytes *bans; /* [n_bans] each 1..DPI_WORDING_TEXT_MAX bytes, without U+FFFD: no text
                              has one, in whatever tokens it would come, nor does the answer with
                              the text. Bytes are compared */
    int32_t ban_refusals; /* 1: nor does a text, behind white space, begin with a dpi_refusal;
                             default 0 */
    int32_t no_repeat;    /* 2..16: no run of so many words comes twice in a text, where words stand
                             between white space of ASCII, and the last one counts after each token
                             as it stands; before a stop cuts it. 0 (default): runs may repeat */
    double repeat_penalty; /* 1..2: a token that the text has loses DPI_REPEAT_SCALE ln of this of
                              its logit, once: what a division by the penalty takes from a logit of
                              some 16. 1 (default): nothing */
    const dpi_token_bias *biases; /* [n_biases]; those of one token add up */
    int32_t n_biases;     /* 0 (default)..DPI_BIASES_MAX */
    int32_t reserved;
    uint64_t room[8]; /* all 0: for what is to come */
} dpi_wording;

/* Where bans and no_repeat leave no token, the text ends. With one of them a token without text
 * comes as an end alone. */

/* How chat models begin where they decline a task or announce it: i from 0 on; NULL: no more. */
DPI_API const char *dpi_refusal(int32_t i);

DPI_API void dpi_wording_init_size(dpi_wording *wording, size_t size);
#define dpi_wording_init(o) dpi_wording_init_size((o), sizeof *(o))
/* Errors: ARG, "stops: found ..., allowed ...". */
DPI_API DPI_MUST_CHECK dpi_status dpi_wording_check(const dpi_wording *wording, dpi_error *err);
/* What a description asks for beside a prompt, where there is no other answer and no private
 * prompt. Texts are items of a list, in quotes; where prompts->n_text says that they are long they
 * are below headings, and no row of words is in one twice (prompt_texts.h). Of a model that chats
 * none begins with a refusal (ban_refusals). stops [DPI_STOPS_MAX] is the caller's, and holds the
 * stops from then on. Not for texts of a grammar. Errors: ARG (as many stops already), those of
 * dpi_model_info_get. */
DPI_API DPI_MUST_CHECK dpi_status dpi_wording_choose(const dpi_prompt_options *prompts,
                                                     const dpi_model *model, dpi_wording *wording,
                                                     dpi_bytes *stops, dpi_error *err);
/* prompts->answer and answer_end: prompts end with the answer of the wording, and earlier answers
 * with its first stop. wording NULL: with none. */
DPI_API void dpi_wording_end_prompts(const dpi_wording *wording, dpi_prompt_options *prompts);
/* 1: nothing is set, so that texts are those of the model without white space at their ends. */
DPI_API int32_t dpi_wording_is_default(const dpi_wording *wording);
/* Checks, and copies with all texts; NULL: the default. *copy is the caller's. Errors: ARG,
 * MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_wording_copy(const dpi_wording *wording, dpi_wording **copy,
                                                   dpi_error *err);
/* Of a copy. NULL is allowed. */
DPI_API void dpi_wording_free(dpi_wording *copy);

/* ---- Over the tokens of a model -------------------------------------------------------------- */

/* A wording over the vocabulary of a model. Never changes once it is made. */
typedef struct dpi_word_rules dpi_word_rules;

/* Copies the wording; NULL: the default. The model must outlive the rules. Errors: ARG, MEMORY. */
DPI_API DPI_MUST_CHECK dpi_status dpi_word_rules_create(const dpi_wording *wording,
                                                        const dpi_model *model,
                                                        dpi_word_rules **rules, dpi_error *err);
/* After its texts. NULL is allowed. */
DPI_API void dpi_word_rules_free(dpi_word_rules *rules);
/* The wording; the rules' own. */
DPI_API const dpi_wording *dpi_word_rules_wording(const dpi_word_rules *rules);

#ifdef __cplusplus
}
#endif
#endif
