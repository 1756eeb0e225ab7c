/* graph_f32.c - the graph in f32, for any processor. */
#define GRAPH_NAME dpi_graph_f32
#include "train/graph_tmpl.h"
