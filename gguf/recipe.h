/* recipe.h - which type each tensor of a LLaMA model gets when a file is written as "Q4_0" or
 * "Q4_K_M". Internal.
 *
 * A plain type is that of every matrix. A mixture gives more bits to what needs them: the output
 * head, and attn_v and ffn_down in the first and last eighth of the layers and every third between.
 * Source: the mixtures of llama.cpp's quantize. */
#ifndef DPI_RECIPE_H
#define DPI_RECIPE_H

#include <stdbool.h>

#include "dpinfer/status.h"
#include "kernels/weight_types.h"

typedef struct dpi_recipe {
    const char *name;   /* "Q4_K_M" */
    uint32_t type;      /* of most matrices */
    uint32_t more;      /* of those that need more; equals `type` if plain */
    uint32_t file_type; /* general.file_type */
} dpi_recipe;

/* Errors: ARG, with the list. */
dpi_status dpi_recipe_find(const char *name, const dpi_recipe **recipe, dpi_error *err);

/* The type for a tensor; NULL if it is to stay as it is (vectors: norms, biases, rope_freqs).
 * `tied`: the embedding is also the output head. Rows of n_in that the type's block does not divide
 * get a type with smaller blocks (Q5_0, Q5_1, Q8_0), at last F16. */
const dpi_type *dpi_recipe_type(const dpi_recipe *recipe, const char *tensor, int32_t n_dims,
                                int64_t n_in, int32_t n_layer, bool tied);

#endif
