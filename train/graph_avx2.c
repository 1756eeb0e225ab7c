/* graph_avx2.c - the graph in f32, compiled for AVX2. */
#define GRAPH_NAME dpi_graph_f32_avx2
#include "train/graph_tmpl.h"
