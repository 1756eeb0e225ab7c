/* prompts.h - what prompts are made of, for whoever checks them before they are made. Internal. */
#ifndef DPI_PROMPTS_H
#define DPI_PROMPTS_H

#include "dpinfer/prompts.h"

#define DPI_REFERENCE_MARK "{reference}"
#define DPI_LABEL_MARK "{label}"

/* How often {reference} stands in a text; data NULL: 0. */
int dpi_count_references(dpi_bytes text);
/* Bytes before the next {label}; all of them: there is none. */
size_t dpi_find_label(dpi_bytes text);

/* Prompts of which nothing but the texts is there, with {label} as it stands where the options have
 * no label. *prompts is the caller's. Errors: as dpi_prompts_create, but for lengths. */
dpi_status dpi_prompts_sketch(const dpi_model *model, const dpi_prompt_options *options,
                              dpi_prompts **prompts, dpi_error *err);
/* As dpi_prompts_create, with texts [n] that the same run has released: they stand behind the
 * examples, as these do, and in both prompts. Errors: ARG, too, if there are too many. */
dpi_status dpi_prompts_create_released(const dpi_model *model, const dpi_prompt_options *options,
                                       const dpi_bytes *texts, int32_t n, int32_t n_room,
                                       dpi_prompts **prompts, dpi_error *err);
/* What the user says at the end; data NULL in a private prompt where the record is an earlier
 * answer to the public one. The prompts' own. */
dpi_bytes dpi_prompts_public_text(const dpi_prompts *prompts);
dpi_bytes dpi_prompts_private_text(const dpi_prompts *prompts);

#endif
