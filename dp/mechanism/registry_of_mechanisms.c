/* registry_of_mechanisms.c - see dpinfer/mechanism.h. The list is made while building, of the files
 * of this folder. */
#include <stdlib.h>
#include <string.h>

#include "dp/mechanism/mechanism.h"
#include "dp/methods/method.h"

#define DPI_ROW(name) extern const dpi_mechanism_ops dpi_mechanism_##name;
#include "mechanisms.inc"
#undef DPI_ROW
#define DPI_ROW(name) &dpi_mechanism_##name,
static const dpi_mechanism_ops *const mechanisms[] = {
#include "mechanisms.inc"
};
#undef DPI_ROW
enum { N_MECHANISMS = sizeof mechanisms / sizeof *mechanisms };

const dpi_mechanism_ops *dpi_mechanism_ops_get(int32_t id) {
    return id >= 0 && id < N_MECHANISMS ? mechanisms[id] : NULL;
}

int32_t dpi_mechanism_count(void) { return N_MECHANISMS; }

const char *dpi_mechanism_name(int32_t id) {
    const dpi_mechanism_ops *m = mechanisms[id];
    return m->sampler ? m->sampler->info.name : m->info.name;
}

void dpi_mechanism_info_get(int32_t id, dpi_mechanism_info *info) {
    const dpi_mechanism_ops *m = mechanisms[id];
    *info = m->info;
    info->id = id;
    info->name = dpi_mechanism_name(id);
    info->is_statistic = m->statistic != NULL;
    if (!m->sampler)
        return;
    info->title = m->sampler->info.title;
    info->help = m->sampler->info.help;
    info->source = m->sampler->info.source;
}

int32_t dpi_mechanism_find(const char *name) {
    for (int32_t id = 0; id < N_MECHANISMS; id++)
        if (strcmp(dpi_mechanism_name(id), name) == 0)
            return id;
    return -1;
}

/* A claim has these of the data. */
static bool is_of_data(const dpi_parameter *p) {
    return p == &dpi_common[DPI_COMMON_ADJACENCY] || p == &dpi_common[DPI_COMMON_DELTA] ||
           p == &dpi_common[DPI_COMMON_MAX_PER_UNIT];
}

const dpi_parameter *dpi_mechanism_parameter_get(int32_t id, int32_t index) {
    const dpi_mechanism_ops *m = dpi_mechanism_ops_get(id);
    const dpi_parameter *const *p = !m          ? NULL
                                    : m->sampler ? m->sampler->parameters
                                                 : m->parameters;
    for (; p && *p; p++)
        if (!is_of_data(*p) && index-- == 0)
            return *p;
    return NULL;
}

int32_t dpi_mechanism_parameter_count(int32_t id) {
    int32_t n = 0;
    while (dpi_mechanism_parameter_get(id, n))
        n++;
    return n;
}
