/* graph_avx512.c - the graph in f32, compiled for AVX512. */
#define GRAPH_NAME dpi_graph_f32_avx512
#include "train/graph_tmpl.h"
